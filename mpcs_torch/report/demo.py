"""The report of ``mpcs demo``: a plain run beside the recommended recipe."""

from pathlib import Path

from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.learning.recommended import PLAIN
from mpcs_torch.plots.bars import paired_counts
from mpcs_torch.plots.decisions import risk_coverage_figure
from mpcs_torch.report.figures import costliest, draw_confusion
from mpcs_torch.report.render import draw, render
from mpcs_torch.trainer.demonstration import LIMIT, RECOMMENDED, WITH_REFERRAL, Demonstration, Effect


def write_demo_report(found: Demonstration, path: Path) -> None:
    """Write both results in a sentence each, their table, and the figures."""
    concern, names = found.concern, found.concern.classes
    both = {name: found.confusion(name) for name in (PLAIN, RECOMMENDED)}
    tallies = {name: found.tallies(name) for name in both}
    counts = {name: [tally.dangerous for tally in by_seed] for name, by_seed in tallies.items()}
    page = render(
        "demo",
        verdict=verdict(found),
        without_referral=without_referral(found),
        with_referral=with_referral(found),
        results=found.table(),
        seeds=len(found.seeds),
        samples=tallies[PLAIN][0].samples,
        released=int(concern.released().sum()),
        paired=draw(
            paired_counts(counts, ylabel="dangerous test errors"),
            "Dangerous test errors under each seed. Means: "
            + ", ".join(f"{name} {found.mean(name, 'dangerous'):.1f}" for name in both)
            + ".",
        ),
        matrices=[
            draw_confusion(confusion, concern, names, f"Confusion matrix: {name}, {len(found.seeds)} seeds")
            for name, confusion in both.items()
        ],
        curves=draw(
            risk_coverage_figure({name: found.curve(name) for name in both}),
            "Dangerous errors per decided sample against coverage, for the plain and the recommended run.",
        ),
        costs=costliest(both, concern, names),
    )
    path.write_text(page, encoding="utf-8")


def cut_of_dangerous(found: Demonstration) -> Effect:
    """Return the share of dangerous errors that the recommended recipe avoids."""
    return found.effect(lambda ours, theirs: 1 - ours / theirs, "dangerous")


def verdict(found: Demonstration) -> str:
    """Say in a short sentence what the recommended recipe gains."""
    cut = cut_of_dangerous(found).value
    if not cut:
        mean = found.mean(PLAIN, "dangerous")
        return f"The recommended recipe and the plain run make equally many dangerous errors on test data: {mean:.1f}."
    told = f"{100 * abs(cut):.0f} % {'fewer' if cut > 0 else 'more'} dangerous errors"
    counts = " instead of ".join(f"{found.mean(name, 'dangerous'):.1f}" for name in (RECOMMENDED, PLAIN))
    return f"The recommended recipe makes {told} on test data: {counts}."


def without_referral(found: Demonstration) -> str:
    """Say how many dangerous errors the recommended recipe avoids."""
    samples, cut = found.tallies(PLAIN)[0].samples, cut_of_dangerous(found)
    points = found.effect(lambda ours, theirs: 100 * (theirs - ours) / samples, "errors")
    return (
        f"Of {samples} test samples, the plain run makes {found.mean(PLAIN, 'dangerous'):.1f} dangerous errors and the "
        f"recommended loss and decision rule {found.mean(RECOMMENDED, 'dangerous'):.1f}: {100 * cut.value:.0f} % "
        f"[{100 * cut.low:.0f}, {100 * cut.high:.0f}] fewer, at {points.value:+.2f} "
        f"[{points.low:+.2f}, {points.high:+.2f}] points of accuracy (means over {len(found.seeds)} seeds and "
        f"{CONFIDENCE_TEXT} intervals)."
    )


def with_referral(found: Demonstration) -> str:
    """Say how much can be decided if dangerous errors are held to a limit."""
    plain, ours = PLAIN + WITH_REFERRAL, RECOMMENDED + WITH_REFERRAL
    return (
        f"If samples may be referred to somebody else, and at most {100 * LIMIT.at_most:g} % dangerous errors are "
        f"guaranteed with confidence {LIMIT.confidence:g}, the recommended recipe decides "
        f"{100 * found.mean(ours, 'decided', 'samples'):.1f} % of the samples, the plain run with the same rule "
        f"{100 * found.mean(plain, 'decided', 'samples'):.1f} %."
    )
