"""The dtype of sums."""

import torch


def widest_float(device: torch.device) -> torch.dtype:
    """Return the dtype of sums on a device: float64, or float32 on MPS, which has nothing wider."""
    return torch.float32 if device.type == "mps" else torch.float64
