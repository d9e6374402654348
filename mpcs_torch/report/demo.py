"""The report of ``mpcs demo``: a plain run beside the recommended recipe."""

from pathlib import Path

from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.learning.recommended import PLAIN
from mpcs_torch.plots.bars import paired_counts
from mpcs_torch.plots.decisions import risk_coverage_figure
from mpcs_torch.report.figures import costliest, draw_confusion
from mpcs_torch.report.render import draw, render
from mpcs_torch.trainer.recommended import LIMIT, RECOMMENDED, WITH_REFERRAL, Demonstration, Effect


def write_demo_report(demo: Demonstration, path: Path) -> None:
    """Write an HTML page to ``path``: sentences, a table and figures on the results, without and with referral."""
    concern, names = demo.concern, demo.concern.classes
    both = {name: demo.confusion(name) for name in (PLAIN, RECOMMENDED)}
    tallies = {name: demo.tallies(name) for name in both}
    counts = {name: [tally.dangerous for tally in by_seed] for name, by_seed in tallies.items()}
    render(
        "demo",
        path,
        verdict=verdict(demo),
        without_referral=without_referral(demo),
        with_referral=with_referral(demo),
        results=demo.table(),
        seeds=len(demo.seeds),
        samples=tallies[PLAIN][0].samples,
        released=int(concern.released().sum()),
        paired=draw(
            paired_counts(counts, ylabel="dangerous test errors"),
            "Dangerous test errors under each seed. Means: "
            + ", ".join(f"{name} {demo.mean(name, 'dangerous'):.1f}" for name in both)
            + ".",
        ),
        matrices=[
            draw_confusion(confusion, concern, names, f"Confusion matrix: {name}, {len(demo.seeds)} seeds")
            for name, confusion in both.items()
        ],
        curves=draw(
            risk_coverage_figure({name: demo.curve(name) for name in both}),
            "Dangerous errors per decided sample against coverage, for the plain and the recommended run.",
        ),
        costs=costliest(both, concern, names),
    )


def cut_of_dangerous(demo: Demonstration) -> Effect:
    """Return the share of the plain run's dangerous errors that the recommended recipe avoids, with an interval."""
    return demo.effect(lambda ours, theirs: 1 - ours / theirs, "dangerous")


def verdict(demo: Demonstration) -> str:
    """Return a short sentence on the dangerous errors that the recommended recipe avoids."""
    cut = cut_of_dangerous(demo).value
    if not cut:
        mean = demo.mean(PLAIN, "dangerous")
        return f"The recommended recipe and the plain run make equally many dangerous errors on test data: {mean:.1f}."
    change = f"{100 * abs(cut):.0f} % {'fewer' if cut > 0 else 'more'} dangerous errors"
    counts = " instead of ".join(f"{demo.mean(name, 'dangerous'):.1f}" for name in (RECOMMENDED, PLAIN))
    return f"The recommended recipe makes {change} on test data: {counts}."


def without_referral(demo: Demonstration) -> str:
    """Return a sentence on the dangerous errors that the recommended recipe avoids, with intervals."""
    samples, cut = demo.tallies(PLAIN)[0].samples, cut_of_dangerous(demo)
    points = demo.effect(lambda ours, theirs: 100 * (theirs - ours) / samples, "errors")
    return (
        f"Of {samples} test samples, the plain run makes {demo.mean(PLAIN, 'dangerous'):.1f} dangerous errors and the "
        f"recommended loss and decision rule {demo.mean(RECOMMENDED, 'dangerous'):.1f}: {100 * cut.value:.0f} % "
        f"[{100 * cut.low:.0f}, {100 * cut.high:.0f}] fewer, at {points.value:+.2f} "
        f"[{points.low:+.2f}, {points.high:+.2f}] points of accuracy (means over {len(demo.seeds)} seeds and "
        f"{CONFIDENCE_TEXT} intervals)."
    )


def with_referral(demo: Demonstration) -> str:
    """Return a sentence on the shares of samples that both runs decide if referral limits the dangerous errors."""
    plain, ours = PLAIN + WITH_REFERRAL, RECOMMENDED + WITH_REFERRAL
    return (
        f"If samples may be referred to somebody else, and at most {100 * LIMIT.at_most:g} % dangerous errors are "
        f"guaranteed with confidence {LIMIT.confidence:g}, the recommended recipe decides "
        f"{100 * demo.mean(ours, 'decided', 'samples'):.1f} % of the samples, the plain run with the same rule "
        f"{100 * demo.mean(plain, 'decided', 'samples'):.1f} %."
    )
