"""The experiments of the MPCS paper, and its numbers next to ours: Wang, Du, Liu, arXiv:2209.06408v3."""
