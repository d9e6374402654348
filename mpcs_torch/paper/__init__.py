"""The paper's reported numbers beside ours: Wang, Du, Liu, arXiv:2209.06408v3."""
