"""The report of ``mpcs demo``: what better training, deciding by cost, a margin, and referrals change."""

from pathlib import Path

from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.report.demonstration import (
    BY_COST,
    FAIR,
    LIMIT,
    RECOMMENDED,
    REFERRING,
    USUAL,
    Demonstration,
)
from mpcs_torch.report.figures import costliest_table, draw_confusion
from mpcs_torch.report.render import render


def write_demo_report(demo: Demonstration, path: Path) -> None:
    """Write an HTML page to ``path``: sentences, a table and figures on the results, without and with referrals."""
    concern, names = demo.concern, demo.concern.classes
    both = {"as usual": USUAL, "recommended": RECOMMENDED}
    confusions = {name: demo.confusion(way) for name, way in both.items()}
    seeds = len(demo.seeds)
    render(
        "demo",
        path,
        verdict=verdict(demo),
        without_referral=without_referral(demo),
        with_referral=with_referral(demo),
        results=demo.table(),
        seeds=seeds,
        samples=demo.samples,
        released=int(concern.released().sum()),
        matrices=[
            draw_confusion(
                confusion, concern, names, f"Confusion matrix: {name}, {seeds} seeds"
            )
            for name, confusion in confusions.items()
        ],
        costs=costliest_table(confusions, concern, names),
    )


def _dangerous(demo: Demonstration, way: str) -> str:
    """Return the mean number of dangerous errors as text."""
    return f"{demo.counts(way).dangerous.mean():.1f}"


def verdict(demo: Demonstration) -> str:
    """Return a short sentence on the dangerous errors as usual, after all steps but referrals, and with referrals."""
    ways = {
        USUAL: "as usual",
        RECOMMENDED: "after better training",
        REFERRING: "with referrals",
    }
    counts = [f"{_dangerous(demo, way)} {words}" for way, words in ways.items()]
    return f"Dangerous errors on test data: {', '.join(counts)}."


def without_referral(demo: Demonstration) -> str:
    """Return sentences on what each step before referrals changes, with intervals."""
    steps = {
        "Noise, more steps and label smoothing": (FAIR, USUAL),
        "deciding by cost": (BY_COST, FAIR),
        "a margin where validation samples choose it": (RECOMMENDED, BY_COST),
    }
    changes = list[str]()
    for name, ways in steps.items():
        points = "{:+.2f} [{:+.2f}, {:+.2f}]".format(*demo.points(*ways))
        fewer = demo.cut(*ways).percent
        changes.append(f"{name}: {fewer} fewer, at {points} points of accuracy")
    return (
        f"Of {demo.samples} test samples, {_dangerous(demo, USUAL)} are dangerous errors after training as "
        f"usual. {'; '.join(changes)} (means over {len(demo.seeds)} seeds and {CONFIDENCE_TEXT} intervals)."
    )


def with_referral(demo: Demonstration) -> str:
    """Return a sentence on the share of samples that is decided if referrals limit the dangerous errors."""
    return (
        f"If samples may be referred to somebody else, and at most {100 * LIMIT.at_most:g} % dangerous errors are "
        f"guaranteed with confidence {LIMIT.confidence:g}, {100 * demo.decided(REFERRING):.1f} % of the samples are "
        f"decided, with {_dangerous(demo, REFERRING)} dangerous errors."
    )
