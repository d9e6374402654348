"""The generalized mean of the probability of the true class as a loss."""

from math import isfinite

from torch import Tensor, nn

from mpcs_torch.functional.probability.mean_loss import generalized_mean_loss


class GeneralizedMeanLoss(nn.Module):
    """`functional.generalized_mean_loss` as a module: -log of the mean of a batch; in nats, lower is better.

    Args:
        power: -2/3 is the loss of robustness, 0 cross entropy, and 1 the loss of decisiveness.
        ignore_index: The label of samples that are ignored.

    Raises:
        ValueError: From the constructor or `forward`, if an argument breaks its rule.

    Example:
        >>> import torch
        >>> from mpcs_torch.learning import GeneralizedMeanLoss
        >>> logits, target = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, 3.0]]), torch.tensor([0, 0, 1])
        >>> [round(GeneralizedMeanLoss(power)(logits, target).item(), 4) for power in (-2 / 3, 0, 1)]
        [0.6153, 0.4963, 0.3556]
    """

    def __init__(self, power: float, *, ignore_index: int = -100) -> None:
        super().__init__()
        if not isfinite(power):
            raise ValueError(f"power must be finite, but got {power}.")
        self.power, self.ignore_index = power, ignore_index

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Compute the loss of logits (N, C, ...) for labels (N, ...)."""
        return generalized_mean_loss(logits, target, power=self.power, ignore_index=self.ignore_index)
