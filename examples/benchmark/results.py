"""The tables, sentences and figures of the benchmark, from the results of its tasks."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from examples.benchmark.figures import frontier_figure, summary_figure
from examples.benchmark.judging import COVERAGES
from examples.benchmark.measures import Effect, difference, geometric_mean, reduction
from examples.benchmark.runs import file_name
from examples.benchmark.tasks import TASKS
from mpcs_torch.plots.forest import forest_figure
from mpcs_torch.tables import Table

Result = Mapping[str, Any]
"""The results of a task, as `result_of` returns them."""
ACCURACY, DANGEROUS = range(2)
"""Of a `Measure`."""
EXPLANATION = """\
`python -m examples.benchmark` writes this page. The best plain method is a single model that decides for its most
probable class. All differences are to this method, on test samples, with seeds that played no part in any choice.
Brackets are 95 % intervals over these seeds.

- *Points* are differences in accuracy. *Dangerous* counts dangerous errors in 10 000 samples.
- *With the rule*, decisions use costs that were chosen on validation samples.
- *Decided* is the share of samples that are decided under a limit on dangerous errors with confidence 95 %.
- *More* is the difference to the plain method that decides most samples."""
PARTS = """\
`recommended` trains four models and decides by cost. The plain method trains one model. The rows tell how much of the
difference remains if the plain method is decided by cost, too. An ensemble of as many models is a fairer comparison for
averages: see the rows of ensembles below."""
SPECIAL = {
    "baseline": "best plain method",
    "plain, referring": "best plain method under the limit",
    "plain, recommended": "the same, with costs chosen by `recommended`",
    "recommended": "**`recommended`**",
    "recommended, averages": "**`recommended`, averages among its models**",
}
"""The names of special rows in tables."""


def effects(result: Result, row: Mapping[str, Any], part: str) -> tuple[Effect, Effect]:
    """Return what a row changes against the baseline: accuracy, and the share of dangerous errors that are gone."""
    ours, theirs = np.array(row[part]), np.array(result["special"]["baseline"]["decided"])
    gain = difference(ours[:, ACCURACY].tolist(), theirs[:, ACCURACY].tolist())
    return gain, reduction(ours[:, DANGEROUS].tolist(), theirs[:, DANGEROUS].tolist())


def coverage_gain(result: Result, row: Mapping[str, Any], part: str) -> Effect:
    """Return how many more samples a row decides under the limit than the best plain method."""
    theirs = [each[0] for each in result["special"]["plain, referring"]["referred"]]
    return difference([each[0] for each in row[part]], theirs)


def task_table(result: Result) -> Table:
    """Return a row for each method, with differences to the best plain method and their intervals of 95 %."""
    header = ["method", "setting", "accuracy", "points", "dangerous", "change", "with the rule: points", "change"]
    header += [f"decided at {100 * result['limit']:g} %", "more", "with normalized logits"]
    rows = []
    special = {title: result["special"][name] for name, title in SPECIAL.items() if name in result["special"]}
    for name, row in (*special.items(), *result["rows"].items()):
        decided = np.array(row["decided"]).mean(axis=0)
        gain, cut = effects(result, row, "decided")
        ruled_gain, ruled_cut = effects(result, row, "ruled")
        if row["setting"] is None:
            setting = f"the best of {row['models']} under each seed" if row["models"] > 1 else ""
        else:
            setting = ", ".join(f"{key} {value:g}" for key, value in row["setting"].items())
            setting += f", lr {row['learning_rate']:g}" if row["learning_rate"] else ""
            setting = f"{row['arms'][0][0]}: {setting}" if name in special else setting
        coverage = np.mean([each[0] for each in row["referred"]])
        cells = [name, setting, f"{100 * decided[ACCURACY]:.2f} %", points(gain), f"{1e4 * decided[DANGEROUS]:.1f}"]
        cells += [change(cut), points(ruled_gain), change(ruled_cut), f"{100 * coverage:.1f} %"]
        cells.append(points(coverage_gain(result, row, "referred"), digits=1))
        cells.append(points(coverage_gain(result, row, "normalized"), digits=1) if row["normalized"] else "")
        rows.append(cells)
    return Table(header, rows)


def points(effect: Effect, digits: int = 2) -> str:
    """Write a difference of shares in points of a hundred, with its interval."""
    value, low, high = (100 * each for each in effect)
    return f"{value:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"


def change(cut: Effect) -> str:
    """Write the change of a rate in percent, with its interval."""
    value, low, high = (0 - 100 * each for each in cut)  # 0 is not written as -0
    return f"{value:+.1f} % [{high:+.1f}, {low:+.1f}]"


def recommended_table(results: Sequence[Result]) -> Table:
    """Return a row for each task: `recommended` against the best plain method, and the best of all methods."""
    header = ["task", "best plain method", "accuracy", "`recommended`: points", "dangerous errors"]
    header += ["decided under the limit", "more", "method with the fewest dangerous errors", "points", "change"]
    rows = []
    for result in results:
        base, plain, ours = (result["special"][name] for name in ("baseline", "plain, referring", "recommended"))
        gain, cut = effects(result, ours, "ruled")
        singles = {name: row for name, row in result["rows"].items() if row["models"] == 1}
        best = max(singles, key=lambda name: effects(result, singles[name], "ruled")[1].value)
        best_gain, best_cut = effects(result, singles[best], "ruled")
        cells = [result["task"], base["arms"][0][0], f"{100 * np.array(base['decided'])[:, ACCURACY].mean():.2f} %"]
        cells += [points(gain), change(cut), f"{100 * np.mean([each[0] for each in plain['referred']]):.1f} %"]
        cells += [points(coverage_gain(result, ours, "referred"), digits=1), best, points(best_gain), change(best_cut)]
        rows.append(cells)
    return Table(header, rows)


def parts_table(results: Sequence[Result]) -> Table:
    """Return how many dangerous errors are avoided against the plain method with and without its own decision rule."""
    header = ["trained by", "tasks", "trainings", "against", "dangerous errors", "points of accuracy, mean"]
    rows = []
    for name in ("recommended", "recommended, averages"):
        tried = tried_on(results, name)
        for part, words in (("decided", "the best plain method"), ("ruled", "the same, decided by cost, too")):
            ours = [np.array(row["ruled"]) for _, row in tried]
            theirs = [np.array(result["special"]["baseline"][part]) for result, _ in tried]
            sizes = [result["samples"] for result, _ in tried]
            both = list(zip(sizes, ours, theirs, strict=True))
            cut = geometric_mean([(size * a[:, DANGEROUS], size * b[:, DANGEROUS]) for size, a, b in both])
            gain = np.mean([(a - b)[:, ACCURACY].mean() for _, a, b in both])
            trainings = max(row["models"] for _, row in tried)
            rows.append([name, str(len(tried)), f"{trainings} instead of 1", words, change(cut), f"{100 * gain:+.2f}"])
    return Table(header, rows)


def summary_table(results: Sequence[Result]) -> Table:
    """Return a row for each method: its mean over all tasks on which it is tried."""
    header = ["method", "tasks", "models", "dangerous errors", "accuracy, lowest", "with the rule: dangerous errors"]
    header += ["accuracy, lowest", "decided under the limit, mean"]
    rows = []
    for name in summary_names(results):
        tried = tried_on(results, name)
        cells = [name, str(len(tried)), str(max(row["models"] for _, row in tried))]
        for part in ("decided", "ruled"):
            both = [effects(result, row, part) for result, row in tried]
            cells += [change(overall(tried, part)), f"{100 * min(gain.value for gain, _ in both):+.2f}"]
        cells.append(f"{100 * np.mean([coverage_gain(*each, 'referred').value for each in tried]):+.1f}")
        rows.append(cells)
    return Table(header, rows)


def overall(tried: Sequence[tuple[Result, Mapping[str, Any]]], part: str) -> Effect:
    """Return the share of dangerous errors that are gone, as the geometric mean over tasks."""
    pairs = []
    for result, row in tried:
        ours, theirs = (np.array(each)[:, DANGEROUS] for each in (row[part], result["special"]["baseline"]["decided"]))
        pairs.append((result["samples"] * ours, result["samples"] * theirs))
    return geometric_mean(pairs)


def summary_names(results: Sequence[Result]) -> list[str]:
    """Return the names of the rows of the summary: the recipes, and all methods."""
    names = dict.fromkeys(name for result in results for name in result["rows"])
    recipes = [name for name in ("recommended", "recommended, averages") if tried_on(results, name)]
    return [*recipes, *names]


def tried_on(results: Sequence[Result], name: str) -> list[tuple[Result, Any]]:
    """Return the tasks that have a row of a name, with that row."""
    rows = [(result, {**result["rows"], **result["special"]}.get(name)) for result in results]
    return [(result, row) for result, row in rows if row is not None]


def task_figure(result: Result) -> Figure:
    """Draw dangerous errors against accuracy for all methods, and against coverage for the best ones."""
    base = np.array(result["special"]["baseline"]["decided"]).mean(axis=0)
    marks = {name: effects(result, row, "decided") for name, row in result["rows"].items()}
    marks["recommended"] = effects(result, result["special"]["recommended"], "ruled")
    lines = {
        name: [(each[ACCURACY] - base[ACCURACY], each[DANGEROUS] / base[DANGEROUS] - 1) for each in line]
        for name, line in result["lines"].items()
    }
    curves = {name: (COVERAGES, curve) for name, curve in result["curves"].items()}
    return frontier_figure(marks, lines, curves, title=result["task"], limit=result["limit"])


def overall_figure(results: Sequence[Result]) -> Figure:
    """Draw what each method changes over all tasks: with and without the decision rule."""
    tried = {name: tried_on(results, name) for name in summary_names(results)}
    return summary_figure({name: (overall(each, "decided"), overall(each, "ruled")) for name, each in tried.items()})


def recommended_figure(results: Sequence[Result]) -> Figure:
    """Draw what `recommended` changes on each task."""
    rows = {}
    for result in results:
        ours = result["special"]["recommended"]
        gain, cut = effects(result, ours, "ruled")
        more = coverage_gain(result, ours, "referred")
        change_of_errors = Effect(-cut.value, -cut.high, -cut.low)
        rows[result["task"]] = [Effect(*(100 * each for each in effect)) for effect in (change_of_errors, gain, more)]
    return forest_figure(rows, ["dangerous errors, %", "accuracy, points", "decided under the limit, points"])


def save_values(results: Sequence[Result], folder: Path) -> None:
    """Write the values of each task to a folder, which `saved_results` reads."""
    for result in results:
        name = file_name(result["task"])
        (folder / f"{name}.json").write_text(json.dumps(rounded(result), separators=(",", ":")), encoding="utf-8")


def write_page(results: Sequence[Result], folder: Path) -> None:
    """Write the page of all tables and its figures."""
    (folder / "results.md").write_text(page_of(results), encoding="utf-8")
    for result in results:
        task_figure(result).savefig(folder / f"{file_name(result['task'])}.png", dpi=110)
    recommended_figure(results).savefig(folder / "recommended.png", dpi=110)
    overall_figure(results).savefig(folder / "methods.png", dpi=110)


def page_of(results: Sequence[Result]) -> str:
    """Return a page of all tables, which shows the figures of `write_page`."""
    parts = ["# The benchmark's tables", EXPLANATION]
    parts += ["## What the decision rule and the trainings change", PARTS, parts_table(results).markdown()]
    parts += ["## `recommended` on each task", recommended_table(results).markdown()]
    parts += ["![Changes by recommended on each task](recommended.png)"]
    parts += ["## Each method over its tasks", summary_table(results).markdown()]
    parts += ["![Changes of dangerous errors by method](methods.png)"]
    for result in results:
        picture = f"![Dangerous errors over accuracy and over coverage]({file_name(result['task'])}.png)"
        parts += [f"## {result['task']}", task_table(result).markdown(), picture]
    return "\n\n".join(parts) + "\n"


def rounded(value: Any) -> Any:
    """Round all numbers to six digits after the point, which is less than one sample."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, Mapping):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list | tuple) else value


def saved_results(folder: Path) -> Iterator[Result]:
    """Read the results of each task that is done."""
    for name in TASKS:
        file = folder / f"{file_name(name)}.json"
        if file.is_file():
            yield json.loads(file.read_text(encoding="utf-8"))
