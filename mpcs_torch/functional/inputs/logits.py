"""The inputs of training losses: logits with labels or class probabilities, checked and flattened."""

from math import nan
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from mpcs_torch.errors import Rule, require
from mpcs_torch.functional.inputs.arrays import as_tensor, by_class
from mpcs_torch.functional.inputs.checks import check_choice, check_target
from mpcs_torch.functional.inputs.faults import outside, warn_of_probabilities
from mpcs_torch.functional.inputs.labels import WEIGHT_RULE, check_weight_shape

LossReduction = Literal["mean", "sum", "none"]


class LossSettings(NamedTuple):
    """The settings that losses over logits share with `torch.nn.functional.cross_entropy`."""

    weight: Tensor | None = None
    ignore_index: int = -100
    label_smoothing: float = 0.0
    reduction: LossReduction = "mean"


class LossBatch(NamedTuple):
    """The inputs of a loss for M samples of C classes. No method waits for an accelerator."""

    scores: Tensor
    """Logits (M, C), float32 or float64."""
    target: Tensor
    """The labels as passed in, (M,), int64; or soft targets (M, C), the share of each class, like ``scores``."""
    sample_weight: Tensor | None
    """The weights, (M,), in the dtype of ``scores``; None if all are 1."""
    settings: LossSettings
    """The settings of the loss; its class weights have the dtype of ``scores``."""
    shape: torch.Size
    """The shape of the unreduced losses: that of the labels as passed in."""

    @property
    def is_soft(self) -> bool:
        """Whether ``target`` holds class shares instead of labels."""
        return self.target.ndim == 2

    @property
    def labels(self) -> Tensor:
        """The labels, with 0 for ignored samples: (M,), int64."""
        return torch.where(self.target == self.settings.ignore_index, 0, self.target)

    def mass(self) -> Tensor:
        """Return the weight (M,) of each sample in the mean loss, as in `torch.nn.functional.cross_entropy`."""
        if self.is_soft:
            mass = self.scores.new_ones(len(self.scores))
        else:
            mass = (self.target != self.settings.ignore_index).to(self.scores)
            if self.settings.weight is not None:
                mass = mass * self.settings.weight[self.labels]
        return mass if self.sample_weight is None else mass * self.sample_weight

    def class_shares(self) -> Tensor:
        """Return the class shares (M, C) of soft targets after label smoothing, multiplied by the class weights."""
        weight, smoothing = self.settings.weight, self.settings.label_smoothing
        shares = self.target
        if smoothing != 0:
            shares = shares * (1 - smoothing) + smoothing / shares.shape[1]
        return shares if weight is None else shares * weight

    def cross_entropy(self) -> Tensor:
        """Return the cross entropy of each sample, 0 for ignored samples: (M,)."""
        if self.is_soft:  # torch returns NaN where both share and probability are 0
            return -sum_by_shares(self.class_shares(), self.scores.log_softmax(dim=1))
        return self._torch_cross_entropy("none")

    def mean_cross_entropy(self) -> Tensor:
        """Return the cross entropy after ``settings.reduction``; torch computes it if torch supports the inputs."""
        if (
            self.is_soft
            or self.sample_weight is not None
            or self.settings.reduction == "none"
        ):
            return self.reduced(self.cross_entropy())
        return self._torch_cross_entropy(self.settings.reduction)

    def _torch_cross_entropy(self, reduction: LossReduction) -> Tensor:
        return cross_entropy(
            self.scores,
            self.target,
            self.settings.weight,
            ignore_index=self.settings.ignore_index,
            reduction=reduction,
            label_smoothing=self.settings.label_smoothing,
        )

    def reduced(self, losses: Tensor) -> Tensor:
        """Weigh and reduce ``losses`` (M,), which already include class weights and are 0 for ignored samples."""
        if self.sample_weight is not None:  # a weight of 0 also drops an infinite loss
            losses = torch.where(self.sample_weight == 0, 0.0, losses * self.sample_weight)
        if self.settings.reduction == "none":
            return losses.reshape(self.shape)
        total = losses.sum()
        if self.settings.reduction == "sum":
            return total
        # Without any mass the mean is NaN, as in torch, but its gradient is 0, because the division is by 1.
        mass = self.mass().sum()
        mean = total / torch.where(mass == 0, 1.0, mass)
        return torch.where(mass == 0, nan, mean)


