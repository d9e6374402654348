"""The type that sums are held in."""

import torch


def widest_float(device: torch.device) -> torch.dtype:
    """The float type that sums are held in: float64, or float32 on MPS, which has nothing wider."""
    return torch.float32 if device.type == "mps" else torch.float64
