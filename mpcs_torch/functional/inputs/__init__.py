"""Checks of arguments, and one flattener for each kind of batch."""
