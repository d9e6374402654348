"""The report of finished training runs."""

from collections.abc import Mapping, Sequence
from math import nan
from pathlib import Path
from shlex import quote

from markupsafe import Markup

from mpcs_torch.errors import printable
from mpcs_torch.evaluation import evaluate
from mpcs_torch.functional import Comparison, summarize_comparisons
from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.io.atomic_files import replace_text
from mpcs_torch.learning.selection import warn_of_pick
from mpcs_torch.plots.trends import metric_trend
from mpcs_torch.report.epoch_predictions import EpochPredictions, predict_epoch
from mpcs_torch.report.figures import ClassifierSections
from mpcs_torch.report.harm import MAX_SENTENCES, TERMS, harm_sentence, outcome_tiles
from mpcs_torch.report.render import SHOWN, comparison_section, draw, part, render
from mpcs_torch.tables import Table
from mpcs_torch.trainer.config.load_with_suggestions import dump_config
from mpcs_torch.trainer.config.metrics import TEST
from mpcs_torch.trainer.result import TrainedRun

DANGEROUS = "dangerous"
"""The metric that counts dangerous errors."""
PICKED = "picked"
BY_CLASS = f"On test data, the class with the most expensive error first; {CONFIDENCE_TEXT} intervals in brackets"
MATRIX = "Confusion matrix{}, test data"
NOT_KEPT = (
    "No checkpoint of the picked epoch was kept, so its predictions cannot be shown. A run keeps one with "
    "selector: {by: mpcs} in its config."
)
NOT_COMPARABLE = (
    "Runs are compared sample by sample if they share test samples and concern, and kept their checkpoints."
)


def other_pick(run: TrainedRun) -> tuple[str, int] | None:
    """Return a metric that did not pick the epoch, accuracy if possible, and the epoch it would pick; None if none."""
    picks = run.picks()
    by = None if run.config.selector is None else run.config.selector.by
    others = [name for name in ("accuracy", "mpcs", "cross_entropy") if name in picks and name != by]
    return (others[0], picks[others[0]]) if others else None


def verdict_of_run(run: TrainedRun, predicted: Mapping[int, EpochPredictions]) -> str:
    """Return a sentence on the test errors of the picked epoch, and on the epoch that another metric would pick.

    Args:
        run: The run.
        predicted: The predictions of the epochs whose checkpoints were kept.
    """
    epoch, other = run.result.epoch, other_pick(run)
    if run.result.diverged:
        return f"The run has diverged: epoch {epoch} gives NaN or infinite logits."
    errors = _dangerous(run, epoch, predicted.get(epoch))
    sentence = f"Epoch {epoch} is picked" if errors is None else f"Epoch {epoch} makes {_errors(run, errors)}"
    if other is None:
        return f"{sentence}."
    metric, number = other
    if number == epoch:
        return f"{sentence}; {metric} would have picked the same epoch."
    sentence += f"; {metric} would have picked epoch {number}"
    others = _dangerous(run, number, predicted.get(number))
    if errors is not None and others is not None:
        return f"{sentence}, which {'also ' if errors == others else ''}makes {others}."
    return f"{sentence}."


def _errors(run: TrainedRun, count: int) -> str:
    kind = "dangerous test error" if bool(run.concern.released().any()) else "test error"
    return f"{count} {kind}{'' if count == 1 else 's'}"


def _dangerous(run: TrainedRun, epoch: int, predicted: EpochPredictions | None) -> int | None:
    """Return the number of dangerous test errors of an epoch, by predictions, records or result; None if unknown."""
    if predicted is not None:
        return predicted.errors[1]
    record = next((record for record in run.records if record["epoch"] == epoch), {})
    picked = run.result.values["test"] if epoch == run.result.epoch else {}
    count = record.get(f"{TEST}{DANGEROUS}", picked.get(DANGEROUS))
    return None if count is None else int(count)


def is_same_test(runs: Mapping[str, EpochPredictions]) -> bool:
    """Return whether all runs were predicted on the same test samples."""
    first, *others = runs.values()
    return all(
        first.labels.equal(other.labels) and first.test.inputs.cpu().equal(other.test.inputs.cpu()) for other in others
    )


def compare_runs(runs: Mapping[str, EpochPredictions]) -> Sequence[Comparison]:
    """Compare the picked epochs of runs on the same test samples, by dangerous errors and by all errors."""
    first = next(iter(runs.values()))
    names = ["dangerous_rate"] if any(len({*predicted.errors}) > 1 for predicted in runs.values()) else []
    preds = {name: predicted.probs for name, predicted in runs.items()}
    return evaluate(preds, first.labels, concern=first.concern, metrics=[*names, "misclassification_rate"]).comparisons


def counts_of(runs: Mapping[str, TrainedRun], predicted: Mapping[str, EpochPredictions]) -> str:
    """Return a sentence that counts the dangerous errors of runs that cannot be compared sample by sample."""
    counts = []
    for name, run in runs.items():
        errors = _dangerous(run, run.result.epoch, predicted.get(name))
        text = "errors not recorded" if errors is None else _errors(run, errors)
        counts.append(f"{name} (epoch {run.result.epoch}): {text} of {len(run.test.labels)} samples")
    return "; ".join(counts) + "."


