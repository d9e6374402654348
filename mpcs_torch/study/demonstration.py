"""The comparison of ``mpcs demo``: a plain run beside the recommended recipe, with and without referral."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.calibration import CalibrationWarning
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional import RiskCoverage, confusion_matrix, dangerous_errors_details, risk_coverage_curve
from mpcs_torch.learning import DecisionRule, Limit
from mpcs_torch.study.plans import METHODS, RECIPE
from mpcs_torch.study.results import Effect, paired_effect
from mpcs_torch.tables import Table
from mpcs_torch.trainer.config.run import load_packaged_config
from mpcs_torch.trainer.data import Split
from mpcs_torch.trainer.folder import check_free, run_in_folder
from mpcs_torch.trainer.resume import open_selector

CONFIG, DATA_ROOT = "experiments/demo", Path("data")
SEEDS = range(10)
MAX_DANGEROUS, CONFIDENCE = 0.01, 0.9
"""The limit that referral is held to, and the probability with which it holds."""
PICKING_SHARE = 0.25
"""The share of validation samples that pick the checkpoint. The others fit the rules: a guarantee needs samples by
which nothing else was chosen."""
PLAIN, RECOMMENDED = "plain", "recommended"
RUNS: dict[str, tuple[str, ...]] = {
    PLAIN: (),
    RECOMMENDED: (*METHODS[RECIPE], "selector={by: mpcs, within: {accuracy: 0.005}}"),
}
"""Overrides of the demo's config."""
WITH_REFERRAL = ", with referral"


class Tally(NamedTuple):
    """Numbers of test samples under one seed."""

    dangerous: int
    errors: int
    decided: int
    samples: int


@dataclass(frozen=True)
class Demonstration:
    """The test results of both runs, with and without referral, over seeds."""

    concern: ConcernSpec
    tallies: dict[str, list[Tally]] = field(default_factory=dict)
    """By way of learning and deciding; a tally for each seed."""
    confusions: dict[str, Tensor] = field(default_factory=dict)
    """By run, without referral: int64 (C, C), summed over seeds; rows true classes."""
    risks: dict[str, list[tuple[Tensor, Tensor]]] = field(default_factory=dict)
    """By run: the estimated risk of each test decision, and whether it is a dangerous error; a pair for each seed."""

    def add(self, name: str, decisions: Tensor, target: Tensor) -> None:
        """Count the decisions (N,) of one seed."""
        classes, dangerous = len(self.concern.classes), self.concern.dangerous_pairs()
        counts = dangerous_errors_details(decisions, target, num_classes=classes, concern=dangerous)
        self.tallies.setdefault(name, []).append(Tally(*(int(count) for count in counts)))

    def mean(self, name: str, count: str, per: str | None = None) -> float:
        """Return the mean of a count over seeds, or the mean of its ratio to another count."""
        tallies = self.tallies[name]
        return float(np.mean([getattr(t, count) / (1 if per is None else getattr(t, per)) for t in tallies]))

    def effect(self, count: str, *, relative: bool) -> Effect:
        """Compare the recommended with the plain run, without referral, seed by seed."""
        ours, theirs = (
            np.array([getattr(tally, count) for tally in self.tallies[name]], dtype=np.float64)
            for name in (RECOMMENDED, PLAIN)
        )
        return paired_effect(ours, theirs, relative=relative)

    def curve(self, name: str) -> RiskCoverage:
        """Return dangerous errors per decided sample against coverage, over the samples of all seeds."""
        risks, losses = zip(*self.risks[name], strict=True)
        return risk_coverage_curve(torch.cat(risks), torch.cat(losses))

    def table(self) -> Table:
        """Return a row for each way of learning and deciding, with means over seeds."""
        header = ["", "decided", "right, of those decided", "errors", "dangerous errors", "dangerous per sample"]
        rows = []
        for name in self.tallies:
            decided, right = self.mean(name, "decided", "samples"), 1 - self.mean(name, "errors", "decided")
            shares = [f"{100 * decided:.1f} %", f"{100 * right:.2f} %"]
            counts = [f"{self.mean(name, count):.1f}" for count in ("errors", "dangerous")]
            rows.append([name, *shares, *counts, f"{100 * self.mean(name, 'dangerous', 'samples'):.2f} %"])
        return Table(header, rows)


def demonstrate(folder: Path, advance: Callable[[], None], *, overwrite: bool) -> Demonstration:
    """Train both runs under each seed, and decide for the test samples by rules fitted on validation samples."""
    check_free([folder / _name(run, seed) for run in RUNS for seed in SEEDS], overwrite=overwrite)
    config = load_packaged_config(CONFIG)
    demonstration = Demonstration(config.score.concern.spec(config.data.load(DATA_ROOT).class_names))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for so small a model, waiting for other threads takes most of the time
    try:
        for seed in SEEDS:
            for name in RUNS:
                _decide(demonstration, name, *_trained(name, seed, folder, overwrite=overwrite))
                advance()
    finally:
        torch.set_num_threads(threads)
    return demonstration


def _decide(demonstration: Demonstration, name: str, validation: Split, test: Split) -> None:
    """Decide for test logits without and with referral, by rules fitted on validation logits."""
    concern = demonstration.concern
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "E4")  # ten digits that are alike
        warnings.simplefilter("ignore", CalibrationWarning)  # no error on validation data: the temperature is 1
        rule = DecisionRule(concern).fit(validation.inputs, validation.labels)
        limited = DecisionRule(concern, Limit(MAX_DANGEROUS, confidence=CONFIDENCE))
        limited.fit(validation.inputs, validation.labels)
    decisions = test.inputs.argmax(dim=1) if name == PLAIN else rule(test.inputs)
    counts = confusion_matrix(decisions, test.labels, num_classes=len(concern.classes))
    demonstration.confusions[name] = demonstration.confusions.get(name, torch.zeros_like(counts)) + counts
    assessed = limited.assess(test.inputs)
    is_error = limited.dangerous[test.labels, assessed.decision]
    demonstration.risks.setdefault(name, []).append((assessed.risk, is_error))
    demonstration.add(name, decisions, test.labels)
    demonstration.add(name + WITH_REFERRAL, limited(test.inputs), test.labels)


@torch.no_grad()
def _trained(name: str, seed: int, folder: Path, *, overwrite: bool) -> tuple[Split, Split]:
    """Train, and return the logits of the picked checkpoint on the samples that fit rules and on test samples."""
    seeds = [f"seed={seed}", f"data.split_seed={seed}", f"data.validation_seed={seed}"]
    config = load_packaged_config(CONFIG, [f"name={_name(name, seed)}", *seeds, *RUNS[name]])
    data = config.data.load(DATA_ROOT)
    assert data.validation is not None
    order = torch.randperm(len(data.validation.labels), generator=torch.Generator().manual_seed(seed))
    picking, fitting = order.tensor_split([round(PICKING_SHARE * len(order))])
    with torch.enable_grad():
        picked = replace(data, validation=data.validation.at(picking))
        run, _ = run_in_folder(config, picked, folder / config.name, overwrite=overwrite, flush=False)
    selector = open_selector(config, folder / config.name)
    model = run.state.measured
    if selector is not None and selector.best is not None:
        model.load_state_dict(selector.load(selector.best.number)["model"])
    model.eval()
    validation, test = (Split(model(split.inputs), split.labels) for split in (data.validation.at(fitting), data.test))
    return validation, test


def _name(run: str, seed: int) -> str:
    return f"{run}-seed{seed:02}"
