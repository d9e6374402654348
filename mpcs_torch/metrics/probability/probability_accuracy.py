"""ProbabilityAccuracy: what a classifier says of its own certainty, beside how often it is right."""

from typing import Any

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_num_classes
from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.probabilities import flatten_samples, sample_rules
from mpcs_torch.functional.probability.generalized import (
    DECISIVE,
    GEOMETRIC,
    ROBUST,
    ProbabilityMeans,
    mean_of,
    power_sum,
)
from mpcs_torch.functional.probability.measured import (
    MeasuredProbabilities,
    Span,
    calibration_slope,
    check_bins,
    measure,
)
from mpcs_torch.functional.probability.measured_counts import count_probabilities, grid_size, measure_counts
from mpcs_torch.metrics.base import SumMetric

POWERS = (GEOMETRIC, DECISIVE, ROBUST)


class ProbabilityAccuracy(SumMetric):
    """Geometric accuracy, decisiveness and robustness, reported and measured, and the slope between them.

    `compute` gives a dictionary of float64 scalars: ``reported_`` and ``measured_`` ``geometric_accuracy``,
    ``decisiveness`` and ``robustness``, each in [0, 1], higher is better, and ``slope``: above 1 the classifier is
    underconfident, below 1 overconfident. `bins` gives what `mpcs_torch.plots.reliability` draws. Equations and rules
    are those of `mpcs_torch.functional.geometric_accuracy`, `measured_probabilities` and `calibration_slope`.

    All N x C probabilities are kept, unless ``cells`` is given: then they are counted in so many cells of [0, 1], and
    memory (16 bytes a cell) does not grow. Reported means are exact in both. On 10^6 x 10 probabilities of three kinds
    measured means were off by at most 1.2e-4 with 2 000 cells and 7.0e-5 with 20 000, slopes by 2.7e-4 and 1.3e-4
    (``python -m tests.benchmarks.histogram_error``); with few samples or many classes they can be off by more.

    Args:
        num_classes: C.
        from_logits: Whether ``preds`` are logits rather than probabilities. Never guessed.
        epsilon: Floor of probabilities and rates, in [0, 1).
        n_bins: How many bins at most.
        delta: Width of the cells of singularities, 1 divided by a whole number; None for none.
        span: ``"data"`` leaves out probabilities of wrong classes beyond those of true ones; ``"unit"`` lets the outer
            bins reach 0 and 1.
        cells: None to keep everything, or a multiple of 1 / delta.
        ignore_index: Label of samples to leave out.
        validate_args: Whether to look for bad values in batches. Without, they give a wrong value silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule, and from `compute` if no
            batch was seen. Away from the CPU bad values are reported by `compute`.

    Example:
        >>> import torch
        >>> from mpcs_torch import ProbabilityAccuracy
        >>> accuracy = ProbabilityAccuracy(num_classes=2, from_logits=False, n_bins=2)
        >>> probs = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
        >>> accuracy.update(probs, torch.tensor([0, 0, 1, 1]))
        >>> values = accuracy.compute()
        >>> print(f"{values['reported_decisiveness']:.3f} {values['measured_decisiveness']:.3f} {values['slope']:.3f}")
        0.600 0.750 0.742
    """

    higher_is_better = None

    probs: list[Tensor]
    labels: list[Tensor]
    power_sums: Tensor
    sample_count: Tensor
    correct_counts: Tensor
    incorrect_counts: Tensor

    def __init__(
        self,
        num_classes: int,
        *,
        from_logits: bool = True,
        epsilon: float = 0.005,
        n_bins: int = 20,
        delta: float | None = 0.005,
        span: Span = "data",
        cells: int | None = None,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        check_num_classes(num_classes)
        check_bins(epsilon, n_bins, delta, span)
        _check_cells(cells, delta)
        super().__init__(locals(), value_rules=sample_rules(num_classes, from_logits=from_logits))
        self.add_sum("power_sums", shape=(len(POWERS),), dtype=torch.float64)
        self.add_sum("sample_count", dtype=torch.float64)
        if cells is None:
            self.add_state("probs", [], dist_reduce_fx="cat")
            self.add_state("labels", [], dist_reduce_fx="cat")
        else:
            self.add_sum("correct_counts", shape=(grid_size(cells),), dtype=torch.int64)
            self.add_sum("incorrect_counts", shape=(grid_size(cells),), dtype=torch.int64)

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch: preds (N, C) or (N, C, ...), target (N,) or (N, ...)."""
        samples = flatten_samples(
            preds.detach(),
            target,
            num_classes=self.num_classes,
            from_logits=self.from_logits,
            ignore_index=self.ignore_index,
            sample_weight=None,
        )
        self.admit(samples.faults)
        of_true = samples.probs.gather(1, samples.target.unsqueeze(1)).squeeze(1)
        sums = [power_sum(of_true, samples.weight, power, self.epsilon) for power in POWERS]
        self.power_sums = self.power_sums + torch.stack(sums)
        self.sample_count = self.sample_count + samples.weight.sum()
        counted = samples.weight > 0
        if self.cells is None:
            self.probs.append(samples.probs if self.from_logits else samples.probs.clone())  # may be the caller's own
            self.labels.append(torch.where(counted, samples.target, -1))
        else:
            correct, incorrect = count_probabilities(samples.probs, samples.target, counted, self.cells)
            self.correct_counts = self.correct_counts + correct
            self.incorrect_counts = self.incorrect_counts + incorrect

    def _sync_dist(self, *args: Any, **kwargs: Any) -> None:
        if self.cells is None:  # a process without batches must send what the others do
            nothing = torch.zeros(0, self.num_classes, device=self.device)
            self.probs = [torch.cat([nothing, *self.probs]).to(widest_float(self.device))]
            self.labels = [torch.cat([nothing[:, 0].long(), *self.labels])]
        super()._sync_dist(*args, **kwargs)

    def compute(self) -> dict[str, Tensor]:
        """The reported and the measured means, and the slope."""
        measured = self.bins().means
        reported = self.reported()
        named = {"reported": reported, "measured": measured}
        values = {f"{kind}_{name}": value for kind, means in named.items() for name, value in means._asdict().items()}
        return {**values, "slope": calibration_slope(reported, measured)}

    def reported(self) -> ProbabilityMeans:
        """The means of the probabilities that the classifier gave the true classes."""
        self.check_computable()
        sums = zip(self.power_sums, POWERS, strict=True)
        return ProbabilityMeans(*(mean_of(total, self.sample_count, power) for total, power in sums))

    def bins(self) -> MeasuredProbabilities:
        """The bins of what was seen, and the measured means."""
        self.check_computable()
        if self.cells is not None:
            counts = self.correct_counts, self.incorrect_counts
            return measure_counts(*counts, self.cells, self.epsilon, self.n_bins, self.delta, self.span)
        # After processes have shared them, the lists are tensors.
        probs, labels = (torch.cat(held) if isinstance(held, list) else held for held in (self.probs, self.labels))
        counted = labels >= 0
        return measure(probs[counted], labels[counted], self.epsilon, self.n_bins, self.delta, self.span)


def _check_cells(cells: int | None, delta: float | None) -> None:
    if cells is None:
        return
    singular = 1 if delta is None else round(1 / delta)
    if cells < 1 or cells % singular:
        raise ValueError(f"cells must be None or a multiple of 1 / delta = {singular}, but got {cells}.")
