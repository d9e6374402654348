"""What the paper reports, and what comes out here: Wang, Du, Liu, arXiv:2209.06408v3."""
