"""Run ``mpcs`` as ``python -m mpcs_torch``."""

from mpcs_torch.cli import main

main()
