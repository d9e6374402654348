"""ProbabilityAccuracy: the Metric of `functional.probability_accuracy`."""

from typing import Any

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import detached
from mpcs_torch.functional.inputs.probabilities import flatten_samples
from mpcs_torch.functional.probability import probability_accuracy as kernel
from mpcs_torch.functional.probability.probability_accuracy import BinSpan
from mpcs_torch.functional.probability.scores import (
    ProbabilityMeans,
)
from mpcs_torch.metrics.measure_metric import DefinedMetric


class ProbabilityAccuracy(DefinedMetric):
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
    sums: Tensor
    """(K,): the sums of the measure `mpcs_torch.functional.probability.probability_accuracy`; only with ``cells``."""
    measure: kernel.ProbabilityAccuracy

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
        measure = kernel.ProbabilityAccuracy(
            num_classes, cells, from_logits, epsilon, n_bins, delta, span, ignore_index
        )
        state_settings = {name: getattr(measure, name) for name in measure.sums_settings}
        super().__init__(measure, validate_args, kwargs, state_settings)
        if cells is None:
            self.add_samples("probs", shape=(num_classes,))
            self.add_samples("true_labels", dtype=torch.int64)
        else:
            self.add_sum("sums", shape=(measure.width,))

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch: preds (N, C) or (N, C, ...), target (N,) or (N, ...)."""
        samples = self.measure.rows(detached(preds), target)
        self.admit(samples.find_faults)
        if self.cells is not None:
            self.add(sums=self.measure.sums(samples))
            return
        probs = samples.probs()
        # Probabilities that were passed in may share memory with the caller.
        kept = probs if self.from_logits else probs.clone()
        self.add(
            probs=kept,
            true_labels=torch.where(samples.labels.counted, samples.labels.target, -1),
        )

    def compute(self) -> dict[str, Tensor]:
        """Return the reported means, the measured means and the slope by name: float64 scalars."""
        reported, measured = self._means()
        return kernel.compare_means(reported, measured.means)

    def reported(self) -> ProbabilityMeans:
        """Return the means of the predicted probabilities of the true classes."""
        reported, _ = self._means()
        return reported

    def bins(self) -> kernel.MeasuredProbabilities:
        """Return the bins of the predicted probabilities of all samples, and the generalized means of their rates.

        The rate of a bin is the share of its probabilities that belong to true classes.
        """
        _, measured = self._means()
        return measured

    def _means(self) -> tuple[ProbabilityMeans, kernel.MeasuredProbabilities]:
        with self.gathered():
            self.check_computable()
            if self.cells is not None:
                sums = self.measure.named(self.sums)
                return self.measure.reported(sums), self.measure.measured(sums)
            probs = self.kept_samples("probs")
            labels = self.kept_samples("true_labels")
        return self.measure.exact(
            flatten_samples(probs, labels, self.num_classes, "probs", ignore_index=-1)
        )

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # the figure shows the bins
        from mpcs_torch.plots.decisions import reliability

        reported, measured = self._means()
        return reliability(measured, reported, title, on=on)
