"""Normalisation of scores with statistics of other scores, against impostors (the cohort)."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import Rule, require
from mpcs_torch.functional.detection.errors import check_vector
from mpcs_torch.functional.inputs.faults import Fault, outside, raise_first


class CohortStatistics(NamedTuple):
    """The mean and standard deviation of the scores of each of K names, from `cohort_statistics`: float64 (K,) each."""

    mean: Tensor
    deviation: Tensor

    def of(self, names: Tensor) -> "CohortStatistics":
        """Return the statistics of the name of each of N trials, (N,) each; ``names`` (N,) are from 0 to K - 1."""
        return CohortStatistics(self.mean[names], self.deviation[names])


def cohort_statistics(
    preds: Tensor, names: Tensor, *, num_names: int, top: int | None = None
) -> CohortStatistics:
    """Compute the mean and the standard deviation of scores against a cohort of impostors, for each name.

    A name is an enrolment (a speaker model) or a test segment. The standard deviation of n scores divides by n, not by
    n - 1; n may differ between names.

    Args:
        preds: ``(M,)`` scores, floating point and finite.
        names: ``(M,)`` integers from 0 to K - 1: the name of each score.
        num_names: K, at least 1; each name must have at least two distinct scores.
        top: The number of highest scores of each name to use, at least 2, for adaptive normalisation. Default: all.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above, or if a name has no two distinct
            scores, so that their deviation is not above 0.

    Example:
        >>> cohort_statistics(torch.tensor([1.0, 3.0, 0.0, 4.0]), torch.tensor([0, 0, 1, 1]), num_names=2).mean
        tensor([2., 2.], dtype=torch.float64)
    """
    require(num_names >= 1, "at_least", "num_names", num_names, minimum=1)
    require(top is None or top >= 2, "at_least", "top", top, minimum=2)
    check_vector(preds, "M")
    is_alike = not names.is_floating_point() and names.shape == preds.shape
    require(is_alike, "integer_shape", "names", names, shape=tuple(preds.shape))
    name_rule = Rule("between", "names", minimum=0, maximum=num_names - 1)
    raise_first(
        [
            Fault(Rule("finite", "preds"), preds, ~preds.isfinite()),
            Fault(name_rule, names, outside(names, 0, num_names - 1)),
        ]
    )
    counts = names.bincount(minlength=num_names)
    by_name = preds.double()[names.argsort(stable=True)].split(counts.tolist())  # type: ignore[no-untyped-call]
    if top is not None:
        by_name = tuple(scores.topk(min(top, len(scores))).values for scores in by_name)
    mean = torch.stack([scores.mean() for scores in by_name])
    deviation = torch.stack(
        [(scores - scores.mean()).square().mean().sqrt() for scores in by_name]
    )
    bad = (~(deviation > 0)).nonzero().flatten().tolist()
    require(not bad, "cohort", "preds", names=bad)
    return CohortStatistics(mean, deviation)


def normalize_scores(
    preds: Tensor,
    *,
    enrollment: CohortStatistics | None = None,
    test: CohortStatistics | None = None,
) -> Tensor:
    r"""Subtract the mean of cohort (impostor) scores from each score, and divide by their standard deviation.

    This is z-norm with ``enrollment`` alone, and t-norm with ``test`` alone. With both arguments it is s-norm, the mean
    of z-norm and t-norm (adaptive s-norm if `cohort_statistics` used only the ``top`` scores):

    .. math:: \frac{1}{2} \left( \frac{s - \mu_e}{\sigma_e} + \frac{s - \mu_t}{\sigma_t} \right)

    Args:
        preds: ``(N,)`` scores, floating point.
        enrollment: The statistics of the enrolment of each trial, ``(N,)``, from `CohortStatistics.of`.
        test: The statistics of the test segment of each trial, ``(N,)``.

    Returns:
        ``(N,)``, float64.

    Raises:
        ValueError: If ``enrollment`` and ``test`` are both None, or a shape or a dtype breaks its rule above.

    References:
        Auckenthaler, Carey, Lloyd-Thomas: Score normalization for text-independent speaker verification systems, 2000
        (z-norm, t-norm); Kenny: Bayesian speaker verification with heavy-tailed priors, 2010 (s-norm); Matejka and
        others: Analysis of score normalization in multilingual speaker recognition, 2017 (adaptive s-norm 1).

    Example:
        >>> cohort = cohort_statistics(torch.tensor([1.0, 3.0, 0.0, 4.0]), torch.tensor([0, 0, 1, 1]), num_names=2)
        >>> normalize_scores(torch.tensor([4.0, 4.0]), enrollment=cohort.of(torch.tensor([0, 1])))
        tensor([2., 1.], dtype=torch.float64)
    """
    cohorts = [statistics for statistics in (enrollment, test) if statistics is not None]
    require(cohorts, "given_or", "enrollment", other="test")
    check_vector(preds, "N")
    for statistics in cohorts:
        is_alike = statistics.mean.shape == preds.shape
        require(
            is_alike,
            "shape_of",
            "the statistics",
            statistics.mean,
            other="preds",
            shape=tuple(preds.shape),
        )
    parts = [
        (preds.double() - statistics.mean) / statistics.deviation for statistics in cohorts
    ]
    return torch.stack(parts).mean(dim=0)
