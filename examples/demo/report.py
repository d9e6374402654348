"""The report of `make demo`: a plain run beside the recommended recipe."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from examples.demo.demonstration import LIMIT, RECOMMENDED, WITH_REFERRAL, Demonstration, Effect
from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.learning.recommended import PLAIN
from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import canvas, legend_below, literal
from mpcs_torch.plots.decisions import risk_coverage_figure
from mpcs_torch.report.figures import costliest, draw_confusion
from mpcs_torch.report.render import draw, part, render


def write_demo_report(found: Demonstration, path: Path) -> None:
    """Write both results in a sentence each, their table, and the figures."""
    concern, names = found.concern, found.concern.classes
    both = {name: found.confusion(name) for name in (PLAIN, RECOMMENDED)}
    tallies = {name: found.tallies(name) for name in both}
    counts = {name: [tally.dangerous for tally in by_seed] for name, by_seed in tallies.items()}
    paired = draw(
        paired_counts(counts, ylabel="dangerous test errors"),
        "Dangerous test errors under each seed. Means: "
        + ", ".join(f"{name} {found.mean(name, 'dangerous'):.1f}" for name in both)
        + ".",
    )
    curves = draw(
        risk_coverage_figure({name: found.curve(name) for name in both}),
        "Dangerous errors per decided sample against coverage, for the plain and the recommended run.",
    )
    matrices = [
        draw_confusion(confusion, concern, names, f"Confusion matrix: {name}, {len(found.seeds)} seeds")
        for name, confusion in both.items()
    ]
    caption = f"Means over {len(found.seeds)} seeds, on {tallies[PLAIN][0].samples} test samples under each"
    about = ABOUT.format(int(concern.released().sum()))
    page = render(
        "page",
        kind="Demonstration: handwritten digits, on test data",
        verdict=verdict(found),
        lead=[part("sentences", [without_referral(found), with_referral(found)])],
        sections=[
            part("section", "Results", part("table", found.table(), caption), part("notes", [about])),
            part(
                "section",
                "Seed by seed, and with referral",
                part("figures", [paired, curves]),
                part("notes", [REFERRAL]),
            ),
            part("section", "Where the errors lie", part("figures", matrices)),
            part("section", "Costliest confusions", costliest(both, concern, names)),
        ],
    )
    path.write_text(page, encoding="utf-8")


ABOUT = (
    "Each seed has its own split. {} ordered pairs of digits are released, which means tolerable; every other error is "
    "dangerous. Plain: cross entropy, and the most probable class. Recommended: recommended(concern), which trains "
    "four models, three with margins for dangerous errors, and chooses one of them and the costs to decide by on "
    "validation samples. Nothing was chosen on test samples."
)
REFERRAL = (
    "Referral: the samples with the highest estimated risk are referred to somebody else first. Test samples of all "
    "seeds."
)


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


def paired_counts(counts: Mapping[str, Sequence[float]], *, ylabel: str) -> Figure:
    """Draw the counts of a baseline and of another way, by name, under each seed, and the means as dashed lines."""
    figure, axes = canvas(3.3, xlabel="seed", ylabel=ylabel)
    baseline, other = counts.values()
    seeds = range(len(baseline))
    axes.vlines(seeds, baseline, other, color=style.LIGHT_GREY, linewidth=3, zorder=1)
    for (name, values), colour in zip(counts.items(), (style.CROSS_ENTROPY, style.MPCS), strict=True):
        mean = sum(values) / len(values)
        axes.scatter(
            seeds, values, color=colour, zorder=2, label=f"{literal(name, style.MAX_IN_SENTENCE)} (mean {mean:.1f})"
        )
        axes.axhline(mean, color=colour, linestyle="--", linewidth=1, zorder=0)
    axes.set_ylim(bottom=0, top=1.05 * max(*baseline, *other, 1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    return legend_below(figure)
