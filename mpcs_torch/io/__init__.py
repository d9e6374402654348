"""Read and write files: atomic writes, locks, size limits, and loading without running code."""
