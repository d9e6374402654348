"""The decisions of the model of one epoch on test samples, and its worst decisions."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import printable
from mpcs_torch.evaluation import evaluate
from mpcs_torch.evaluation.chosen import choose_metrics
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.outcomes import EVERY
from mpcs_torch.evaluation.row_risks import RowRisks
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.functional.inputs.most_probable import highest_class
from mpcs_torch.plots.samples import kind_of_sample, sample_figure
from mpcs_torch.report.figures import kind_of
from mpcs_torch.report.render import draw
from mpcs_torch.trainer.data import Split
from mpcs_torch.trainer.result import TrainedRun


@dataclass(frozen=True)
class EpochPredictions:
    """The predictions of the model of one epoch for the test samples."""

    logits: Tensor
    """The logits of the test samples, (N, C), finite."""
    test: Split
    concern: ConcernSpec

    @cached_property
    def probs(self) -> Tensor:
        """The probabilities of the classes, float64 (N, C)."""
        return self.logits.double().softmax(dim=1)

    @cached_property
    def labels(self) -> Tensor:
        """The true classes, int64 (N,)."""
        return self.test.labels.cpu()

    @cached_property
    def scores(self) -> ClassifierScores:
        """The scores of the predictions, with intervals for independent samples."""
        metrics = ("misclassification_rate", "dangerous_rate", "measured_geometric_accuracy")
        return evaluate(self.probs, self.labels, concern=self.concern, metrics=metrics).first

    @cached_property
    def rows(self) -> RowRisks:
        """The risks of the test samples."""
        risks = RowRisks()
        rows = Rows(self.probs, self.labels, torch.arange(len(self.labels)))
        risks.add(rows, choose_metrics(self.concern.classes, self.concern))
        return risks

    @property
    def errors(self) -> tuple[int, int]:
        """The number of errors, and the number of dangerous errors."""
        every = self.scores.outcomes[EVERY]
        return int(every.missed), int(every.dangerous)

    def worst_samples(self) -> list[dict[str, object]]:
        """Draw and describe the wrong decisions with the highest confidence times concern, if samples can be drawn."""
        kind = kind_of_sample(tuple(self.test.inputs.shape[1:]))
        if kind is None:
            return []
        confidence, decisions = highest_class(self.probs)
        weights = self.concern.matrix()[self.labels, decisions]
        cost = confidence * weights * (decisions != self.labels)
        names = [printable(name) for name in self.concern.classes]
        shown: list[dict[str, object]] = []
        for place in cost.argsort(descending=True, stable=True)[:12].tolist():  # few enough to look at
            if not cost[place] > 0:
                break
            pair = int(self.labels[place]), int(decisions[place])
            true, predicted = (names[label] for label in pair)
            percent = f"{100 * confidence[place].item():.1f} %"
            alt = f"Test sample {place}: {true}, predicted {predicted} with confidence {percent}."
            described = {"true": true, "predicted": predicted, "confidence": percent, "number": place}
            described |= {"kind": kind_of(self.concern, *pair), "concern": f"{weights[place].item():g}"}
            drawing = draw(sample_figure(self.test.inputs[place].cpu().float()), alt)
            shown.append({"drawing": drawing, "is_image": kind == "image", **described})
        return shown


def predict_epoch(run: TrainedRun, epoch: int) -> EpochPredictions | None:
    """Predict the test samples by the model of ``epoch``; None without its checkpoint, or if logits are not finite."""
    logits = run.logits(run.test, epoch)
    if logits is None or not bool(logits.isfinite().all()):
        return None
    return EpochPredictions(logits, run.test, run.concern)
