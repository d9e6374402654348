"""Which ways of training help: methods, learning rates and seeds, compared on the same data."""
