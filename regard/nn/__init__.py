"""Building blocks, one noun per file. Uses torch and nothing else."""
