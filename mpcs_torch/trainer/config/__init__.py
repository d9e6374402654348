"""Run configs: their sections, and the parts that they name."""
