"""Soft F as a loss."""

from torch import Tensor, nn

from mpcs_torch.functional.soft import soft_f1
from mpcs_torch.functional.soft_sums import SoftAverage, check_soft_settings


class SoftF1Loss(nn.Module):
    """1 minus `functional.soft_f1` of a batch: pulls predictions to soft labels; in [0, 1], lower is better.

    F is a ratio of sums over the batch, so a class wants to occur in it: small batches make ``"macro"`` noisy.

    Args:
        average: ``"micro"`` over all elements, ``"macro"``, or ``"weighted"`` by how much of each class is true.

    Raises:
        ValueError: From the constructor or `forward`, if an argument breaks its rule.

    Example:
        >>> import torch
        >>> from mpcs_torch.learning import SoftF1Loss
        >>> logits = torch.tensor([[2.0, -1.0], [0.5, 0.0]])
        >>> SoftF1Loss()(logits.softmax(dim=1), torch.tensor([[1.0, 0.0], [0.6, 0.4]]))
        tensor(0.0349)
    """

    def __init__(self, average: SoftAverage = "micro") -> None:
        super().__init__()
        check_soft_settings(average, 0.0)
        if average == "none":
            raise ValueError("average must be 'micro', 'macro' or 'weighted', because a loss is a scalar.")
        self.average: SoftAverage = average

    def forward(self, preds: Tensor, target: Tensor, ignore: Tensor | None = None) -> Tensor:
        """The loss of probabilities (N,), (N, C) or (N, C, ...) for labels of that shape, a scalar."""
        return 1 - soft_f1(preds, target, average=self.average, ignore=ignore)
