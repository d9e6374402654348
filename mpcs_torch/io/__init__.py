"""Files on disk: written whole or not at all, locked, within limits, and never run as code."""
