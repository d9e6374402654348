"""The reports of finished training runs, and of the paper's experiments."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import printable
from mpcs_torch.evaluation import evaluate
from mpcs_torch.evaluation.chosen import choose_metrics
from mpcs_torch.evaluation.classifier_files import RowRisks
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.outcomes import EVERY
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.functional import Comparison, summarize_comparisons
from mpcs_torch.functional.inputs.decisions import highest_class
from mpcs_torch.io.atomic_files import save_figure
from mpcs_torch.learning.selection import warn_of_pick
from mpcs_torch.paper.experiments import FinishedRun, evaluation_tables
from mpcs_torch.paper.published_values import TABLE_2, MeanOverRuns
from mpcs_torch.plots.samples import kind_of_sample, samples_figure
from mpcs_torch.plots.trends import figure_4
from mpcs_torch.report.epochs import PICKED, trends
from mpcs_torch.report.figures import ClassifierSections, error_kind
from mpcs_torch.report.harm import MAX_SENTENCES, harm_sentence, outcome_tiles
from mpcs_torch.report.render import Drawing, draw, render, save_table
from mpcs_torch.tables import Table
from mpcs_torch.trainer.config.load import dump_config
from mpcs_torch.trainer.config.parts import TEST
from mpcs_torch.trainer.result import TrainedRun

DANGEROUS = "dangerous"
"""The metric that counts dangerous errors."""
NOT_COMPARABLE = (
    "Runs are compared sample by sample if they share test samples and concern, and kept their checkpoints; else, a "
    "report of each run alone shows its errors by class."
)


class EpochPredictions(NamedTuple):
    """The predictions for the test samples by the model of one epoch."""

    probs: Tensor
    """The probabilities of the classes, float64 (N, C)."""
    labels: Tensor
    """The true classes, int64 (N,)."""
    inputs: Tensor
    """The test samples, (N, ...)."""
    concern: ConcernSpec
    scores: ClassifierScores
    """The metrics of the predictions, with intervals that assume independent samples."""
    rows: RowRisks
    """The estimated risks of errors of the test samples."""

    @property
    def errors(self) -> tuple[int, int]:
        """The number of errors, and the number of dangerous errors."""
        every = self.scores.outcomes[EVERY]
        return int(every.missed), int(every.dangerous)


def predict_epoch(run: TrainedRun, epoch: int) -> EpochPredictions | None:
    """Predict the test samples with the model of ``epoch``. None if it has no checkpoint, or logits are not finite."""
    logits = run.logits(run.test, epoch)
    if logits is None or not bool(logits.isfinite().all()):
        return None
    probs, labels, concern = (
        logits.double().softmax(dim=1),
        run.test.labels.cpu(),
        run.concern,
    )
    metrics = ("misclassification_rate", "dangerous_rate", "measured_geometric_accuracy")
    risks = RowRisks()
    risks.add(
        Rows(probs, labels, torch.arange(len(labels))),
        choose_metrics(concern.classes, concern),
    )
    scores = evaluate(probs, labels, concern=concern, metrics=metrics).first
    return EpochPredictions(probs, labels, run.test.inputs.cpu(), concern, scores, risks)


class WorstSamples(NamedTuple):
    """Wrong decisions about test samples."""

    table: Table
    pictures: list[Drawing]
    """A figure of the samples; none if they are neither images nor series."""


def worst_samples(predicted: EpochPredictions) -> WorstSamples | None:
    """Return the (at most 12) worst wrong decisions, by confidence times cost; None if no wrong decision has a cost."""
    labels, concern = predicted.labels, predicted.concern
    confidence, decisions = highest_class(predicted.probs)
    weights = concern.mpcs_weights()[labels, decisions]
    cost = confidence * weights * (decisions != labels)
    rows, pictures = list[dict[str, str]](), dict[str, Tensor]()
    for place in cost.argsort(descending=True, stable=True)[:12].tolist():
        if not cost[place] > 0:
            break
        pair = int(labels[place]), int(decisions[place])
        true, decided = [printable(concern.classes[label]) for label in pair]
        rows.append(
            {
                "test sample": str(place),
                "true": true,
                "predicted": decided,
                "confidence": f"{100 * confidence[place].item():.1f} %",
                "kind": error_kind(concern, *pair),
                "concern": f"{weights[place].item():g}",
            }
        )
        pictures[f"{place}: {true}, predicted {decided}"] = predicted.inputs[place].float()
    if not rows:
        return None
    drawings = list[Drawing]()
    if kind_of_sample(tuple(predicted.inputs.shape[1:])) is not None:
        alt = f"The {len(rows)} samples of the table: {'; '.join(pictures)}."
        drawings.append(draw(samples_figure(pictures), alt))
    return WorstSamples(Table.from_records(rows), drawings)


def other_pick(run: TrainedRun) -> tuple[str, int] | None:
    """Return the first of accuracy, MPCS and cross entropy that the selector does not rank by, and its best epoch."""
    picks = run.picks()
    by = None if run.config.selector is None else run.config.selector.by
    others = [
        name
        for name in ("accuracy", "mpcs", "cross_entropy")
        if name in picks and name != by
    ]
    return (others[0], picks[others[0]]) if others else None


def verdict_of_run(run: TrainedRun, predicted: Mapping[int, EpochPredictions]) -> str:
    """Return a sentence on test errors of the picked epoch, and of the epoch that another metric would have picked."""
    epoch, other = run.result.epoch, other_pick(run)
    if run.result.diverged:
        return f"The run has diverged: epoch {epoch} gives NaN or infinite logits."
    errors = _dangerous(run, epoch, predicted.get(epoch))
    sentence = f"Epoch {epoch} is picked"
    if errors is not None:
        sentence = f"Epoch {epoch} makes {_errors(run, errors)}"
    if other is not None:
        metric, number = other
        sentence += f"; {metric} would have picked "
        others = _dangerous(run, number, predicted.get(number))
        if number == epoch:
            sentence += "the same epoch"
        else:
            sentence += f"epoch {number}"
            if errors is not None and others is not None:
                also = "also " if errors == others else ""
                sentence += f", which {also}makes {others}"
    return f"{sentence}."


def _errors(run: TrainedRun, count: int) -> str:
    kind = "dangerous test error" if bool(run.concern.released().any()) else "test error"
    return f"{count} {kind}{'' if count == 1 else 's'}"


def _dangerous(
    run: TrainedRun, epoch: int, predicted: EpochPredictions | None
) -> int | None:
    """Return the number of dangerous test errors of ``epoch``, by ``predicted`` or the records; None if unknown."""
    if predicted is not None:
        return predicted.errors[1]
    record = next((record for record in run.records if record["epoch"] == epoch), {})
    picked = run.result.values["test"] if epoch == run.result.epoch else {}
    count = record.get(f"{TEST}{DANGEROUS}", picked.get(DANGEROUS))
    return None if count is None else int(count)


def compare_runs(predicted: Mapping[str, EpochPredictions]) -> Sequence[Comparison] | None:
    """Compare the dangerous and the total error rates of runs. Return None if their test samples or costs differ."""
    first, *others = predicted.values()
    for other in others:
        is_same = first.labels.equal(other.labels) and first.inputs.equal(other.inputs)
        if not is_same or first.concern != other.concern:
            return None
    names = (
        ["dangerous_rate"]
        if any(len({*each.errors}) > 1 for each in predicted.values())
        else []
    )
    preds = {name: each.probs for name, each in predicted.items()}
    return evaluate(
        preds,
        first.labels,
        concern=first.concern,
        metrics=[*names, "misclassification_rate"],
    ).comparisons


def run_counts(
    runs: Mapping[str, TrainedRun], predicted: Mapping[str, EpochPredictions]
) -> str:
    """Return a sentence with the number of dangerous test errors of each run.

    The keys of both arguments are names of runs. If ``predicted`` lacks a run, its recorded number is used.
    """
    counts = []
    for name, run in runs.items():
        errors = _dangerous(run, run.result.epoch, predicted.get(name))
        text = "errors not recorded" if errors is None else _errors(run, errors)
        counts.append(
            f"{name} (epoch {run.result.epoch}): {text} of {len(run.test.labels)} samples"
        )
    return "; ".join(counts) + "."


def last_picked(run: TrainedRun) -> list[str]:
    """Return a remark, in a list, if the last epoch is picked and better than all before; else an empty list."""
    selector, last = run.config.selector, int(run.records[-1]["epoch"])
    if selector is None or len(run.records) < 2:
        return []
    # Of equally good epochs, the first is picked by the metric alone.
    if run.result.epoch != last or run.picks().get(selector.by) != last:
        return []
    remark = f"The last epoch, {last}, was picked: {selector.by} was still getting better. More epochs may give "
    return [f"{remark}a better model."]


def write_run_report(runs: Sequence[TrainedRun], path: Path, *, data_root: Path) -> None:
    """Write a page about finished runs: verdict, costliest confusions, worst samples, figures and tables.

    Args:
        runs: The runs; several are compared.
        path: The HTML file to write.
        data_root: The folder of data sets, which is shown in the command that repeats a run.
    """
    names = [run.config.name for run in runs]
    if len(set(names)) < len(names):
        names = [printable(str(run.folder)) for run in runs]
    by_name = dict(zip(names, runs, strict=True))
    page = _single_run_page(runs[0]) if len(runs) == 1 else _several_runs_page(by_name)
    root = quote(str(data_root))
    configs = [quote(str(run.folder / "config.yaml")) for run in runs]
    render(
        "run",
        path,
        runs=by_name,
        commands=[
            printable(f"mpcs train {config} --data-root {root} --out again")
            for config in configs
        ],
        configs={name: dump_config(run.config) for name, run in by_name.items()},
        **page,
    )


def _single_run_page(run: TrainedRun) -> dict[str, Any]:
    """Return what the template shows of one run, and of the epoch that another metric would have picked."""
    config, epoch, other = run.config, run.result.epoch, other_pick(run)
    marked = {PICKED: epoch}
    if other is not None:
        marked[f"by {other[0]}"] = other[1]
    by_epoch = {number: predict_epoch(run, number) for number in marked.values()}
    predicted = {number: each for number, each in by_epoch.items() if each is not None}
    sentences = [
        verdict_of_run(run, predicted),
        *last_picked(run),
        f"Why epoch {epoch}: {run.result.reason}.",
    ]
    if run.result.stopped is not None:
        sentences.append(f"The run stopped {run.result.stopped}.")
    if config.selector is not None:
        data = "training" if config.epochs.samples == "train" else "validation"
        count = len(run.records)
        sentences += map(str, warn_of_pick(count, config.selector.by, f"the {data} data"))
    tiles: dict[str, object] = {
        "epochs": len(run.records),
        "classes": len(run.class_names),
        "test samples": len(run.test.labels),
    }
    page: dict[str, Any] = {"shown": None, "worst": None}
    picked = predicted.get(epoch)
    if picked is not None:
        sentences.insert(0, _harm_sentence(f"Epoch {epoch} of {config.name}", picked))
        tiles |= outcome_tiles(picked.scores, run.concern)
        titled = {
            f"epoch\N{NO-BREAK SPACE}{number}": each for number, each in predicted.items()
        }
        page["shown"] = _classifier_sections(titled, "epoch")
        page["worst"] = worst_samples(picked)
    return page | {
        "kind": f"Training run {config.name}: {config.data}, {config.model}, seed {config.seed}",
        "conclusions": sentences,
        "tiles": tiles,
        "picks": _picks_table(run),
        "comparisons": [],
        "trends": _trends({config.name: run}, {config.name: marked}),
    }


def _several_runs_page(runs: Mapping[str, TrainedRun]) -> dict[str, Any]:
    """Return what the template shows of several runs."""
    of_picked = {name: predict_epoch(run, run.result.epoch) for name, run in runs.items()}
    predicted = {name: each for name, each in of_picked.items() if each is not None}
    comparisons = compare_runs(predicted) if len(predicted) == len(runs) else None
    verdict, *verdicts = summarize_comparisons(comparisons or []) or [
        run_counts(runs, predicted)
    ]
    sentences = [verdict]
    if len(runs) <= MAX_SENTENCES:
        sentences += [_harm_sentence(name, each) for name, each in predicted.items()]
    sentences += verdicts
    sentences += [
        f"{name}: {remark}" for name, run in runs.items() for remark in last_picked(run)
    ]
    shown = None
    if comparisons is None:
        sentences.append(NOT_COMPARABLE)
    else:
        shown = _classifier_sections(predicted, "run")
    marked = {name: {PICKED: run.result.epoch} for name, run in runs.items()}
    return {
        "kind": f"Training runs {', '.join(runs)}",
        "conclusions": sentences,
        "tiles": {},
        "shown": shown,
        "worst": None,
        "picks": _runs_table(runs, predicted),
        "comparisons": comparisons,
        "trends": _trends(runs, marked),
    }


def _harm_sentence(name: str, predicted: EpochPredictions) -> str:
    return (
        f"{name} {harm_sentence(predicted.scores, predicted.concern, what='test samples')}"
    )


def _classifier_sections(
    predicted: Mapping[str, EpochPredictions], system: str
) -> ClassifierSections:
    """Return the parts of a page about ``predicted``, epochs or runs with one concern."""
    scores = {name: each.scores for name, each in predicted.items()}
    rows = {name: each.rows for name, each in predicted.items()}
    return ClassifierSections(scores, rows, next(iter(predicted.values())).concern, system)


def _columns(runs: Mapping[str, TrainedRun]) -> list[str]:
    columns = dict.fromkeys(
        column for run in runs.values() for column in run.records[0] if column != "epoch"
    )
    return list(columns)[:8]


def _picks_table(run: TrainedRun) -> Table:
    by_epoch: dict[int, list[str]] = {run.result.epoch: [PICKED]}
    for metric, epoch in run.picks().items():
        by_epoch.setdefault(epoch, []).append(metric)
    records = {int(record["epoch"]): record for record in run.records}
    columns = _columns({"": run})
    return Table.from_records(
        [
            {
                "ranked first by": ", ".join(metrics),
                "epoch": str(epoch),
                **_cells(records[epoch], columns),
            }
            for epoch, metrics in by_epoch.items()
        ]
    )


def _runs_table(
    runs: Mapping[str, TrainedRun], predicted: Mapping[str, EpochPredictions]
) -> Table:
    columns = [
        column for column in _columns(runs) if column != DANGEROUS
    ]  # the table always has this column
    rows = list[dict[str, str]]()
    for name, run in runs.items():
        test = run.result.values["test"]
        counts = ["", f"{test[DANGEROUS]:g}" if DANGEROUS in test else ""]
        if name in predicted:
            counts = [str(count) for count in predicted[name].errors]
        cells = {
            "run": name,
            "picked epoch": str(run.result.epoch),
            "test samples": str(len(run.test.labels)),
        }
        rows.append(
            {
                **cells,
                "errors": counts[0],
                "dangerous errors": counts[1],
                **_cells(test, columns),
            }
        )
    return Table.from_records(rows)


def _cells(values: Mapping[str, float], columns: Sequence[str]) -> dict[str, str]:
    """Return the values of ``columns`` as texts: whole numbers without decimals, others with 4 significant digits."""
    texts = {
        name: f"{value:.0f}" if value.is_integer() else f"{value:#.4g}"
        for name, value in values.items()
    }
    return {name: texts.get(name, "") for name in columns}


def _trends(
    runs: Mapping[str, TrainedRun], marked: Mapping[str, Mapping[str, int]]
) -> list[Drawing]:
    return trends({name: run.records for name, run in runs.items()}, _columns(runs), marked)


FILES = ("runs.md", "table2.md", "table3.md", "figure4.png", "figure4.svg", "report.html")


def write_evaluation(
    folder: Path,
    finished: Mapping[str, FinishedRun],
    seeds: Mapping[str, Sequence[MeanOverRuns]],
) -> None:
    """Write tables, a figure and a page about the paper's experiments to ``folder``; `FILES` has the file names."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = list(evaluation_tables(finished, seeds))
    for name, _, table in tables:
        save_table(table, folder / f"{name}.md")
    runs = {name: finished[name] for name in TABLE_2 if name in finished}
    figure = figure_4(
        {
            f"{name}: {run.config.model}, {run.config.data}": run.records
            for name, run in runs.items()
        }
    )
    save_figure(figure, folder / "figure4.png")
    save_figure(figure, folder / "figure4.svg")
    render(
        "evaluation",
        folder / "report.html",
        tables=[(title, table) for _, title, table in tables],
        figure=draw(
            figure,
            f"Metrics over the epochs, from 0 at the lowest to 1 at the highest, in a panel for each of {len(runs)} "
            "experiments. Accuracy, F1 and MCC rise as the others fall.",
        ),
    )
