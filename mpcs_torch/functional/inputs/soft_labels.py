"""Soft labels (degrees of truth in [0, 1]) and predictions of any shape, flattened to M samples."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import Rule, require
from mpcs_torch.functional.inputs.arrays import (
    as_tensor,
    as_tensors,
    at_rows,
    by_class,
    concat_chunks,
    map_chunks,
)
from mpcs_torch.functional.inputs.checks import check_floating, widened
from mpcs_torch.functional.inputs.faults import Fault, outside
from mpcs_torch.functional.inputs.labels import (
    WEIGHT_RULE,
    Bins,
    find_bad_weights,
    flatten_weight,
)

SOFT_RULES = (Rule("degrees", "target"), Rule("degrees", "preds"), WEIGHT_RULE)
ROUNDING = 1e-6
"""The tolerated distance from [0, 1], because the mean of float32 values is rounded."""
SHARE_RULE = Rule("shares_of_annotators", "target")


class SoftSamples(NamedTuple):
    """A batch of M samples with a soft label and a prediction in [0, 1] for each of C classes."""

    preds: Tensor
    """The predictions as passed in: (M, C), floating point."""
    target: Tensor
    """The soft labels as passed in: (M, C)."""
    ignored: Tensor | None
    """(M, C), bool: the values to ignore; None to ignore nothing."""
    weight: Tensor
    """(M,): the sample weights, float64 (float32 on MPS)."""
    is_weighted: bool
    """Whether some weights may not be 1."""

    @property
    def predicted(self) -> Tensor:
        """Predictions clamped to [0, 1], 0 if ignored: (M, C), float64 if ``preds`` or ``target`` is, else float32."""
        return self._filled(self.preds).clamp(0, 1)

    @property
    def actual(self) -> Tensor:
        """Labels clamped to [0, 1], 0 if ignored: (M, C), float64 if ``preds`` or ``target`` is, else float32."""
        return self._filled(self.target).clamp(0, 1)

    @property
    def counted(self) -> Tensor:
        """(M, C), bool: the values that are not ignored."""
        if self.ignored is None:
            return torch.ones_like(self.preds, dtype=torch.bool)
        return ~self.ignored

    def _filled(self, values: Tensor) -> Tensor:
        """Return ``values`` (M, C) with 0 for those to ignore, in the common dtype of ``preds`` and ``target``."""
        has_float64 = torch.float64 in (self.preds.dtype, self.target.dtype)
        values = values.to(torch.float64 if has_float64 else torch.float32)
        return values if self.ignored is None else torch.where(self.ignored, 0.0, values)

    def at(self, rows: slice) -> "SoftSamples":
        """Return the samples in ``rows``."""
        return at_rows(self, rows)

    def find_faults(self) -> Sequence[Fault]:
        """Return a `Fault`, the check of one validation rule, for each of `SOFT_RULES`, in that order."""
        target_rule, preds_rule, _ = SOFT_RULES
        target, preds = self.target.detach(), self.preds.detach()
        return (
            Fault(target_rule, target, self._broken(target)),
            Fault(preds_rule, preds, self._broken(preds)),
            find_bad_weights(self.weight),
        )

    def _broken(self, values: Tensor) -> Tensor:
        """Return whether one of the ``values`` (M, C) of each sample, (M,), is not a degree of truth."""

        def is_outside(rows: slice) -> list[Tensor]:
            degrees = self.at(rows)._filled(values[rows])
            is_below = outside(degrees.amin(dim=1), -ROUNDING)
            is_above = outside(degrees.amax(dim=1), highest=1 + ROUNDING)
            return [is_below | is_above]

        (broken,) = concat_chunks(is_outside, values)
        return broken

    def sums(
        self,
        element_values: Callable[["SoftSamples"], Sequence[Tensor]],
        bins: Bins | None = None,
    ) -> list[Tensor]:
        """Return weighted sums over the samples: (C,) each, or (B, C) with B bins; float64 (float32 on MPS).

        ``element_values`` is called with slices of the samples, and returns one tensor (M, C) of values for each sum.
        """

        def chunk_sums(rows: slice) -> list[Tensor]:
            chunk = self.at(rows)
            sums: list[Tensor] = []  # torch.compile cannot trace list[Tensor]()
            for values in element_values(chunk):
                weighted = values
                if self.is_weighted:
                    weighted = values * chunk.weight.unsqueeze(1)
                weighted = widened(weighted)  # faster than a sum with a dtype
                sums.append(weighted.sum(dim=0) if bins is None else bins.sum(weighted))
            return sums

        if bins is not None:
            return chunk_sums(slice(None))
        chunks = map_chunks(chunk_sums, self.preds, self.target)
        return [torch.stack(sums).sum(0) for sums in zip(*chunks, strict=True)]


def flatten_soft(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int | None,
    sample_weight: Tensor | None,
    ignore: Tensor | None,
) -> SoftSamples:
    """Check shapes and dtypes (C only if ``num_classes`` is given); flatten (N,), (N, C) or (N, C, ...) to (M, C)."""
    preds, target, sample_weight = as_tensors(preds, target, sample_weight)
    ignore = None if ignore is None else as_tensor(ignore, "ignore")
    check_floating(preds)
    is_real = preds.ndim > 0 and not target.is_complex()
    _check_alike("target", target, preds, kind="real", is_kind=is_real)
    if ignore is not None:
        is_bool = ignore.dtype == torch.bool
        _check_alike("ignore", ignore, preds, kind="bool", is_kind=is_bool)
    classes = preds.shape[1] if preds.ndim > 1 else 1
    require(
        num_classes is None or classes == num_classes,
        "class_dimension",
        "preds",
        preds,
        classes=num_classes,
    )
    weight = flatten_weight(sample_weight, preds.shape[:1] + preds.shape[2:], preds.device)
    ignored = None if ignore is None else by_class(ignore, classes)
    return SoftSamples(
        by_class(preds, classes),
        by_class(target, classes),
        ignored,
        weight,
        sample_weight is not None,
    )


def _check_alike(
    name: str, values: Tensor, preds: Tensor, *, kind: str, is_kind: bool
) -> None:
    is_alike = is_kind and values.shape == preds.shape
    require(
        is_alike, "alike", name, values, kind=kind, other="preds", shape=tuple(preds.shape)
    )


def annotator_shares(degrees: Tensor) -> tuple[Tensor, Fault]:
    """Divide the rows of ``degrees`` (M, C) by their sums; also return a check that the sums are about 1."""
    total = degrees.sum(dim=1, keepdim=True)
    # Shares may be rounded to two decimals.
    tolerance = 0.005 * degrees.count_nonzero(dim=1) + ROUNDING
    broken = outside((total.squeeze(1) - 1) / tolerance, -1, 1)
    return degrees / total, Fault(SHARE_RULE, degrees, broken)
