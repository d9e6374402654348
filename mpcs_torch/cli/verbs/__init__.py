"""The verbs of ``mpcs``: one module each."""
