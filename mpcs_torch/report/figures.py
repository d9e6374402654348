"""Confusions of systems, what they cost, and figures of how sure classifiers are."""

import warnings
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import printable
from mpcs_torch.evaluation.rows import KeptRows
from mpcs_torch.evaluation.verdict import Verdict, verdict_of
from mpcs_torch.functional import ReversedScoresWarning, detection_curve, risk_coverage_curve
from mpcs_torch.functional.concern.dangerous import DANGEROUS, severity_of
from mpcs_torch.plots import confusion_matrix, det_curves, risk_coverage_figure, verdict_figure
from mpcs_torch.report.harm import number_text
from mpcs_torch.report.render import Drawing, draw

MOST = 8
"""The number of confusions that are listed: most of the cost is in a few."""
MOST_CLASSES = 30
"""More classes do not fit a figure."""


class Confused(NamedTuple):
    """A true class that is mistaken for another."""

    true: str
    predicted: str
    concern: str
    is_dangerous: bool
    kind: str
    counts: list[tuple[str, float]]
    """By system: how often it happens, and its share of the cost of all errors."""


class Costliest(NamedTuple):
    """The confusions with the highest cost."""

    systems: list[str]
    rows: list[Confused]
    caption: str
    has_concern: bool


def costliest(confusions: Mapping[str, Tensor], concern: ConcernSpec | None, names: list[str]) -> Costliest:
    """Return the confusions that cost most, by the cost in the system where it is highest.

    The matrices of the systems are (C, C), numbers or weights, rows true classes. Without a concern, errors cost 1.
    """
    size = len(names)
    costs = torch.ones(size, size, dtype=torch.float64) if concern is None else concern.matrix()
    costs = costs.clone().fill_diagonal_(0)
    dangerous = costs > 0 if concern is None else concern.dangerous_pairs()
    weighted = torch.stack([counts[:, :size].double() * costs for counts in confusions.values()])
    totals = weighted.sum(dim=(1, 2)).clamp(min=torch.finfo(torch.float64).tiny)
    highest = weighted.amax(dim=0).flatten()
    order = highest.argsort(descending=True, stable=True)[:MOST].tolist()
    rows = [
        Confused(
            printable(names[row]),
            printable(names[column]),
            f"{costs[row, column].item():g}",
            bool(dangerous[row, column]),
            kind_of(concern, row, column),
            [
                (number_text(counts[row, column].item()), (cost[row, column] / total).item())
                for counts, cost, total in zip(confusions.values(), weighted, totals, strict=True)
            ],
        )
        for row, column in (divmod(place, size) for place in order if highest[place] > 0)
    ]
    systems = ["errors"] if len(confusions) == 1 else [printable(f"errors, {name}") for name in confusions]
    caption = "Most frequent first" if concern is None else "Most expensive first; cost: errors times concern"
    return Costliest(systems, rows, caption, concern is not None)


def kind_of(concern: ConcernSpec | None, true: int, predicted: int) -> str:
    """Return what an error is called: dangerous or released, or what it costs where it has a weight of its own."""
    if concern is None or concern.dangerous_pairs()[true, predicted]:
        return "dangerous"
    return "released" if concern.weights is None else f"costs {concern.weights[true][predicted]:g}"


def errors_of(confusion: Tensor, concern: ConcernSpec | None) -> tuple[float, float]:
    """Return the number of errors, and of dangerous ones (all, without a concern), or the sums of their weights."""
    severity = severity_of(concern, len(confusion))[:, : confusion.shape[1]]
    return confusion[severity > 0].sum().item(), confusion[severity == DANGEROUS].sum().item()


def draw_confusion(
    confusion: Tensor, concern: ConcernSpec | None, names: list[str], title: str, *, decisions: Sequence[str] = ()
) -> Drawing:
    """Draw a confusion matrix of at most `MOST_CLASSES` classes, with a description.

    Decisions are the names of its columns, also of coarse answers and a referral. Default: the classes.
    """
    further = confusion.shape[1] - len(names)
    errors, dangerous = errors_of(confusion, concern)
    of_concern = "" if concern is None else f", {number_text(dangerous)} of them dangerous"
    alt = f"{title}: {number_text(confusion.sum().item())} samples, {number_text(errors)} errors{of_concern}."
    alt += f" {number_text(confusion[:, -1].sum().item())} are referred." if further else ""
    if errors:
        wrong = confusion[:, : len(names)].clone().fill_diagonal_(0)
        row, column = divmod(int(wrong.argmax()), len(names))
        alt += (
            f" Most often, {names[row]} is taken for {names[column]}: {number_text(wrong[row, column].item())} times."
        )
    released = None if concern is None else concern.released()
    costs = None if concern is None or concern.weights is None else concern.matrix()
    if further and concern is not None:
        released = severity_of(concern, len(names)) != DANGEROUS
        costs = None if costs is None else torch.nn.functional.pad(costs, (0, further))  # those of errors alone
    columns = decisions if further else ()
    return draw(confusion_matrix(confusion, released, names, title, costs=costs, columns=columns), printable(alt))


