"""Error rates and costs of detectors."""
