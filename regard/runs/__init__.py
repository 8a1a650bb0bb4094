"""What a run directory holds, read as untrusted input: nothing outside it is touched, and every file is checked."""
