"""Soft F1 as a loss."""

from torch import Tensor, nn

from mpcs_torch.functional.inputs.checks import check_choice
from mpcs_torch.functional.inputs.soft_labels import flatten_soft
from mpcs_torch.functional.soft.sums import SoftAverage, score_of, soft_sums


class SoftF1Loss(nn.Module):
    """Compute 1 minus `functional.soft_f1` of a batch, for soft labels; in [0, 1], lower is better.

    F1 is a ratio of sums over the batch. ``"macro"`` is noisy on small batches, because some classes may be missing.

    Args:
        average: ``"micro"`` over all elements, ``"macro"`` over classes, or ``"weighted"`` by the sum of labels.

    Raises:
        ValueError: From the constructor or `forward`, if a setting, a shape or a dtype breaks its rule. Values outside
            [0, 1] raise no error; they are clamped.

    Example:
        >>> import torch
        >>> from mpcs_torch.learning import SoftF1Loss
        >>> logits = torch.tensor([[2.0, -1.0], [0.5, 0.0]])
        >>> SoftF1Loss()(logits.softmax(dim=1), torch.tensor([[1.0, 0.0], [0.6, 0.4]]))
        tensor(0.0349)
    """

    def __init__(self, average: SoftAverage = "micro") -> None:
        super().__init__()
        check_choice("average", average, SoftAverage)
        if average == "none":
            raise ValueError("average must be 'micro', 'macro' or 'weighted', because a loss is a scalar.")
        self.average: SoftAverage = average

    def forward(self, preds: Tensor, target: Tensor, ignore: Tensor | None = None) -> Tensor:
        """The loss of probabilities (N,), (N, C) or (N, C, ...) for labels of that shape, a scalar."""
        samples = flatten_soft(preds, target, num_classes=None, sample_weight=None, ignore=ignore)
        sums = soft_sums(samples, samples.predicted.dtype)
        return 1 - score_of(sums, beta=1.0, average=self.average, zero_division=0.0)