def last_picked(run: TrainedRun) -> list[str]:
    """Return a remark if the picked epoch is the last one, and its metric is better there than at any other epoch."""
    selector, numbers = run.config.selector, [int(record["epoch"]) for record in run.records]
    if selector is None or len(numbers) < 2 or run.result.epoch != numbers[-1] or selector.by not in run.directions():
        return []
    sign = -1 if run.directions()[selector.by] == "max" else 1
    *before, last = [sign * record[selector.by] for record in run.records]
    remark = f"The last epoch, {numbers[-1]}, was picked: {selector.by} was still getting better. More epochs may give "
    return [f"{remark}a better model."] if last < min(before) else []


def write_run_report(runs: Sequence[TrainedRun], path: Path, *, data_root: Path) -> None:
    """Write a page about finished runs: verdict, costliest confusions, worst samples, figures and tables.

    Args:
        runs: One run, or several that are compared.
        path: The HTML file to write.
        data_root: The folder of the data, for the command that repeats a run.
    """
    names = [run.config.name for run in runs]
    if len(set(names)) < len(names):
        names = [printable(str(run.folder)) for run in runs]
    by_name = dict(zip(names, runs, strict=True))
    parts = _of_one(runs[0]) if len(runs) == 1 else _of_several(by_name)
    kind, (verdict, *sentences), facts, sections, certainty = parts
    metrics = [
        part("table", run.result.table(), f"Metrics of {name} at its picked epoch, on each split")
        for name, run in by_name.items()
    ]
    root = quote(str(data_root))
    configs = [quote(str(run.folder / "config.yaml")) for run in runs]
    commands = [printable(f"mpcs train {config} --data-root {root} --out again") for config in configs]
    sections += [
        part("folded", "h2", "All metrics", *metrics),
        certainty,
        part("repeated", commands),
        *(
            part("folded", "h3", f"Config of {name}", part("config", name, dump_config(run.config)))
            for name, run in by_name.items()
        ),
    ]
    page = render("page", kind=kind, verdict=verdict, lead=[part("sentences", sentences), facts], sections=sections)
    replace_text(path, page)


Parts = tuple[str, list[str], Markup, list[Markup], Markup]
"""The parts of a page: its kind, the title and other sentences, tiles, sections, and the section on certainty."""


def _of_one(run: TrainedRun) -> Parts:
    """Return the parts of the page of a single run: its picked epoch beside the epoch that another metric picks."""
    name, epoch, other, selector = run.config.name, run.result.epoch, other_pick(run), run.config.selector
    marked = {PICKED: epoch, **({} if other is None else {f"by {other[0]}": other[1]})}
    predicted = {number: each for number in marked.values() if (each := predict_epoch(run, number)) is not None}
    titles = {number: f"epoch\N{NO-BREAK SPACE}{number}" for number in predicted}
    shown = _sections_of({titles[number]: each for number, each in predicted.items()}, "epoch")
    picked = predicted.get(epoch)
    where = f"the {'training' if run.config.epochs.samples == 'train' else 'validation'} data"
    sentences = [
        *([] if picked is None else [_harm_sentence(f"Epoch {epoch} of {name}", picked)]),
        verdict_of_run(run, predicted),
        *last_picked(run),
        f"Why epoch {epoch}: {run.result.reason}.",
        *([] if run.result.stopped is None else [f"The run stopped {run.result.stopped}."]),
        *([] if selector is None else map(str, warn_of_pick(len(run.records), selector.by, where))),
    ]
    sections = [part("notes", [] if picked is not None else [NOT_KEPT])]
    if shown is not None and picked is not None:
        sections += shown.sections(BY_CLASS, title=MATRIX, alone=titles[epoch])
        worst = part("samples", picked.worst_samples())
        note = part("notes", ["Wrong decisions with the highest confidence times concern."] if worst else [])
        sections.append(part("section", "Worst test samples", note, worst))
    picks = part("table", _picks_table(run), "The epoch that each metric ranks first")
    sections += [part("section", "What each metric picks", picks), _trends({name: run}, {name: marked})]
    kind = f"Training run {name}: {run.config.data}, {run.config.model}, seed {run.config.seed}"
    facts: dict[str, object] = {"epochs": len(run.records), "classes": len(run.class_names)}
    facts |= {"test samples": len(run.test.labels), **(outcome_tiles(picked.scores, run.concern) if picked else {})}
    certainty = Markup() if shown is None else shown.certainty()
    return kind, sentences, part("facts", facts, TERMS), sections, certainty


