"""Page sections about classifiers of the same rows: results by class, confusions, costs and reliability."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import printable
from mpcs_torch.evaluation.classifier_files import RowRisks
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.outcomes import number_text
from mpcs_torch.functional import risk_coverage_curve
from mpcs_torch.functional.concern.dangerous import DANGEROUS, severity_matrix
from mpcs_torch.plots import confusion_matrix, reliability, risk_coverage_figure
from mpcs_torch.report.error_counts import error_table
from mpcs_torch.report.render import MAX_CONFUSIONS, Drawing, draw
from mpcs_torch.tables import Table, in_percent


class ClassifierSections(NamedTuple):
    """The sections of a page about classifiers that were evaluated on the same rows."""

    scores: Mapping[str, ClassifierScores]
    """The scores of each classifier, by its name."""
    rows: Mapping[str, RowRisks]
    concern: ConcernSpec | None
    system: str = "model"
    """The word for a classifier in headers, such as "model" or "epoch"."""

    def about(self, name: str) -> str:
        """Return the end of a title, such as `` of NAME``; it is empty if the page is about a single model."""
        return f" of {name}" if len(self.scores) > 1 or self.system != "model" else ""

    @property
    def class_names(self) -> Sequence[str]:
        """The names of the classes."""
        return next(iter(self.scores.values())).class_names

    @property
    def confusions(self) -> dict[str, Tensor]:
        """The confusion matrix of each classifier that has one."""
        matrices = {name: scores.confusion for name, scores in self.scores.items()}
        return {name: matrix for name, matrix in matrices.items() if matrix is not None}

    def error_table(self) -> Table | None:
        """Return the table of errors by class."""
        return error_table(self.scores, self.concern, system=self.system)

    def remarks_of_referrals(self) -> list[str]:
        """Return sentences on referrals, each with the name of its classifier if there are several."""
        remarks = list[str]()
        for name, scores in self.scores.items():
            start = f"{printable(name)}: " if len(self.scores) > 1 else ""
            remarks += [f"{start}{remark}" for remark in scores.remarks_of_referrals()]
        return remarks

    def costliest_table(self) -> Table:
        """Return the table of the costliest confusions."""
        return costliest_table(self.confusions, self.concern, self.class_names)

    def referral_curves(self) -> list[Drawing]:
        """Return the figure of errors per decided sample against coverage, if there are probabilities."""
        by_name = {printable(name): rows.risks() for name, rows in self.rows.items()}
        risks = {name: kept for name, kept in by_name.items() if kept is not None}
        if not risks:
            return []
        counted, kind = "errors", "an error"
        if self.concern is not None and bool(self.concern.released().any()):
            counted, kind = "dangerous errors", "a dangerous error"
        curves = dict[str, tuple[Tensor, Tensor]]()
        sentences, whole = list[str](), list[str]()
        for name, of_model in risks.items():
            curve = risk_coverage_curve(*of_model)
            curves[name] = (curve.coverage, curve.risk)
            about = f" of {name}" if len(risks) > 1 else ""
            sentences.append(_referred_for(curve.coverage, curve.risk, f"{counted}{about}"))
            whole.append(f"{name}: {in_percent(curve.risk[-1].item())}")
        alt = f"{counted.capitalize()} per decided sample against coverage. Without referral: {'; '.join(whole)}."
        caption = (
            f"The samples with the highest estimated risk of {kind} are "
            f"referred first. {' '.join(sentences)} The thresholds were chosen on these samples: others have more "
            "errors left."
        )
        return [draw(risk_coverage_figure(curves, counted=counted), alt, caption)]

    def matrices(self) -> list[Drawing]:
        """Return the confusion matrix of each classifier."""
        return [
            draw_confusion(
                matrix,
                self.concern,
                self.class_names,
                f"Confusion matrix{self.about(name)}",
                decisions=self.scores[name].decision_names,
            )
            for name, matrix in self.confusions.items()
        ]

    def reliability_diagrams(self) -> list[Drawing]:
        """Return the reliability diagram of each classifier for which calibration was measured."""
        drawings = list[Drawing]()
        for name, scores in self.scores.items():
            if scores.measured is None or scores.reported is None:
                continue
            figure = reliability(
                scores.measured, scores.reported, f"Reliability{self.about(name)}"
            )
            means = list[str]()
            measured = scores.measured.means._asdict()
            for field, of_reported in scores.reported._asdict().items():
                values = f"{of_reported:.2f} reported and {measured[field]:.2f} measured"
                means.append(f"{field.replace('_', ' ')} {values}")
            alt = f"Reliability diagram{self.about(name)}: {', '.join(means)}."
            drawings.append(draw(figure, printable(alt)))
        return drawings


def costliest_table(
    confusions: Mapping[str, Tensor], concern: ConcernSpec | None, names: Sequence[str]
) -> Table:
    """Return a table of the costliest confusions, a row for each: numbers by classifier, kind and cost per error."""
    size = len(names)
    costs = torch.ones(size, size, dtype=torch.float64)
    share = "share of the errors"
    if concern is not None:
        costs = concern.mpcs_weights()
        share = "share of the cost"
    counts = torch.stack([matrix[:, :size].double() for matrix in confusions.values()])
    weighted = counts * costs.fill_diagonal_(0)
    tiny = torch.finfo(torch.float64).tiny
    shares = weighted / weighted.sum(dim=(1, 2), keepdim=True).clamp(min=tiny)
    highest = weighted.amax(dim=0).flatten()
    worst = highest.argsort(descending=True, stable=True)[:MAX_CONFUSIONS]
    with_cost = worst[highest[worst] > 0]
    rows = list[list[str]]()
    for place in with_cost.tolist():
        true, other = divmod(place, size)
        row = [f"{printable(names[true])} → {printable(names[other])}"]
        for count, part in zip(counts[:, true, other], shares[:, true, other], strict=True):
            row += [number_text(count.item()), f"{100 * part.item():.1f} %"]
        if concern is not None:
            row += [error_kind(concern, true, other), f"{costs[true, other].item():g}"]
        rows.append(row)
    header = ["true → predicted"]
    for name in confusions:
        errors = "errors" if len(confusions) == 1 else printable(f"errors, {name}")
        header += [errors, share]
    if concern is not None:
        header += ["kind", "concern"]
    return Table(header, rows)


def error_kind(concern: ConcernSpec, true: int, predicted: int) -> str:
    """Return "dangerous" for a dangerous error, otherwise "costs 0.2" (its weight), or without weights, "released"."""
    if concern.dangerous_pairs()[true, predicted]:
        return "dangerous"
    if concern.weights is None:
        return "released"
    return f"costs {concern.weights[true][predicted]:g}"


def draw_confusion(
    confusion: Tensor,
    concern: ConcernSpec | None,
    names: Sequence[str],
    title: str,
    *,
    decisions: Sequence[str] = (),
) -> Drawing:
    """Draw a matrix with the classes ``names`` as rows; its columns are ``decisions``, by default ``names``."""
    size = len(names)
    further = confusion.shape[1] - size  # coarse answers and referrals
    severity = severity_matrix(concern, size)[:, : confusion.shape[1]]
    errors = confusion[severity > 0].sum().item()
    alt = f"{title}: {number_text(confusion.sum().item())} samples, {number_text(errors)} errors"
    released = costs = None
    if concern is not None:
        dangerous = confusion[severity == DANGEROUS].sum().item()
        alt += f", {number_text(dangerous)} of them dangerous"
        released = concern.released()
        if further:  # `ConcernSpec.released` has the classes alone
            released = severity != DANGEROUS
        if concern.weights is not None:  # only errors have costs
            costs = torch.nn.functional.pad(concern.mpcs_weights(), (0, further))
    alt += "."
    if further:
        alt += f" {number_text(confusion[:, -1].sum().item())} are referred."
    if errors:
        wrong = confusion[:, :size].clone().fill_diagonal_(0)
        row, column = divmod(int(wrong.argmax()), size)
        times = number_text(wrong[row, column].item())
        word = "time" if times == "1" else "times"
        alt += f" Most often, {names[row]} is taken for {names[column]}: {times} {word}."
    columns = decisions if further else ()
    figure = confusion_matrix(
        confusion, released, names, title, costs=costs, columns=columns
    )
    return draw(figure, printable(alt))


def _referred_for(coverage: Tensor, risk: Tensor, errors: str) -> str:
    """Return a sentence on how many samples to refer so that only a tenth of the errors, or none, is left."""
    left = coverage * risk

    def percent_to_refer(share: float) -> float:
        is_enough = left <= share * left[-1]
        if not bool(is_enough.any()):
            return 100.0
        return 100 * (1 - coverage[is_enough].amax().item())

    if not left[-1] > 0:
        return f"There are no {errors}."
    few = percent_to_refer(0.1)
    none = percent_to_refer(0.0)
    none_left = f"{none:.3g} % of the samples are referred, none of the {errors} is left."
    if none - few < 1:
        return f"If {none_left}"
    return f"If {few:.3g} % of the samples are referred, a tenth of the {errors} is left; if {none_left}"
