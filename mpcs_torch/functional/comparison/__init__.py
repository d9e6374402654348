"""Tests and bootstrap intervals of differences between systems that were evaluated on the same samples."""
