"""Checks of arguments, and one function for each kind of batch that flattens it."""
