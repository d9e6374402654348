"""Several processes: those that a launcher starts for one job, and pools of workers of our own."""
