"""Run ``mpcs`` as ``python -m mpcs_torch``."""

import os
import sys

# With -m, Python searches the current folder first, so that ./numpy.py would be run as numpy; as ``mpcs``, it does not.
# In a checkout, the folder stays, because this package is in it.
if not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(__file__)):
    del sys.path[0]

from mpcs_torch.cli import main

main()
