"""The factor of the loss in the paper's learning runs."""

from typing import Any

import torch
from torch import Tensor

from mpcs_torch.errors import require


class ConcernLossScale:
    """Multiply the loss of each batch by the latest evaluation score.

    In the paper on the Meta Pattern Concern Score (MPCS), the score is the MPCS of the training set. Use this only to
    reproduce the paper: over 20 seeds, it led to 1.7 % more dangerous errors than the plain loss.

    Example:
        >>> import torch
        >>> from mpcs_torch.trainer.loss_scale import ConcernLossScale
        >>> scale = ConcernLossScale()
        >>> scale.update(torch.tensor(0.5))  # the score of an evaluation
        >>> scale(torch.tensor(2.0))
        tensor(1.)
    """

    def __init__(self) -> None:
        self.score = 1.0

    def update(self, score: float | Tensor) -> None:
        """Set the score, a finite number >= 0. Before the first update, the score is 1.

        Raises:
            ValueError: If the score is negative or not finite; the score is then unchanged.
        """
        value = float(score)
        require(0 <= value < torch.inf, "finite_at_least", "score", value, minimum=0)
        self.score = value

    def __call__(self, loss: Tensor) -> Tensor:
        """Return the loss times the latest score."""
        return loss * self.score

    def state_dict(self) -> dict[str, Any]:
        """Return the latest score."""
        return {"score": self.score}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the saved score."""
        self.update(state["score"])
