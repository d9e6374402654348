"""The experiments of the paper, and its numbers beside ours: Wang, Du, Liu, arXiv:2209.06408v3."""
