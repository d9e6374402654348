"""Published data sets: where they come from, and what their files hold. PyTorch is not needed to list them."""
