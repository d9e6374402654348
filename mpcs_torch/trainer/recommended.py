"""Train the models of the recommended recipe, choose one, and compare it with a plain run (``mpcs demo``)."""

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional import RiskCoverage, confusion_matrix, jackknife_interval, risk_coverage_curve
from mpcs_torch.functional.concern.dangerous import DangerousErrors
from mpcs_torch.functional.inputs.decisions import highest_class
from mpcs_torch.io.atomic_files import replace_text
from mpcs_torch.io.local_paths import local_path
from mpcs_torch.io.untrusted_files import read_text
from mpcs_torch.learning import DecisionRule, Limit, Recommendation, recommended
from mpcs_torch.learning.recommended import LOSSES, PLAIN
from mpcs_torch.processes import run_in_processes
from mpcs_torch.tables import Table
from mpcs_torch.trainer.config.load_with_suggestions import dump_config, load_packaged_config
from mpcs_torch.trainer.config.sections import RunConfig
from mpcs_torch.trainer.config.trusted_code import remember_started
from mpcs_torch.trainer.data import DataSplits
from mpcs_torch.trainer.folder import CONFIG, HooksOf, finish_in_folder
from mpcs_torch.trainer.prepare import prepare_run
from mpcs_torch.trainer.result import evaluator_on, open_trained
from mpcs_torch.trainer.resume import check_resumable

CHOICE, RULE = "recommended.json", "rule.pt"
"""The names of the files of the chosen model (JSON), and of its fitted decision rule."""


def recipe_runs(config: RunConfig) -> dict[str, RunConfig]:
    """Return the config of each run of the recommended recipe. Each run has another loss, whose name is the key."""
    runs = {}
    for name, (margin, smoothing) in LOSSES.items():
        loss = {"name": "recommended", "margin": margin, "label_smoothing": smoothing}
        training = {**config.training.model_dump(), "margin_ramp": [0.1, 0.6] if margin else None}
        changes = {"name": name.replace(", ", "-").replace(" ", "-"), "loss": loss, "training": training}
        if config.selector is None:
            changes["selector"] = {"by": next(iter(config.directions)), "keep_last": True}
        runs[name] = RunConfig.model_validate({**config.model_dump(), "recommended": None, **changes})
    return runs


def train_recommended(config: RunConfig, data: DataSplits, folder: str | Path, make_hooks: HooksOf) -> Recommendation:
    """Train the unfinished runs of the recipe in ``folder``, choose a model by validation, and save the choice."""
    assert config.recommended is not None
    folder = local_path(folder, "folder")
    settings = config.recommended
    concern = config.score.concern.spec(data.class_names)
    refer = [Limit.parse(limit) for limit in settings.refer]
    recipe = recommended(concern, max_accuracy_loss=settings.max_accuracy_loss, refer=refer)
    path = folder / CONFIG
    if path.exists():
        check_resumable(read_text(path), config)
    folder.mkdir(parents=True, exist_ok=True)
    replace_text(path, dump_config(config))
    remember_started(path)
    logits: dict[str, Tensor] = {}
    target = torch.empty(0, dtype=torch.int64)
    for name, run in recipe_runs(config).items():
        finish_in_folder(run, data, folder / run.name, make_hooks)
        trained = open_trained(folder / run.name, data)
        validation = trained.prepared.data.validation
        epoch = trained.result.epoch if config.selector is not None else trained.records[-1]["epoch"]
        assert validation is not None  # validated with the config
        outputs = trained.logits(validation, int(epoch))
        assert outputs is not None
        logits[name], target = outputs, validation.labels.cpu()
    choice = recipe.choose(logits, target)
    write_choice(choice, folder)
    return choice


def write_choice(choice: Recommendation, folder: Path) -> None:
    """Write the summary of ``choice`` (as JSON) and its fitted decision rule to two files in ``folder``."""
    choice.rule.save(folder / RULE, overwrite=True)
    plain = {"loss": choice.name, "factor": choice.factor, "summary": choice.summary, "rule": RULE}
    text = json.dumps({**plain, "options": choice.options.records()}, indent=2)
    replace_text(folder / CHOICE, text + "\n")


SEEDS = range(20)
LIMIT = Limit(0.01, confidence=0.9)
"""The limit on dangerous errors if samples may be referred to a person."""
MAX_ACCURACY_LOSS = 0.0005
"""The maximum loss of validation accuracy, compared with the plain run, of the chosen model."""
RECOMMENDED, WITH_REFERRAL = "recommended", ", with referral"


class Tally(NamedTuple):
    """Counts for one seed: dangerous errors, all errors, decided (not referred) samples, and all test samples."""

    dangerous: int
    errors: int
    decided: int
    samples: int


class SeedResult(NamedTuple):
    """The test results of one seed."""

    target: Tensor
    """The true classes, int64 (N,)."""
    decisions: dict[str, Tensor]
    """The decisions, int64 (N,), by the name of the model and rule; -1 is a referral."""
    risks: dict[str, tuple[Tensor, Tensor]]
    """The decisions without referral, (N,), and their estimated risks, (N,), by the name of the model."""


