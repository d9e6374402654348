"""Work in several processes: those that torchrun starts, and pools of workers."""
