"""A run small enough for a test: three blobs, a handful of epochs."""

from typing import Any

import torch

from mpcs_torch.trainer.config.sections import RunConfig
from mpcs_torch.trainer.data import DataSplits, Split


def toy_data() -> DataSplits:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(60) % 3
    inputs = torch.randn(60, 4, generator=generator) + 2 * torch.eye(3, 4)[labels]
    return DataSplits(
        Split(inputs[:45], labels[:45]),
        Split(inputs[45:], labels[45:]),
        ("red", "yellow", "green"),
    )


def toy_config(**changed: Any) -> RunConfig:
    sections = {
        "name": "toy",
        "seed": 5,
        "data": {"name": "iris"},
        "model": {"name": "mlp", "hidden": 8},
        "training": {"batch_size": 10, "learning_rate": 0.05},
        "epochs": {"count": 12},
        "score": {
            "k": 3,
            "t": 20,
            "concern": {"releases": [["red", "yellow"]], "factor": 0.1},
        },
        **changed,
    }
    return RunConfig.model_validate(sections)