class Effect(NamedTuple):
    """A difference or relative change of counts (means over seeds), with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Demonstration:
    """The test results of the plain and of the recommended run, with and without referral, for each seed."""

    concern: ConcernSpec
    seeds: list[SeedResult] = field(default_factory=list)

    def tallies(self, name: str) -> list[Tally]:
        """Return the counts of test samples for each seed; ``name`` is a key of `SeedResult.decisions`."""
        measure = DangerousErrors(len(self.concern.classes), concern=self.concern.dangerous_pairs())
        rows = [measure.rows(seed.decisions[name], seed.target) for seed in self.seeds]
        return [Tally(*map(int, measure.named(measure.sums(each)))) for each in rows]

    def mean(self, name: str, count: str, per: str | None = None) -> float:
        """Return the mean over seeds of the `Tally` field ``count``, or with ``per``, of ``count`` / ``per``."""
        ratios = [getattr(t, count) / (1 if per is None else getattr(t, per)) for t in self.tallies(name)]
        return fmean(ratios)

    def effect(self, compare: Callable[[Tensor, Tensor], Tensor], count: str) -> Effect:
        """Call ``compare`` on the mean ``count`` of the recommended and the plain run; add a jackknife interval."""
        counts = [[getattr(tally, count) for tally in self.tallies(name)] for name in (RECOMMENDED, PLAIN)]
        by_seed = torch.tensor(counts, dtype=torch.float64)
        _, low, high = jackknife_interval(
            lambda kept: compare(*by_seed[:, kept].mean(dim=1)), torch.arange(len(self.seeds))
        )
        return Effect(*(float(value) for value in (compare(*by_seed.mean(dim=1)), low, high)))

    def confusion(self, name: str) -> Tensor:
        """Return the confusion matrix of the run ``name``, summed over seeds, int64 (C, C); rows are true classes."""
        target = torch.cat([seed.target for seed in self.seeds])
        decisions = torch.cat([seed.decisions[name] for seed in self.seeds])
        return confusion_matrix(decisions, target, num_classes=len(self.concern.classes)).long()

    def curve(self, name: str) -> RiskCoverage:
        """Return the risk-coverage curve of dangerous errors for the run ``name`` and the samples of all seeds."""
        decisions, risks = (torch.cat(parts) for parts in zip(*(seed.risks[name] for seed in self.seeds), strict=True))
        target = torch.cat([seed.target for seed in self.seeds])
        return risk_coverage_curve(risks, self.concern.dangerous_pairs()[target, decisions])

    def table(self) -> Table:
        """Return a table of means over seeds, with a row for each run, without and with referral."""
        header = ["", "decided", "right, of those decided", "errors", "dangerous errors", "dangerous per sample"]
        rows = []
        for name in self.seeds[0].decisions:
            decided, right = self.mean(name, "decided", "samples"), 1 - self.mean(name, "errors", "decided")
            shares = [f"{100 * decided:.1f} %", f"{100 * right:.2f} %"]
            counts = [f"{self.mean(name, count):.1f}" for count in ("errors", "dangerous")]
            rows.append([name, *shares, *counts, f"{100 * self.mean(name, 'dangerous', 'samples'):.2f} %"])
        return Table(header, rows)


def demo_concern() -> ConcernSpec:
    """Return the costs of errors in the demonstration."""
    return load_packaged_config("experiments/demo").score.concern.spec([str(digit) for digit in range(10)])


def train_and_decide(seed: int) -> SeedResult:
    """Train the models of the recipe with ``seed``, choose one on validation samples, and decide test samples."""
    seeded = [f"{key}={seed}" for key in ("seed", "data.split_seed", "data.validation_seed")]
    config, concern = load_packaged_config("experiments/demo", seeded), demo_concern()
    data = config.data.load(Path())
    assert data.validation is not None  # set in the config
    validation, test = dict[str, Tensor](), dict[str, Tensor]()
    for name, run in recipe_runs(config).items():
        prepared = prepare_run(run, data)
        model = prepared.start().measured
        validation[name] = evaluator_on(prepared, data.validation)(model).logits
        test[name] = evaluator_on(prepared, data.test)(model).logits
    target = data.validation.labels
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "E4")  # rare classes without a limit
        make = partial(recommended, concern, max_accuracy_loss=MAX_ACCURACY_LOSS)
        choice, referring = (recipe.choose(validation, target) for recipe in (make(), make(refer=LIMIT)))
        limited = DecisionRule(concern, LIMIT).fit(validation[PLAIN], target)
    decisions = {
        PLAIN: highest_class(test[PLAIN])[1],
        RECOMMENDED: choice.rule(test[choice.name]),
        PLAIN + WITH_REFERRAL: limited(test[PLAIN]),
        RECOMMENDED + WITH_REFERRAL: referring.rule(test[referring.name]),
    }
    assessed = {PLAIN: limited.assess(test[PLAIN]), RECOMMENDED: referring.rule.assess(test[referring.name])}
    return SeedResult(data.test.labels, decisions, {name: (each.best, each.risk) for name, each in assessed.items()})


def demonstrate(advance: Callable[[], None]) -> Demonstration:
    """Return the test results of 20 seeds, trained in parallel; call ``advance`` after each seed."""
    results = {}
    for seed, result in run_in_processes(train_and_decide, SEEDS):
        results[seed] = result
        advance()
    return Demonstration(demo_concern(), [results[seed] for seed in sorted(results)])
