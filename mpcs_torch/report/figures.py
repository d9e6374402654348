"""Page sections about classifiers of the same rows: results by class, confusions, costs and reliability."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from markupsafe import Markup
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.checks import MAX_READABLE_CLASSES
from mpcs_torch.errors import printable
from mpcs_torch.evaluation.classifier_files import RowRisks
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.outcomes import number_text
from mpcs_torch.functional import risk_coverage_curve
from mpcs_torch.functional.concern.dangerous import DANGEROUS, severity_matrix
from mpcs_torch.plots import confusion_matrix, reliability, risk_coverage_figure
from mpcs_torch.report.harm import TERMS, harm_table
from mpcs_torch.report.render import Drawing, draw, part
from mpcs_torch.tables import Table, in_percent

MAX_CONFUSIONS = 8
"""The maximum number of confusions in a table."""


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

    def sections(self, caption: str, *between: Markup) -> list[Markup]:
        """Return the sections: results by class, a table with ``caption``; then ``between``; then all others."""
        table = harm_table(self.scores, self.concern, system=self.system)
        work = [
            f"{printable(name)}: {sentence}" if len(self.scores) > 1 else sentence
            for name, each in self.scores.items()
            for sentence in each.remarks_of_referrals()
        ]
        heading = (
            "Costliest confusions"
            if self.concern is not None
            else "Most frequent confusions"
        )
        confusions = {
            name: each.confusion
            for name, each in self.scores.items()
            if each.confusion is not None
        }
        names = next(iter(self.scores.values())).class_names
        costs = (
            costliest(confusions, self.concern, names, refers=bool(work))
            if confusions
            else Markup()
        )
        every_risk = {printable(name): rows.risks() for name, rows in self.rows.items()}
        risks = {name: kept for name, kept in every_risk.items() if kept is not None}
        every = self.concern is None or not bool(self.concern.released().any())
        saved = (
            [draw_referral(risks, counted="errors" if every else "dangerous errors")]
            if risks
            else []
        )
        return [
            part(
                "section",
                "By class",
                part("table", table, caption, terms=TERMS),
                part("sentences", work),
            ),
            *between,
            part(
                "section",
                "What referring samples to a person saves",
                part("figures", saved),
            ),
            part("section", heading, costs),
            part("section", "Where the errors lie", self.matrices()),
            part(
                "folded",
                "h2",
                "How sure decisions are",
                part("figures", self.reliability_diagrams()),
            ),
        ]

    def matrices(self) -> Markup:
        """Return HTML with all confusion matrices, or if there are more than 30 classes, a note instead."""
        drawings, notes = list[Drawing](), set[str]()
        for name, scores in self.scores.items():
            if len(scores.class_names) > MAX_READABLE_CLASSES:
                notes = {
                    f"A confusion matrix of more than {MAX_READABLE_CLASSES} classes is not drawn."
                }
            elif scores.confusion is not None:
                of = (
                    scores.confusion,
                    self.concern,
                    scores.class_names,
                    f"Confusion matrix{self.about(name)}",
                )
                drawings.append(draw_confusion(*of, decisions=scores.decision_names))
        return part("figures", drawings) + part("notes", notes)

    def reliability_diagrams(self) -> list[Drawing]:
        """Return the reliability diagram of each classifier for which calibration was measured."""
        drawings = list[Drawing]()
        for name, scores in self.scores.items():
            if scores.measured is None or scores.reported is None:
                continue
            figure = reliability(
                scores.measured, scores.reported, f"Reliability{self.about(name)}"
            )
            pairs = zip(
                scores.reported._fields, scores.reported, scores.measured.means, strict=True
            )
            means = [
                f"{field.replace('_', ' ')} {a:.2f} reported and {b:.2f} measured"
                for field, a, b in pairs
            ]
            alt = f"Reliability diagram{self.about(name)}: {', '.join(means)}."
            drawings.append(draw(figure, printable(alt)))
        return drawings


def costliest(
    confusions: Mapping[str, Tensor],
    concern: ConcernSpec | None,
    names: Sequence[str],
    *,
    refers: bool = False,
) -> Markup:
    """Return HTML with a table of the costliest confusions, each a pair of a true and a predicted class.

    ``confusions`` has a confusion matrix ``(C, C)`` for each classifier, with true classes as rows. A pair is ranked by
    its cost in the classifier in which it costs most. Without a concern, each error costs 1. If ``refers`` is true, a
    note says that referrals are left out.
    """
    table = costliest_table(confusions, concern, names)
    if not table.rows:
        return part(
            "notes",
            ["There is no error." if concern is None else "No error costs anything."],
        )
    caption = (
        "Most frequent first"
        if concern is None
        else "Most expensive first; cost: errors times concern"
    )
    caption += (
        f"; others than these {MAX_CONFUSIONS} are left out"
        if len(table.rows) == MAX_CONFUSIONS
        else ""
    )
    return part(
        "table",
        table,
        f"{caption}; referrals, which cost too, are left out" if refers else caption,
        bars=True,
    )


def costliest_table(
    confusions: Mapping[str, Tensor], concern: ConcernSpec | None, names: Sequence[str]
) -> Table:
    """Return a table of the costliest confusions, a row for each: numbers by classifier, kind and cost per error."""
    size, share = (
        len(names),
        "share of the errors" if concern is None else "share of the cost",
    )
    costs = (
        torch.ones(size, size, dtype=torch.float64)
        if concern is None
        else concern.mpcs_weights()
    )
    costs = costs.clone().fill_diagonal_(0)
    weighted = torch.stack(
        [counts[:, :size].double() * costs for counts in confusions.values()]
    )
    shares = weighted / weighted.sum(dim=(1, 2), keepdim=True).clamp(
        min=torch.finfo(torch.float64).tiny
    )
    highest = weighted.amax(dim=0).flatten()
    rows = list[list[str]]()
    for place in highest.argsort(descending=True, stable=True)[:MAX_CONFUSIONS].tolist():
        row, column = divmod(place, size)
        if highest[place] > 0:
            rows.append([f"{printable(names[row])} → {printable(names[column])}"])
            for counts, of_cost in zip(confusions.values(), shares, strict=True):
                rows[-1] += [
                    number_text(counts[row, column].item()),
                    f"{100 * of_cost[row, column].item():.1f} %",
                ]
            rows[-1] += (
                []
                if concern is None
                else [error_kind(concern, row, column), f"{costs[row, column].item():g}"]
            )
    systems = (
        ["errors"]
        if len(confusions) == 1
        else [printable(f"errors, {name}") for name in confusions]
    )
    further = [] if concern is None else ["kind", "concern"]
    return Table(
        [
            "true → predicted",
            *(cell for name in systems for cell in (name, share)),
            *further,
        ],
        rows,
    )


def error_kind(concern: ConcernSpec, true: int, predicted: int) -> str:
    """Return "dangerous" for a dangerous error, otherwise "costs 0.2" (its weight), or without weights, "released"."""
    if concern.dangerous_pairs()[true, predicted]:
        return "dangerous"
    return (
        "released"
        if concern.weights is None
        else f"costs {concern.weights[true][predicted]:g}"
    )


def draw_confusion(
    confusion: Tensor,
    concern: ConcernSpec | None,
    names: Sequence[str],
    title: str,
    *,
    decisions: Sequence[str] = (),
) -> Drawing:
    """Draw a matrix with the classes ``names`` as rows; its columns are ``decisions``, by default ``names``."""
    further = confusion.shape[1] - len(names)
    severity = severity_matrix(concern, len(names))[:, : confusion.shape[1]]
    errors, dangerous = (
        confusion[severity > 0].sum().item(),
        confusion[severity == DANGEROUS].sum().item(),
    )
    of_concern = "" if concern is None else f", {number_text(dangerous)} of them dangerous"
    alt = f"{title}: {number_text(confusion.sum().item())} samples, {number_text(errors)} errors{of_concern}."
    alt += f" {number_text(confusion[:, -1].sum().item())} are referred." if further else ""
    if errors:
        wrong = confusion[:, : len(names)].clone().fill_diagonal_(0)
        row, column = divmod(int(wrong.argmax()), len(names))
        times = number_text(wrong[row, column].item())
        alt += f" Most often, {names[row]} is taken for {names[column]}: {times} times."
    released = None if concern is None else concern.released()
    costs = None if concern is None or concern.weights is None else concern.mpcs_weights()
    if further and concern is not None:
        released = severity != DANGEROUS
        costs = (
            None if costs is None else torch.nn.functional.pad(costs, (0, further))
        )  # only errors have costs
    columns = decisions if further else ()
    return draw(
        confusion_matrix(confusion, released, names, title, costs=costs, columns=columns),
        printable(alt),
    )


def draw_referral(
    risks: Mapping[str, tuple[Tensor, ...]], *, counted: str = "dangerous errors"
) -> Drawing:
    """Draw errors per decided sample against coverage. ``risks`` has arguments of `risk_coverage_curve` by model."""
    curves, sentences = {}, list[str]()
    for name, of_model in risks.items():
        curve = risk_coverage_curve(*of_model)
        curves[name] = (curve.coverage, curve.risk)
        about = f" of {name}" if len(risks) > 1 else ""
        sentences.append(_referred_for(curve.coverage, curve.risk, f"{counted}{about}"))
    whole = "; ".join(
        f"{name}: {in_percent(risk[-1].item())}" for name, (_, risk) in curves.items()
    )
    return draw(
        risk_coverage_figure(curves, counted=counted),
        f"{counted.capitalize()} per decided sample against coverage. Without referral: {whole}.",
        f"The samples with the highest estimated risk of {'a dangerous' if 'dangerous' in counted else 'an'} error are "
        f"referred first. {' '.join(sentences)} The thresholds were chosen on these samples: others have more errors "
        "left.",
    )


def _referred_for(coverage: Tensor, risk: Tensor, errors: str) -> str:
    """Return a sentence on how many samples to refer so that only a tenth of the errors, or none, is left."""
    left = coverage * risk

    def percent_to_refer(share: float) -> float:
        is_enough = left <= share * left[-1]
        return (
            100 * (1 - coverage[is_enough].amax().item())
            if bool(is_enough.any())
            else 100.0
        )

    few, none = percent_to_refer(0.1), percent_to_refer(0.0)
    if not left[-1] > 0:
        return f"There are no {errors}."
    until = f"if {none:.3g} % of the samples are referred, none of the {errors} is left"
    if none - few < 1:
        return f"I{until[1:]}."
    return f"If {few:.3g} % of the samples are referred, a tenth of the {errors} is left; {until}."
