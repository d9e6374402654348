"""Intervals of rates and means, and tests of differences between systems that were evaluated on the same samples."""
