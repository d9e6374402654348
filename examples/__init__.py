"""Scripts that each show one use, and the benchmark of ways to learn."""