def sum_by_shares(shares: Tensor, logs: Tensor) -> Tensor:
    """Return the sum (M,) of ``logs`` (M, C) over classes, weighted by ``shares`` (M, C); a share of 0 gives 0."""
    return torch.where(shares != 0, shares * logs, 0.0).sum(dim=1)


def loss_batch(
    logits: Tensor, target: Tensor, settings: LossSettings, sample_weight: Tensor | None
) -> LossBatch:
    """Check and flatten logits (N, C, ...) or (C,), and labels (N, ...) or (), or soft targets shaped like logits."""
    weight, ignore_index, label_smoothing, reduction = settings
    require(logits.is_floating_point(), "floating", "logits", logits.dtype)
    if logits.ndim > 1:
        classes, shape = logits.shape[1], logits.shape[:1] + logits.shape[2:]
    else:
        classes, shape = logits.numel() if logits.ndim else 0, torch.Size()
    require(
        classes >= 2,
        "shape",
        "logits",
        logits,
        shape="(N, C), (N, C, ...) or (C,) with C >= 2",
    )
    # Two bytes: float16 or bfloat16.
    dtype = torch.float32 if logits.element_size() == 2 else logits.dtype
    if target.is_floating_point():
        require(
            target.shape == logits.shape,
            "shape_of",
            "target",
            target,
            other="logits",
            shape=tuple(logits.shape),
        )
        require(ignore_index < 0, "below_0_for_shares", "ignore_index", ignore_index)
        flat_target = by_class(target, classes).to(dtype)
        check_values(Rule("finite_shares", "target"), flat_target, torch.finfo(dtype).max)
    else:
        check_target(target, shape)
        flat_target = target.reshape(-1).long()
        check_labels(flat_target, classes, ignore_index)
    require(
        0 <= label_smoothing <= 1,
        "between",
        "label_smoothing",
        label_smoothing,
        minimum=0,
        maximum=1,
    )
    if weight is not None:
        check_class_count(weight, classes)
        settings = settings._replace(weight=weight.to(logits.device, dtype))
    check_choice("reduction", reduction, LossReduction)
    if sample_weight is not None:
        sample_weight = checked_sample_weight(sample_weight, shape).reshape(-1)
        sample_weight = sample_weight.to(logits.device, dtype)
    scores = by_class(logits, classes)
    warn_of_probabilities(scores)
    return LossBatch(scores.to(dtype), flat_target, sample_weight, settings, shape)


def check_labels(target: Tensor, classes: int, ignore_index: int) -> None:
    """Check on the CPU that int64 labels are classes or ``ignore_index``; on an accelerator, check nothing."""
    counted = torch.where(target == ignore_index, 0, target)
    rule = Rule("class_indices_or", "target", last=classes - 1, ignored=ignore_index)
    check_values(rule, counted, classes - 1)


def check_values(rule: Rule, values: Tensor, highest_allowed: float) -> None:
    """Check on the CPU that ``values`` are from 0 to the highest allowed; on an accelerator, check nothing."""
    if not values.is_cpu or torch.compiler.is_compiling():
        return
    bad = outside(values, 0.0, highest_allowed)
    try:
        is_valid = not bad.any()
    except RuntimeError:  # inside vmap, values cannot be read
        return
    if not is_valid:
        raise rule.broken_by(values[bad][0].item())


def checked_sample_weight(sample_weight: Tensor, shape: torch.Size) -> Tensor:
    """Convert sample weights to a tensor; check their shape and, on the CPU, that they are finite and >= 0."""
    sample_weight = as_tensor(sample_weight, "sample_weight")
    check_weight_shape(sample_weight, shape)
    values = sample_weight if sample_weight.is_floating_point() else sample_weight.double()
    check_values(WEIGHT_RULE, values, torch.finfo(values.dtype).max)
    return sample_weight


def check_class_weight(weight: Tensor | None, num_classes: int | None) -> Tensor | None:
    """Convert class weights to a tensor; check that they are (C,), finite and >= 0, which waits for an accelerator."""
    if weight is None:
        return None
    weight = as_tensor(weight, "weight")
    check_class_count(weight, num_classes)
    is_valid = not weight.is_complex() and (weight.isfinite() & (weight >= 0)).all()
    require(is_valid, "class_weights", "weight", weight.tolist())
    return weight


def check_class_count(weight: Tensor, num_classes: int | None) -> None:
    """Check that ``weight`` has one weight for each class."""
    is_by_class = weight.ndim == 1 and num_classes in (None, len(weight))
    require(is_by_class, "shape", "weight", weight, shape=f"({num_classes or 'C'},)")
