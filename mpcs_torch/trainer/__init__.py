"""The reference trainer: from a config to a run folder with one record per turn."""
