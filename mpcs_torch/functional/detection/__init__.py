"""Error rates and costs of detectors, from scores and target or non-target labels."""
