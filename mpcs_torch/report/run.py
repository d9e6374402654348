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
from mpcs_torch.report.error_counts import MAX_SENTENCES, error_sentence, outcome_tiles
from mpcs_torch.report.figures import ClassifierSections, error_kind
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
    probs = logits.double().softmax(dim=1)
    labels = run.test.labels.cpu()
    concern = run.concern
    metrics = ("misclassification_rate", "dangerous_rate", "measured_geometric_accuracy")
    risks = RowRisks()
    rows = Rows(probs, labels, torch.arange(len(labels)))
    risks.add(rows, choose_metrics(concern.classes, concern))
    scores = evaluate(probs, labels, concern=concern, metrics=metrics).first
    return EpochPredictions(probs, labels, run.test.inputs.cpu(), concern, scores, risks)


class WorstSamples(NamedTuple):
    """Wrong decisions about test samples."""

    table: Table
    pictures: list[Drawing]
    """A figure of the samples; none if they are neither images nor series."""


def worst_samples(predicted: EpochPredictions) -> WorstSamples | None:
    """Return the (at most 12) worst wrong decisions, by confidence times cost; None if no wrong decision has a cost."""
    labels = predicted.labels
    concern = predicted.concern
    confidence, decisions = highest_class(predicted.probs)
    weights = concern.mpcs_weights()[labels, decisions]
    cost = confidence * weights * (decisions != labels)
    rows = list[dict[str, str]]()
    pictures = dict[str, Tensor]()
    for place in cost.argsort(descending=True, stable=True)[:12].tolist():
        if not cost[place] > 0:
            break
        label, decision = int(labels[place]), int(decisions[place])
        true = printable(concern.classes[label])
        decided = printable(concern.classes[decision])
        rows.append(
            {
                "test sample": str(place),
                "true": true,
                "predicted": decided,
                "confidence": f"{100 * confidence[place].item():.1f} %",
                "kind": error_kind(concern, label, decision),
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
    for name in ("accuracy", "mpcs", "cross_entropy"):
        if name in picks and name != by:
            return name, picks[name]
    return None


def verdict_of_run(run: TrainedRun, predicted: Mapping[int, EpochPredictions]) -> str:
    """Return a sentence on test errors of the picked epoch, and of the epoch that another metric would have picked."""
    epoch = run.result.epoch
    other = other_pick(run)
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
    """Return the number of errors as text; without released errors, all are dangerous, and not called so."""
    kind = "dangerous test error" if bool(run.concern.released().any()) else "test error"
    plural = "" if count == 1 else "s"
    return f"{count} {kind}{plural}"


def _dangerous(
    run: TrainedRun, epoch: int, predicted: EpochPredictions | None
) -> int | None:
    """Return the number of dangerous test errors of ``epoch``, by ``predicted`` or the records; None if unknown."""
    if predicted is not None:
        _, dangerous = predicted.errors
        return dangerous
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
    metrics = ["misclassification_rate"]
    counts = [of_run.errors for of_run in predicted.values()]
    if any(dangerous != every for every, dangerous in counts):
        metrics.insert(0, "dangerous_rate")
    preds = {name: of_run.probs for name, of_run in predicted.items()}
    result = evaluate(preds, first.labels, concern=first.concern, metrics=metrics)
    return result.comparisons


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
    selector = run.config.selector
    last = int(run.records[-1]["epoch"])
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
    commands = list[str]()
    for run in runs:
        config = quote(str(run.folder / "config.yaml"))
        commands.append(printable(f"mpcs train {config} --data-root {root} --out again"))
    render(
        "run",
        path,
        runs=by_name,
        commands=commands,
        configs={name: dump_config(run.config) for name, run in by_name.items()},
        **page,
    )


def _single_run_page(run: TrainedRun) -> dict[str, Any]:
    """Return what the template shows of one run, and of the epoch that another metric would have picked."""
    config = run.config
    epoch = run.result.epoch
    marked = {PICKED: epoch}
    other = other_pick(run)
    if other is not None:
        metric, epoch_of_metric = other
        marked[f"by {metric}"] = epoch_of_metric
    predicted = dict[int, EpochPredictions]()
    for number in dict.fromkeys(marked.values()):
        predictions = predict_epoch(run, number)
        if predictions is not None:
            predicted[number] = predictions
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
        sentences.insert(0, _error_sentence(f"Epoch {epoch} of {config.name}", picked))
        tiles |= outcome_tiles(picked.scores, run.concern)
        titled = {
            f"epoch\N{NO-BREAK SPACE}{number}": predictions
            for number, predictions in predicted.items()
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
    predicted = dict[str, EpochPredictions]()
    for name, run in runs.items():
        predictions = predict_epoch(run, run.result.epoch)
        if predictions is not None:
            predicted[name] = predictions
    comparisons = compare_runs(predicted) if len(predicted) == len(runs) else None
    verdicts = summarize_comparisons(comparisons or [])
    if not verdicts:
        verdicts = [run_counts(runs, predicted)]
    # The first verdict is on dangerous errors, as the sentences that count errors are; the others come after these.
    sentences = verdicts[:1]
    if len(runs) <= MAX_SENTENCES:
        for name, predictions in predicted.items():
            sentences.append(_error_sentence(name, predictions))
    sentences += verdicts[1:]
    for name, run in runs.items():
        sentences += [f"{name}: {remark}" for remark in last_picked(run)]
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


def _error_sentence(name: str, predicted: EpochPredictions) -> str:
    counts = error_sentence(predicted.scores, predicted.concern, what="test samples")
    return f"{name} {counts}"


def _classifier_sections(
    predicted: Mapping[str, EpochPredictions], system: str
) -> ClassifierSections:
    """Return the parts of a page about ``predicted``, epochs or runs with one concern."""
    scores = {name: predictions.scores for name, predictions in predicted.items()}
    rows = {name: predictions.rows for name, predictions in predicted.items()}
    first, *_ = predicted.values()
    return ClassifierSections(scores, rows, first.concern, system)


def _columns(runs: Mapping[str, TrainedRun]) -> list[str]:
    """Return the names of the first eight metrics in the records of runs."""
    columns = dict[str, None]()  # in order, and each once
    for run in runs.values():
        columns |= dict.fromkeys(run.records[0])
    columns.pop("epoch", None)
    return list(columns)[:8]


def _picks_table(run: TrainedRun) -> Table:
    by_epoch: dict[int, list[str]] = {run.result.epoch: [PICKED]}
    for metric, epoch in run.picks().items():
        by_epoch.setdefault(epoch, []).append(metric)
    records = {int(record["epoch"]): record for record in run.records}
    columns = _columns({"": run})
    rows = list[dict[str, str]]()
    for epoch, metrics in by_epoch.items():
        row = {"ranked first by": ", ".join(metrics), "epoch": str(epoch)}
        rows.append(row | _cells(records[epoch], columns))
    return Table.from_records(rows)


def _runs_table(
    runs: Mapping[str, TrainedRun], predicted: Mapping[str, EpochPredictions]
) -> Table:
    # The table always has a column of dangerous errors.
    columns = [column for column in _columns(runs) if column != DANGEROUS]
    rows = list[dict[str, str]]()
    for name, run in runs.items():
        test = run.result.values["test"]
        errors = dangerous = ""
        if name in predicted:
            errors, dangerous = map(str, predicted[name].errors)
        elif DANGEROUS in test:
            dangerous = f"{test[DANGEROUS]:g}"
        row = {
            "run": name,
            "picked epoch": str(run.result.epoch),
            "test samples": str(len(run.test.labels)),
            "errors": errors,
            "dangerous errors": dangerous,
        }
        rows.append(row | _cells(test, columns))
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
    records = {
        f"{name}: {run.config.model}, {run.config.data}": run.records
        for name, run in runs.items()
    }
    figure = figure_4(records)
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
