"""The reference trainer: a config in, a run folder with a record of each epoch out."""
