"""Neural network modules, one noun per file. Depends on torch only."""