def draw_referral(risks: Mapping[str, tuple[Tensor, ...]], *, counted: str = "dangerous errors") -> Drawing:
    """Draw errors per decided sample against coverage: by model, what `risk_coverage_curve` takes."""
    curves, told = {}, list[str]()
    for name, of_model in risks.items():
        curve = risk_coverage_curve(*of_model)
        curves[name] = (curve.coverage, curve.risk)
        about = f" of {name}" if len(risks) > 1 else ""
        told.append(_referred_for(curve.coverage, curve.risk, f"{counted}{about}"))
    whole = "; ".join(f"{name}: {100 * risk[-1]:.3g} %" for name, (_, risk) in curves.items())
    return draw(
        risk_coverage_figure(curves, counted=counted),
        f"{counted.capitalize()} per decided sample against coverage. Without referral: {whole}.",
        f"The samples with the highest estimated risk of {'a dangerous' if 'dangerous' in counted else 'an'} error are "
        f"referred first. {' '.join(told)} These samples chose the thresholds, so on others more errors are left.",
    )


def _referred_for(coverage: Tensor, risk: Tensor, errors: str) -> str:
    """Say how many of these samples are referred until a tenth of the errors is left, and none."""
    left = coverage * risk
    few, none = (
        100 * (1 - (coverage[left <= share * left[-1]].amax().item() if bool((left <= share * left[-1]).any()) else 0))
        for share in (0.1, 0.0)
    )
    if not left[-1] > 0:
        return f"There are no {errors}."
    until = f"refer {none:.3g} %, and none is left"
    if none - few < 1:
        return f"Of the {errors}: {until}."
    return f"Of the {errors}: refer {few:.3g} % of these samples, and a tenth is left; {until}."


def draw_det(trials: Mapping[str, tuple[Tensor, Tensor]], target: str) -> Drawing:
    """Draw the DET curves of models of two classes: by model, scores and whether the target is true, both (N,)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReversedScoresWarning)  # the curve shows that a model is worse than chance
        curves = {name: detection_curve(scores, labels) for name, (scores, labels) in trials.items()}
    return draw(det_curves(curves, title="DET"), f"DET curves with {target} as the target.", f"Target: {target}.")


def compare_costs(models: Mapping[str, KeptRows], concern: ConcernSpec) -> Verdict | None:
    """Compare the costs of models, or of ways of deciding of one; None if there is nothing to compare."""
    bits = max((kept.bits for kept in models.values()), default=0)
    rows = {name: kept for name, each in models.items() if (kept := each.rows(bits)) is not None}
    return verdict_of(rows, concern) if rows and len(rows) == len(models) else None


def draw_verdict(verdict: Verdict, *, is_several: bool) -> Drawing:
    """Draw what is shown to cost least over the costs of released errors and of a referral.

    The costs of the concern are marked.
    """
    names, *of_grid = verdict[:5]
    compared = "model" if is_several else "way of deciding"
    told = [f"{names[place]} in {_share(verdict, place)}" for place in verdict.cheapest.unique().tolist()]  # type: ignore[no-untyped-call]
    return draw(
        verdict_figure(
            names, *of_grid, now=verdict.now, against=verdict.against, title=f"The {compared} shown to cost least"
        ),
        printable(
            f"The {compared} that is shown to have the lowest mean cost, over a grid of costs: {', '.join(told)}."
        ),
        f"Colour: this {compared} is shown to cost least on {verdict.rows} rows, for other costs of a referral (up) "
        f"and of errors other than the {verdict.against} ones (right). White: these rows do not show which costs "
        "least (by the paired 95 % interval, of that point alone). Decisions are made anew at each point.",
    )


def _share(verdict: Verdict, place: int) -> str:
    """Return in how much of the grid something is shown to cost least."""
    return f"{100 * ((verdict.cheapest == place) & verdict.is_shown).double().mean().item():.3g} % of the grid"
