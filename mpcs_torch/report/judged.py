"""The test errors of the model of one epoch, its worst samples, and its figures of certainty."""

from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import printable
from mpcs_torch.evaluation import evaluate
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.functional import confusion_matrix
from mpcs_torch.functional.concern.risk_coverage_area import risks_of
from mpcs_torch.metrics.probability.probability_accuracy import ProbabilityAccuracy
from mpcs_torch.plots import reliability
from mpcs_torch.plots.samples import kind_of_sample, sample_figure
from mpcs_torch.report.figures import errors_of, kind_of
from mpcs_torch.report.render import Drawing, draw
from mpcs_torch.trainer.data import Split
from mpcs_torch.trainer.trained import TrainedRun

MOST_SAMPLES = 12
"""The number of samples that are shown: a look at them takes a minute."""


@dataclass(frozen=True)
class Judged:
    """The predictions of an epoch for the test samples."""

    logits: Tensor
    """(N, C), finite."""
    test: Split
    concern: ConcernSpec

    @cached_property
    def probs(self) -> Tensor:
        """float64 (N, C)."""
        return self.logits.double().softmax(dim=1)

    @cached_property
    def labels(self) -> Tensor:
        """int64 (N,)."""
        return self.test.labels.cpu()

    @cached_property
    def decisions(self) -> Tensor:
        """int64 (N,): the most probable class."""
        return self.logits.argmax(dim=1)

    @cached_property
    def is_dangerous(self) -> Tensor:
        """Bool (N,): which decisions are dangerous errors."""
        return self.concern.dangerous_pairs()[self.labels, self.decisions]

    @cached_property
    def confusion(self) -> Tensor:
        """int64 (C, C): rows true classes."""
        return confusion_matrix(self.decisions, self.labels, num_classes=self.logits.shape[1]).long()

    @cached_property
    def scores(self) -> ClassifierScores:
        """What was counted by class, with intervals for independent samples."""
        measured = ["misclassification_rate", "dangerous_rate"]
        return evaluate(self.decisions, self.labels, concern=self.concern, metrics=measured).first

    @property
    def errors(self) -> tuple[int, int]:
        """The number of errors, and of dangerous ones."""
        errors, dangerous = errors_of(self.confusion, self.concern)
        return round(errors), round(dangerous)

    def worst_samples(self) -> list[dict[str, object]]:
        """Draw and describe the wrongly decided samples with the highest confidence times concern, for a page.

        There are none if they cannot be drawn.
        """
        kind = kind_of_sample(tuple(self.test.inputs.shape[1:]))
        if kind is None:
            return []
        confidence = self.probs.amax(dim=1)
        weights = self.concern.matrix()[self.labels, self.decisions]
        cost = confidence * weights * (self.decisions != self.labels)
        names = [printable(name) for name in self.concern.classes]
        shown: list[dict[str, object]] = []
        for place in cost.argsort(descending=True, stable=True)[:MOST_SAMPLES].tolist():
            if not cost[place] > 0:
                break
            pair = int(self.labels[place]), int(self.decisions[place])
            true, predicted = (names[label] for label in pair)
            percent = f"{100 * confidence[place].item():.1f} %"
            alt = f"Test sample {place}: {true}, predicted {predicted} with confidence {percent}."
            described = {"true": true, "predicted": predicted, "confidence": percent, "number": place}
            described |= {"kind": kind_of(self.concern, *pair), "concern": f"{weights[place].item():g}"}
            drawing = draw(sample_figure(self.test.inputs[place].cpu().float()), alt)
            shown.append({"drawing": drawing, "is_image": kind == "image", **described})
        return shown

    @property
    def risks(self) -> tuple[Tensor, Tensor]:
        """The estimated risk of a dangerous error of each decision, float64 (N,), and which ones are such errors."""
        return risks_of(self.probs, self.decisions, self.concern.dangerous_pairs()), self.is_dangerous

    @property
    def trials(self) -> tuple[Tensor, Tensor] | None:
        """The scores of the second of two classes, and the labels, both (N,); None for more classes, or one label."""
        if self.logits.shape[1] != 2 or int(self.labels.min()) == int(self.labels.max()):
            return None
        return (self.logits[:, 1] - self.logits[:, 0]).double(), self.labels

    def reliability(self, name: str) -> Drawing:
        """Draw the reliability diagram."""
        measured = ProbabilityAccuracy(num_classes=self.logits.shape[1])
        measured.update(self.logits, self.labels)
        means = measured.reported()
        alt = f"Reliability diagram{name}: probabilities of true classes have the geometric mean "
        alt += (
            f"{means.geometric_accuracy:.2f}, decisiveness {means.decisiveness:.2f}, robustness {means.robustness:.2f}."
        )
        return draw(reliability(measured.bins(), means, f"Reliability{name}"), alt)


def judge(run: TrainedRun, epoch: int) -> Judged | None:
    """Predict the test samples at an epoch; None without its checkpoint, or if the model gives no finite numbers."""
    logits = run.test_logits(epoch)
    if logits is None or not bool(logits.isfinite().all()):
        return None
    return Judged(logits, run.test, run.concern)
