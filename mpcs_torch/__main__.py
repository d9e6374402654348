"""``python -m mpcs_torch`` is ``mpcs``."""

from mpcs_torch.cli import main

main()
