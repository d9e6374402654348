"""The fingerprint of the settings of a metric."""

import hashlib
from typing import Any

import torch
from torch import Tensor


def fingerprint(settings: dict[str, Any]) -> Tensor:
    """Return 16 integers below 256 that differ between settings, even in a comparison with a tolerance."""
    plain = {key: _plain(value) for key, value in sorted(settings.items())}
    return torch.tensor(list(hashlib.sha256(repr(plain).encode()).digest()[:16]), dtype=torch.int64)


def _plain(setting: Any) -> Any:
    if not isinstance(setting, Tensor):
        return setting
    if setting.layout == torch.sparse_coo:
        return setting.indices().tolist(), setting.values().tolist()
    return setting.tolist()
