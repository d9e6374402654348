"""Files on disk: atomic writes, locks, size limits, and loading without running code."""
