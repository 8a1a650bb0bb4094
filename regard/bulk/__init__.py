"""Bulk translation: many files, by several processes or machines, resumed after any interruption."""
