"""Run directories, read as untrusted input: every file is checked, and nothing outside is touched."""
