"""The reference trainer: it trains a model from a config, and writes a folder with the metrics of each epoch."""
