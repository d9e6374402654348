"""The report of ``mpcs demo``: what better training, deciding by cost, a margin, and referrals change."""

from pathlib import Path

from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.plots.bars import paired_counts
from mpcs_torch.plots.decisions import risk_coverage_figure
from mpcs_torch.report.demonstration import (
    BY_COST,
    FAIR,
    LIMIT,
    RECOMMENDED,
    REFERRING,
    USUAL,
    Demonstration,
    Effect,
)
from mpcs_torch.report.figures import costliest_table, draw_confusion
from mpcs_torch.report.render import draw, render


def write_demo_report(demo: Demonstration, path: Path) -> None:
    """Write an HTML page to ``path``: sentences, a table and figures on the results, without and with referrals."""
    concern, names = demo.concern, demo.concern.classes
    both = {"as usual": USUAL, "recommended": RECOMMENDED}
    confusions = {name: demo.confusion(way) for name, way in both.items()}
    counts = {
        name: [tally.dangerous for tally in demo.tallies(way)] for name, way in both.items()
    }
    render(
        "demo",
        path,
        verdict=verdict(demo),
        without_referral=without_referral(demo),
        with_referral=with_referral(demo),
        results=demo.table(),
        seeds=len(demo.seeds),
        samples=demo.tallies(USUAL)[0].samples,
        released=int(concern.released().sum()),
        paired=draw(
            paired_counts(counts, ylabel="dangerous test errors"),
            "Dangerous test errors under each seed. Means: "
            + ", ".join(
                f"{name} {demo.mean(way, 'dangerous'):.1f}" for name, way in both.items()
            )
            + ".",
        ),
        matrices=[
            draw_confusion(
                confusion,
                concern,
                names,
                f"Confusion matrix: {name}, {len(demo.seeds)} seeds",
            )
            for name, confusion in confusions.items()
        ],
        curves=draw(
            risk_coverage_figure(
                {"well trained": demo.curve(FAIR), "with a margin": demo.curve(RECOMMENDED)}
            ),
            "Dangerous errors per decided sample against coverage, without and with a margin.",
        ),
        costs=costliest_table(confusions, concern, names),
    )


def verdict(demo: Demonstration) -> str:
    """Return a short sentence on the dangerous errors as usual, after all steps but referrals, and with referrals."""
    means = {
        way: f"{demo.mean(way, 'dangerous'):.1f}" for way in (USUAL, RECOMMENDED, REFERRING)
    }
    counts = f"{means[USUAL]} as usual, {means[RECOMMENDED]} after better training, {means[REFERRING]} with referrals"
    return f"Dangerous errors on test data: {counts}."


def without_referral(demo: Demonstration) -> str:
    """Return sentences on what each step before referrals changes, with intervals."""
    steps = {
        "Noise, more steps and label smoothing": (FAIR, USUAL),
        "deciding by cost": (BY_COST, FAIR),
        "a margin where validation samples choose it": (RECOMMENDED, BY_COST),
    }
    changes = "; ".join(
        f"{name}: {_fewer(demo.cut(*ways))}, at {_points(demo.points(*ways))} points of accuracy"
        for name, ways in steps.items()
    )
    return (
        f"Of {demo.tallies(USUAL)[0].samples} test samples, {demo.mean(USUAL, 'dangerous'):.1f} are dangerous errors "
        f"after training as usual. {changes} (means over {len(demo.seeds)} seeds and {CONFIDENCE_TEXT} intervals)."
    )


def _fewer(cut: Effect) -> str:
    return f"{100 * cut.value:.0f} % [{100 * cut.low:.0f}, {100 * cut.high:.0f}] fewer"


def _points(points: Effect) -> str:
    return f"{points.value:+.2f} [{points.low:+.2f}, {points.high:+.2f}]"


def with_referral(demo: Demonstration) -> str:
    """Return a sentence on the share of samples that is decided if referrals limit the dangerous errors."""
    return (
        f"If samples may be referred to somebody else, and at most {100 * LIMIT.at_most:g} % dangerous errors are "
        f"guaranteed with confidence {LIMIT.confidence:g}, {100 * demo.mean(REFERRING, 'decided', 'samples'):.1f} % of "
        f"the samples are decided, with {demo.mean(REFERRING, 'dangerous'):.1f} dangerous errors."
    )