def _of_several(runs: Mapping[str, TrainedRun]) -> Parts:
    """Return the parts of a page that compares several runs, each at its picked epoch."""
    predicted = {name: each for name, run in runs.items() if (each := predict_epoch(run, run.result.epoch)) is not None}
    is_comparable = (
        len(predicted) == len(runs) and is_same_test(predicted) and len({r.concern for r in runs.values()}) == 1
    )
    comparisons = compare_runs(predicted) if is_comparable else []
    shown = _sections_of(predicted, "run") if is_comparable else None
    verdict, *verdicts = summarize_comparisons(comparisons) or [counts_of(runs, predicted)]
    sentences = [
        verdict,
        *(_harm_sentence(name, predictions) for name, predictions in predicted.items() if len(runs) <= MAX_SENTENCES),
        *(
            f"{name} kept no checkpoint of epoch {run.result.epoch}, so it has no confusion matrix here."
            for name, run in runs.items()
            if name not in predicted
        ),
        *verdicts,
        *(f"{name}: {remark}" for name, run in runs.items() for remark in last_picked(run)),
        *([] if is_comparable else [NOT_COMPARABLE]),
    ]
    if shown is not None:
        sections = shown.sections(BY_CLASS, title=MATRIX)
    else:
        alone = [_sections_of({name: predictions}, "run") for name, predictions in predicted.items()]
        drawn = [one.matrices(MATRIX) for one in alone if one is not None]
        matrices = part("section", "Where the errors lie", *drawn)
        sections = [part("notes", [] if predicted else [NOT_KEPT]), matrices]
    picked = part("table", _runs_table(runs, predicted), "Picked epochs, and metrics on test data")
    sections += [
        part("section", "Picked epochs", picked),
        comparison_section(comparisons, "test samples of runs", note=f"{SHOWN} Samples are assumed to be independent."),
        _trends(runs, {name: {PICKED: run.result.epoch} for name, run in runs.items()}),
    ]
    certainty = Markup() if shown is None else shown.certainty()
    return f"Training runs {', '.join(runs)}", sentences, Markup(), sections, certainty


def _harm_sentence(name: str, predicted: EpochPredictions) -> str:
    """Return a sentence that counts dangerous test errors by class, with intervals for independent samples."""
    return f"{name} {harm_sentence(predicted.scores, predicted.concern, what='test samples')}"


def _sections_of(predicted: Mapping[str, EpochPredictions], system: str) -> ClassifierSections | None:
    """Return the page sections about predictions of epochs or of runs with one concern; None without predictions."""
    scores, rows = ({name: getattr(each, of) for name, each in predicted.items()} for of in ("scores", "rows"))
    return ClassifierSections(scores, rows, next(iter(predicted.values())).concern, system) if predicted else None


def _columns(runs: Mapping[str, TrainedRun]) -> list[str]:
    """Return the columns to show: the first 8 columns of the records of all runs, without the epoch."""
    columns = dict.fromkeys(column for run in runs.values() for column in run.records[0] if column != "epoch")
    return list(columns)[:8]


def _picks_table(run: TrainedRun) -> Table:
    """Return a table with a row for each epoch that some metric ranks first, and for the picked epoch."""
    by_epoch: dict[int, list[str]] = {run.result.epoch: [PICKED]}
    for metric, epoch in run.picks().items():
        by_epoch.setdefault(epoch, []).append(metric)
    records = {int(record["epoch"]): record for record in run.records}
    columns = _columns({"": run})
    rows = [
        [", ".join(metrics), str(epoch), *(_shown(records[epoch][column]) for column in columns)]
        for epoch, metrics in by_epoch.items()
    ]
    return Table(["ranked first by", "epoch", *columns], rows)


def _runs_table(runs: Mapping[str, TrainedRun], predicted: Mapping[str, EpochPredictions]) -> Table:
    rows = []
    columns = [column for column in _columns(runs) if column != DANGEROUS]  # which always has a column of its own
    for name, run in runs.items():
        test = run.result.values["test"]
        recorded = f"{test[DANGEROUS]:g}" if DANGEROUS in test else ""
        counts = ["", recorded] if name not in predicted else [str(count) for count in predicted[name].errors]
        values = [_shown(test[metric]) if metric in test else "" for metric in columns]
        rows.append([name, str(run.result.epoch), str(len(run.test.labels)), *counts, *values])
    return Table(["run", "picked epoch", "test samples", "errors", "dangerous errors", *columns], rows)


def _shown(value: float) -> str:
    """Format a number with 4 digits, trailing zeros included, to align a column; whole numbers get no zeros."""
    return f"{value:.0f}" if value.is_integer() else f"{value:#.4g}"


def _trends(runs: Mapping[str, TrainedRun], marked: Mapping[str, Mapping[str, int]]) -> Markup:
    """Return the section with a figure of each metric over the epochs."""
    drawings = []
    for column in _columns(runs):
        ends = "; ".join(
            f"{name}: {run.records[0].get(column, nan):.4g} at the first epoch, "
            f"{run.records[-1].get(column, nan):.4g} at the last"
            for name, run in runs.items()
        )
        figure = metric_trend({name: run.records for name, run in runs.items()}, column, marked)
        drawings.append(draw(figure, f"{column} over the epochs. {ends}."))
    return part("section", "Trends over epochs", part("figures", drawings))
