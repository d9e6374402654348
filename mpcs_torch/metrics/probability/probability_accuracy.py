"""ProbabilityAccuracy: the Metric of `functional.probability_accuracy`."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import detached
from mpcs_torch.functional.inputs.checks import check_num_classes
from mpcs_torch.functional.inputs.labels import value_rules
from mpcs_torch.functional.inputs.probabilities import SCORE_RULES, flatten_samples, input_scale
from mpcs_torch.functional.probability import probability_accuracy as kernel
from mpcs_torch.functional.probability.probability_accuracy import BinSpan
from mpcs_torch.functional.probability.scores import (
    POWERS,
    ProbabilityMeans,
    means_of_sums,
    power_sums,
    prob_of_true_class,
)
from mpcs_torch.metrics.base import SumMetric


class ProbabilityAccuracy(SumMetric):
    """Compute geometric accuracy, decisiveness and robustness, as reported and as measured, and the slope between them.

    `compute` returns a dictionary of float64 scalars: ``slope``, and ``geometric_accuracy``, ``decisiveness`` and
    ``robustness`` with the prefix ``reported_`` or ``measured_``, in [0, 1], higher is better. A slope above 1 means
    that the classifier is underconfident, below 1 overconfident. `mpcs_torch.plots.reliability` draws `bins` and
    `reported`. Equations, rules and arguments are those of `mpcs_torch.functional.probability_accuracy`;
    ``validate_args`` and errors are those of `Accuracy`.

    All N x C probabilities are kept. With ``cells``, they are instead counted in a histogram of constant size (16 bytes
    a cell), and only reported means are exact. On 10^6 x 10 probabilities and with 2 000 cells, measured means
    had errors of at most 1.2e-4, and slopes of at most 2.7e-4. With few samples or many classes, errors can be larger.

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
    """The probabilities, a tensor (M, C) for each batch; only if ``cells`` is None."""
    true_labels: list[Tensor]
    """The labels, a tensor (M,) for each batch, -1 for ignored samples; only if ``cells`` is None."""
    powers: Tensor
    """(3,): the sum of the probabilities of true classes (at least ``epsilon``), raised to each of `POWERS`; only if
    ``cells`` is None."""
    samples: Tensor
    """Scalar: the number of samples; only if ``cells`` is None."""
    sums: Tensor
    """(K,), if ``cells`` is set: the sums of the measure `mpcs_torch.functional.probability.probability_accuracy`."""
    measure: kernel.ProbabilityAccuracy | None
    __jit_ignored_attributes__: ClassVar[list[str]] = [*SumMetric.__jit_ignored_attributes__, "measure"]

    def __init__(
        self,
        num_classes: int,
        *,
        from_logits: bool = True,
        epsilon: float = 0.005,
        n_bins: int = 20,
        delta: float | None = 0.005,
        span: BinSpan = "data",
        cells: int | None = None,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        check_num_classes(num_classes)
        kernel.check_bins(epsilon, n_bins, delta, span)
        kernel.check_cells(cells, delta)
        scale = input_scale(from_logits)
        measure = None
        if cells is not None:
            measure = kernel.ProbabilityAccuracy(
                num_classes, cells, from_logits, epsilon, n_bins, delta, span, ignore_index
            )
        super().__init__(
            locals(),
            value_rules=value_rules(num_classes, SCORE_RULES[scale]),
            state_settings=("num_classes", "from_logits", "epsilon", "cells", "ignore_index"),
        )
        if measure is None:
            self.add_sum("powers", shape=(len(POWERS),))
            self.add_sum("samples")
            self.add_samples("probs", shape=(num_classes,))
            self.add_samples("true_labels", dtype=torch.int64)
        else:
            self.add_sum("sums", shape=(measure.width,))

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch: preds (N, C) or (N, C, ...), target (N,) or (N, ...)."""
        samples = flatten_samples(detached(preds), target, self.num_classes, self.scale, self.ignore_index)
        self.admit(samples.find_faults)
        if self.measure is not None:
            self.add(sums=self.measure.sums(samples))
            return
        probs = samples.probs()
        labels = samples.labels
        true_probs = samples.true_class_values(probs)
        self.add(powers=power_sums(true_probs, labels.weight, self.epsilon), samples=labels.weight.sum())
        kept = probs if self.from_logits else probs.clone()  # the probabilities may share memory with the caller
        self.add(probs=kept, true_labels=torch.where(labels.counted, labels.target, -1))

    def compute(self) -> dict[str, Tensor]:
        """Return the reported means, the measured means and the slope by name: float64 scalars."""
        return kernel.compare_means(self.reported(), self.bins().means)

    def reported(self) -> ProbabilityMeans:
        """Return the means of the predicted probabilities of the true classes."""
        with self.gathered():
            self.check_computable()
            if self.measure is not None:
                return self.measure.reported(self.measure.named(self.sums))
            return means_of_sums(self.powers, self.samples)

    def bins(self) -> kernel.MeasuredProbabilities:
        """Return the bins of the predicted probabilities of all samples, and the generalized means of their rates.

        The rate of a bin is the share of its probabilities that belong to true classes.
        """
        settings = self.epsilon, self.n_bins, self.delta, self.span
        with self.gathered():
            self.check_computable()
            if self.measure is not None:
                return self.measure.measured(self.measure.named(self.sums))
            probs = self.kept_samples("probs")
            labels = self.kept_samples("true_labels")
        samples = flatten_samples(probs, labels, self.num_classes, "probs", ignore_index=-1)
        return kernel.measure_samples(samples, samples.map(prob_of_true_class), *settings)

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # the figure shows the bins
        from mpcs_torch.plots.decisions import reliability

        return reliability(self.bins(), self.reported(), title, on=on)
