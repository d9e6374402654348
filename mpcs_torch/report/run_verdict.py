"""The sentences at the top of the report of training runs."""

from collections.abc import Mapping, Sequence

import torch

from mpcs_torch.evaluation import evaluate
from mpcs_torch.functional import Comparison
from mpcs_torch.report.judged import Judged
from mpcs_torch.trainer.metrics_config import TEST
from mpcs_torch.trainer.trained import TrainedRun

DANGEROUS = "dangerous"
"""The metric that counts dangerous errors."""


def other_pick(run: TrainedRun) -> tuple[str, int] | None:
    """Return the metric that the picked epoch is compared with, and the epoch that it picks: accuracy where it can."""
    picks = run.picks()
    by = None if run.config.selector is None else run.config.selector.by
    for metric in ("accuracy", "mpcs", "cross_entropy"):
        if metric in picks and metric != by:
            return metric, picks[metric]
    return None


def verdict_of_run(run: TrainedRun, judged: Mapping[int, Judged]) -> str:
    """Say what the picked epoch does on test data, and what another metric would have picked.

    Args:
        run: The run.
        judged: The predictions of the epochs whose checkpoints were kept.
    """
    epoch, other = run.result.epoch, other_pick(run)
    if run.result.diverged:
        return f"The run has diverged: epoch {epoch} gives NaN or infinite logits."
    own = _dangerous(run, judged, epoch)
    told = f"Epoch {epoch} is picked" if own is None else f"Epoch {epoch} makes {_errors(run, own)}"
    if other is None:
        return f"{told}."
    metric, number = other
    if number == epoch:
        return f"{told}; {metric} would have picked the same epoch."
    told += f"; {metric} would have picked epoch {number}"
    theirs = _dangerous(run, judged, number)
    if own is not None and theirs is not None:
        return f"{told}, which {'also ' if own == theirs else ''}makes {theirs}."
    return f"{told}."


def _errors(run: TrainedRun, count: int) -> str:
    kind = "dangerous test error" if bool(run.concern.released().any()) else "test error"
    return f"{count} {kind}{'' if count == 1 else 's'}"


def _dangerous(run: TrainedRun, judged: Mapping[int, Judged], epoch: int) -> int | None:
    """Return the dangerous test errors of an epoch: predicted again, recorded at each epoch, or from the result."""
    if epoch in judged:
        return judged[epoch].errors[1]
    column = f"{TEST}{DANGEROUS}"
    recorded = next((record[column] for record in run.records if record["epoch"] == epoch and column in record), None)
    if recorded is None and epoch == run.result.epoch:
        recorded = run.result.values["test"].get(DANGEROUS)
    return None if recorded is None else int(recorded)


def unkept(run: TrainedRun, judged: Mapping[int, Judged]) -> list[str]:
    """Compare both epochs of the verdict on the data that epochs are measured on, if one lacks its checkpoint."""
    epoch, other = run.result.epoch, other_pick(run)
    if other is None or other[1] == epoch or _dangerous(run, judged, other[1]) is not None:
        return []
    told = f"The checkpoint of epoch {other[1]} was not kept"
    if DANGEROUS not in run.records[0]:
        return [f"{told}."]
    by_number = {int(record["epoch"]): int(record[DANGEROUS]) for record in run.records}
    samples = "training" if run.config.epochs.samples == "train" else "validation"
    counts = f"{by_number[other[1]]} dangerous errors, and epoch {epoch} makes {by_number[epoch]}"
    return [f"{told}: on {samples} data it makes {counts}. With selector.keep_every: 1, a run keeps all checkpoints."]


def is_same_test(runs: Mapping[str, Judged]) -> bool:
    """Return whether all runs were judged on the same test samples."""
    first, *others = runs.values()
    return all(
        first.labels.equal(other.labels) and first.test.inputs.cpu().equal(other.test.inputs.cpu()) for other in others
    )


def compare_runs(runs: Mapping[str, Judged]) -> Sequence[Comparison]:
    """Compare the picked epochs of runs on the same test samples, by dangerous errors and by all."""
    first = next(iter(runs.values()))
    names = ["misclassification_rate"]
    if any(not torch.equal(each.is_dangerous, each.decisions != each.labels) for each in runs.values()):
        names.insert(0, "dangerous_rate")
    preds = {name: each.probs for name, each in runs.items()}
    return evaluate(preds, first.labels, concern=first.concern, metrics=names).comparisons


def counts_of(runs: Mapping[str, TrainedRun], judged: Mapping[str, Judged]) -> str:
    """Say how many dangerous errors each run makes, for runs that cannot be compared sample by sample."""
    told = [
        f"{name} (epoch {run.result.epoch}): {_errors(run, judged[name].errors[1])}" if name in judged else name
        for name, run in runs.items()
    ]
    return "; ".join(told) + "."
