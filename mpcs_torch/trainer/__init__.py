"""The reference trainer, which takes a config and writes a run folder with a record of each epoch."""
