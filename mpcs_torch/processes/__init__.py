"""Several processes: those of torchrun, and pools of workers."""
