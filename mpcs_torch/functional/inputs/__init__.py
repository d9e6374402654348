"""Argument checks, and one flattening function for each kind of batch."""
