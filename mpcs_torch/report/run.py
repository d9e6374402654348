"""The reports of finished training runs, and of the paper's experiments."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import torch
from torch import Tensor

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
    scores: ClassifierScores
    """The metrics of the predictions, with intervals that assume independent samples."""
    risks: RowRisks
    """The estimated risks of errors of the test samples."""


class RunEpoch(NamedTuple):
    """An epoch of a run, with what is known of its errors on test samples."""

    run: TrainedRun
    number: int
    predicted: EpochPredictions | None = None
    """None if the epoch has no checkpoint, or if its logits are not finite."""

    @property
    def errors(self) -> int | None:
        """The number of test errors; None without predictions."""
        if self.predicted is None:
            return None
        return int(self.predicted.scores.outcomes[EVERY].missed)

    @property
    def dangerous(self) -> int | None:
        """The number of dangerous test errors, by predictions or else by the records; None if unknown."""
        if self.predicted is not None:
            return int(self.predicted.scores.outcomes[EVERY].dangerous)
        result = self.run.result
        count = None
        if self.number == result.epoch:
            count = result.values["test"].get(DANGEROUS)
        # A record of the epoch, the last if it was repeated, comes before the result.
        for record in self.run.records:
            if record["epoch"] == self.number:
                count = record.get(f"{TEST}{DANGEROUS}", count)
        return None if count is None else int(count)

    def errors_in_words(self, unknown: str) -> str:
        """Return the number of dangerous errors as text; just "errors" if the concern releases none."""
        if self.dangerous is None:
            return unknown
        has_released = bool(self.run.concern.released().any())
        kind = "dangerous test error" if has_released else "test error"
        plural = "" if self.dangerous == 1 else "s"
        return f"{self.dangerous} {kind}{plural}"


def predict_epoch(run: TrainedRun, number: int) -> RunEpoch:
    """Predict the test samples with the model of an epoch, if it has a checkpoint with finite logits."""
    logits = run.logits(run.test, number)
    if logits is None or not bool(logits.isfinite().all()):
        return RunEpoch(run, number)
    probs = logits.double().softmax(dim=1)
    labels, concern = run.test.labels.cpu(), run.concern
    metrics = ("misclassification_rate", "dangerous_rate", "measured_geometric_accuracy")
    risks = RowRisks()
    rows = Rows(probs, labels, torch.arange(len(labels)))
    risks.add(rows, choose_metrics(concern.classes, concern))
    scores = evaluate(probs, labels, concern=concern, metrics=metrics).first
    return RunEpoch(run, number, EpochPredictions(probs, scores, risks))


def worst_samples(run: TrainedRun, probs: Tensor) -> tuple[Table | None, list[Drawing]]:
    """Return the (at most 12) worst wrong decisions, by confidence times cost, and a figure of these samples.

    There is no table if no wrong decision has a cost, and no figure of samples that are neither images nor series.
    """
    labels, concern = run.test.labels.cpu(), run.concern
    confidence, decisions = highest_class(probs)
    weights = concern.mpcs_weights()[labels, decisions]
    cost = confidence * weights * (decisions != labels)
    worst = cost.argsort(descending=True, stable=True)[:12]
    rows = list[dict[str, str]]()
    pictures = dict[str, Tensor]()
    for place in worst[cost[worst] > 0].tolist():
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
        sample = run.test.inputs[place].cpu().float()
        pictures[f"{place}: {true}, predicted {decided}"] = sample
    if not rows:
        return None, []
    table = Table.from_records(rows)
    if kind_of_sample(tuple(run.test.inputs.shape[1:])) is None:
        return table, []
    alt = f"The {len(rows)} samples of the table: {'; '.join(pictures)}."
    return table, [draw(samples_figure(pictures), alt)]


def other_pick(run: TrainedRun) -> tuple[str, int] | None:
    """Return the first of accuracy, MPCS and cross entropy that the selector does not rank by, and its best epoch."""
    picks = run.picks()
    by = None if run.config.selector is None else run.config.selector.by
    for name in ("accuracy", "mpcs", "cross_entropy"):
        if name in picks and name != by:
            return name, picks[name]
    return None


def verdict_of_run(
    picked: RunEpoch, metric: str = "", other: RunEpoch | None = None
) -> str:
    """Return a sentence on test errors of the picked epoch, and of ``other``, which ``metric`` would have picked."""
    epoch = picked.number
    if picked.run.result.diverged:
        return f"The run has diverged: epoch {epoch} gives NaN or infinite logits."
    errors = picked.errors_in_words("")
    sentence = f"Epoch {epoch} makes {errors}" if errors else f"Epoch {epoch} is picked"
    if other is None:
        return f"{sentence}."
    sentence += f"; {metric} would have picked "
    if other.number == epoch:
        return f"{sentence}the same epoch."
    sentence += f"epoch {other.number}"
    if errors and other.dangerous is not None:
        also = "also " if picked.dangerous == other.dangerous else ""
        sentence += f", which {also}makes {other.dangerous}"
    return f"{sentence}."


def compare_runs(epochs: Mapping[str, RunEpoch]) -> Sequence[Comparison] | None:
    """Compare the dangerous and the total error rates of runs, by their picked epochs.

    Return None if predictions are missing, or if the runs' test samples or costs differ.
    """
    first = next(iter(epochs.values())).run
    preds = dict[str, Tensor]()
    for name, epoch in epochs.items():
        if epoch.predicted is None or not _have_same_test(first, epoch.run):
            return None
        preds[name] = epoch.predicted.probs
    metrics = ["misclassification_rate"]
    if any(epoch.dangerous != epoch.errors for epoch in epochs.values()):
        metrics.insert(0, "dangerous_rate")
    labels = first.test.labels.cpu()
    return evaluate(preds, labels, concern=first.concern, metrics=metrics).comparisons


def _have_same_test(run: TrainedRun, other: TrainedRun) -> bool:
    """Return whether two runs have the same test samples and costs."""
    if not torch.equal(run.test.labels.cpu(), other.test.labels.cpu()):
        return False
    if not torch.equal(run.test.inputs.cpu(), other.test.inputs.cpu()):
        return False
    return run.concern == other.concern


def run_counts(epochs: Mapping[str, RunEpoch]) -> str:
    """Return a sentence with the number of dangerous test errors of each run, by the name of the run."""
    counts = []
    for name, epoch in epochs.items():
        errors = epoch.errors_in_words("errors not recorded")
        samples = len(epoch.run.test.labels)
        counts.append(f"{name} (epoch {epoch.number}): {errors} of {samples} samples")
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
    remark = f"The last epoch, {last}, was picked: {selector.by} was still getting better."
    return [f"{remark} More epochs may give a better model."]


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
    picked = predict_epoch(run, run.result.epoch)
    marked = {PICKED: picked.number}
    verdict = verdict_of_run(picked)
    epochs = [picked]
    by_other = other_pick(run)
    if by_other is not None:
        metric, number = by_other
        marked[f"by {metric}"] = number
        other = picked
        if number != picked.number:
            other = predict_epoch(run, number)
            epochs.append(other)
        verdict = verdict_of_run(picked, metric, other)
    sentences = [
        verdict,
        *last_picked(run),
        f"Why epoch {picked.number}: {run.result.reason}.",
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
    shown = worst = None
    pictures: list[Drawing] = []
    if picked.predicted is not None:
        name = f"Epoch {picked.number} of {config.name}"
        sentences.insert(0, _error_sentence(name, run, picked.predicted.scores))
        tiles |= outcome_tiles(picked.predicted.scores, run.concern)
        titled = {f"epoch\N{NO-BREAK SPACE}{epoch.number}": epoch for epoch in epochs}
        shown = _classifier_sections(titled, "epoch")
        worst, pictures = worst_samples(run, picked.predicted.probs)
    return {
        "kind": f"Training run {config.name}: {config.data}, {config.model}, seed {config.seed}",
        "conclusions": sentences,
        "tiles": tiles,
        "shown": shown,
        "worst": worst,
        "pictures": pictures,
        "picks": _picks_table(run),
        "comparisons": [],
        "trends": _trends({config.name: run}, {config.name: marked}),
    }


def _several_runs_page(runs: Mapping[str, TrainedRun]) -> dict[str, Any]:
    """Return what the template shows of several runs."""
    epochs = {name: predict_epoch(run, run.result.epoch) for name, run in runs.items()}
    comparisons = compare_runs(epochs)
    verdicts = summarize_comparisons(comparisons or []) or [run_counts(epochs)]
    # The first verdict is on dangerous errors, as the sentences that count errors are; the others come after these.
    sentences = verdicts[:1]
    if len(runs) <= MAX_SENTENCES:
        for name, epoch in epochs.items():
            if epoch.predicted is not None:
                scores = epoch.predicted.scores
                sentences.append(_error_sentence(name, epoch.run, scores))
    sentences += verdicts[1:]
    for name, run in runs.items():
        sentences += [f"{name}: {remark}" for remark in last_picked(run)]
    if comparisons is None:
        sentences.append(NOT_COMPARABLE)
    return {
        "kind": f"Training runs {', '.join(runs)}",
        "conclusions": sentences,
        "tiles": {},
        "shown": None if comparisons is None else _classifier_sections(epochs, "run"),
        "worst": None,
        "pictures": [],
        "picks": _runs_table(epochs),
        "comparisons": comparisons,
        "trends": _trends(
            runs, {name: {PICKED: epoch.number} for name, epoch in epochs.items()}
        ),
    }


def _error_sentence(name: str, run: TrainedRun, scores: ClassifierScores) -> str:
    return f"{name} {error_sentence(scores, run.concern, row='test sample')}"


def _classifier_sections(epochs: Mapping[str, RunEpoch], system: str) -> ClassifierSections:
    """Return the parts of a page about ``epochs``, of one or more runs with one concern, that have predictions."""
    scores = dict[str, ClassifierScores]()
    risks = dict[str, RowRisks]()
    for name, epoch in epochs.items():
        if epoch.predicted is not None:
            scores[name] = epoch.predicted.scores
            risks[name] = epoch.predicted.risks
    first, *_ = epochs.values()
    return ClassifierSections(scores, risks, first.run.concern, system)


def _columns(runs: Iterable[TrainedRun]) -> list[str]:
    """Return the names of the first eight metrics in the records of runs."""
    columns = dict[str, None]()  # in order, and each once
    for run in runs:
        columns |= dict.fromkeys(run.records[0])
    columns.pop("epoch", None)
    return list(columns)[:8]


def _picks_table(run: TrainedRun) -> Table:
    by_epoch: dict[int, list[str]] = {run.result.epoch: [PICKED]}
    for metric, epoch in run.picks().items():
        by_epoch.setdefault(epoch, []).append(metric)
    records = {int(record["epoch"]): record for record in run.records}
    columns = _columns([run])
    rows = list[dict[str, str]]()
    for epoch, metrics in by_epoch.items():
        row = {"ranked first by": ", ".join(metrics), "epoch": str(epoch)}
        rows.append(row | _cells(records[epoch], columns))
    return Table.from_records(rows)


def _runs_table(epochs: Mapping[str, RunEpoch]) -> Table:
    # The table always has a column of dangerous errors.
    columns = [
        column
        for column in _columns(epoch.run for epoch in epochs.values())
        if column != DANGEROUS
    ]
    rows = list[dict[str, str]]()
    for name, epoch in epochs.items():
        row = {
            "run": name,
            "picked epoch": str(epoch.number),
            "test samples": str(len(epoch.run.test.labels)),
            "errors": "" if epoch.errors is None else str(epoch.errors),
            "dangerous errors": "" if epoch.dangerous is None else str(epoch.dangerous),
        }
        rows.append(row | _cells(epoch.run.result.values["test"], columns))
    return Table.from_records(rows)


def _cells(values: Mapping[str, float], columns: Sequence[str]) -> dict[str, str]:
    """Return the values of ``columns`` as texts: whole numbers without decimals, others with 4 significant digits."""
    cells = dict.fromkeys(columns, "")
    for name in columns:
        if name in values:
            value = values[name]
            cells[name] = f"{value:.0f}" if value.is_integer() else f"{value:#.4g}"
    return cells


def _trends(
    runs: Mapping[str, TrainedRun], marked: Mapping[str, Mapping[str, int]]
) -> list[Drawing]:
    records = {name: run.records for name, run in runs.items()}
    return trends(records, _columns(runs.values()), marked)


FILES = ("runs.md", "table2.md", "table3.md", "figure4.png", "figure4.svg", "report.html")


def write_evaluation(
    folder: Path,
    finished: Mapping[str, FinishedRun],
    seeds: Mapping[str, Sequence[MeanOverRuns]],
) -> None:
    """Write tables, a figure and a page about the paper's experiments to ``folder``; `FILES` has the file names."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = list(evaluation_tables(finished, seeds))
    for one in tables:
        save_table(one.table, folder / f"{one.name}.md")
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
        tables=[(one.title, one.table) for one in tables],
        figure=draw(
            figure,
            f"Metrics over the epochs, from 0 at the lowest to 1 at the highest, in a panel for each of {len(runs)} "
            "experiments. Accuracy, F1 and MCC rise as the others fall.",
        ),
    )
