"""The losses of M models with one loss and different settings or samples: their matrices are stacked."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import normalize

from examples.benchmark.losses import RAMP, SCALE, LossData


class StackedLoss:
    """The losses of the samples of M models; see the top of `losses.py`."""

    def __init__(self, data: Sequence[LossData]) -> None:
        first = data[0]
        self._classes = len(first.weights)
        self._rows = self._classes * torch.arange(len(data)).unsqueeze(1)

        def matrices(name: str) -> Tensor:
            return torch.stack([getattr(each, name) for each in data]).reshape(
                -1, self._classes
            )

        self._labels, self._added, self._errors = (
            matrices("labels"),
            matrices("added"),
            matrices("errors"),
        )
        self._weights = torch.stack([each.weights for each in data]).flatten()
        self._powers = torch.stack([each.powers for each in data]).unsqueeze(1)
        self._frames = torch.stack([each.frame for each in data]).mT
        self._has_frame, self._is_ramped = first.has_frame, first.is_ramped
        self._is_logarithmic = first.is_logarithmic
        self._has_errors, self._has_powers = (
            bool(self._errors.any()),
            bool(self._powers.any()),
        )
        self.is_by_row = first.is_by_row
        self.radius = torch.tensor([each.radius for each in data])
        self.is_sharpness_aware = bool(self.radius.any())

    def __call__(self, outputs: Tensor, target: Tensor, progress: float) -> Tensor:
        """Return losses (M, B) of outputs (M, B, C) for labels (M, B); progress is the share of steps, in [0, 1)."""
        rows = target + self._rows  # of the stacked matrices
        begin, end = RAMP
        share = (
            min(max((progress - begin) / (end - begin), 0.0), 1.0)
            if self._is_ramped
            else 1.0
        )
        logits = (
            SCALE * normalize(outputs, dim=-1) @ self._frames
            if self._has_frame
            else outputs
        )
        log_probs = torch.add(logits, self._added[rows], alpha=share).log_softmax(dim=-1)
        losses = -self._weights[rows] * (self._labels[rows] * log_probs).sum(dim=-1)
        if self._has_errors:
            wrong = logits.softmax(dim=-1)
            if self._is_logarithmic:
                wrong = -torch.log1p(-wrong.clamp(max=1 - 1e-6))
            losses = losses + (self._errors[rows] * wrong).sum(dim=-1)
        if self._has_powers:
            losses = losses * (self._powers * log_probs.detach()).sum(dim=-1).exp()
        return losses

    def logits(self, outputs: Tensor, model: int) -> Tensor:
        """Return the logits of the outputs (N, C) of one model."""
        return (
            SCALE * normalize(outputs, dim=-1) @ self._frames[model]
            if self._has_frame
            else outputs
        )
