"""Train by the recommended recipe: models with each of its losses, of which validation samples choose one."""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from torch import Tensor

from mpcs_torch.io.atomic_files import replace_text
from mpcs_torch.io.local_paths import local_path
from mpcs_torch.io.untrusted_files import read_text
from mpcs_torch.learning import Limit, Recommendation, recommended
from mpcs_torch.learning.recommended import FULL_MARGIN, MARGIN, PLAIN
from mpcs_torch.trainer.config.load import dump_config
from mpcs_torch.trainer.config.sections import RunConfig
from mpcs_torch.trainer.data import DataSplits
from mpcs_torch.trainer.folder import finish_in_folder
from mpcs_torch.trainer.loop import Hook
from mpcs_torch.trainer.result import CONFIG, open_trained
from mpcs_torch.trainer.resume import check_resumable

HooksOf = Callable[[RunConfig], AbstractContextManager[Sequence[Hook]]]
"""A function of a config that returns a context with the hooks of the run, such as a progress bar."""
CHOICE, RULE = "recommended.json", "rule.pt"
"""The names of the files of the chosen model (JSON), and of its fitted decision rule."""


def recipe_runs(config: RunConfig) -> dict[str, list[RunConfig]]:
    """Return the configs of the runs of each loss of the recommended recipe, which differ in the name and the seed."""
    assert config.recommended is not None
    smoothing, members = config.recommended.label_smoothing, range(config.recommended.members)
    plain = {**config.model_dump(), "recommended": None}
    if config.selector is None:
        plain["selector"] = {"by": next(iter(config.directions)), "keep_last": True}
    runs = dict[str, list[RunConfig]]()
    for name, margin, ramp in ((PLAIN, 0.0, None), (MARGIN, FULL_MARGIN, [0.1, 0.6])):
        plain["loss"] = {"name": "recommended", "margin": margin, "label_smoothing": smoothing}
        plain["training"]["margin_ramp"] = ramp
        changes = [{"name": f"{name}-{member + 1}", "seed": config.seed + member} for member in members]
        runs[name] = [RunConfig.model_validate({**plain, **of_member}) for of_member in changes]
    return runs


def train_recommended(config: RunConfig, data: DataSplits, folder: str | Path, make_hooks: HooksOf) -> Recommendation:
    """Train the unfinished runs of the recipe in ``folder``, choose a model by validation, and save the choice."""
    assert config.recommended is not None
    folder = local_path(folder, "folder")
    settings = config.recommended
    concern = config.score.concern.spec(data.class_names)
    refer = [Limit.parse(limit) for limit in settings.refer]
    recipe = recommended(concern, settings.members, max_accuracy_loss=settings.max_accuracy_loss, refer=refer)
    if (folder / CONFIG).exists():
        check_resumable(read_text(folder / CONFIG), config)
    folder.mkdir(parents=True, exist_ok=True)
    replace_text(folder / CONFIG, dump_config(config))
    logits = dict[str, list[Tensor]]()
    for name, runs in recipe_runs(config).items():
        logits[name] = []
        for run in runs:
            with make_hooks(run) as hooks:
                finish_in_folder(run, data, folder / run.name, hooks)
            trained = open_trained(folder / run.name, data)
            epoch = trained.result.epoch if config.selector is not None else int(trained.records[-1]["epoch"])
            validation = trained.run.data.validation
            assert validation is not None  # epochs are measured on it
            outputs = trained.logits(validation, epoch)
            assert outputs is not None  # the selector keeps this checkpoint
            logits[name].append(outputs)
    choice = recipe.choose(logits, validation.labels.cpu())
    write_choice(choice, folder)
    return choice


def write_choice(choice: Recommendation, folder: Path) -> None:
    """Write ``choice`` (as JSON) and its fitted decision rule to two files in ``folder``."""
    choice.rule.save(folder / RULE, overwrite=True)
    plain = {
        "loss": choice.name,
        "factor": choice.factor,
        "rule": RULE,
        "steps": [step._asdict() for step in choice.steps],
        "effects": [effect._asdict() for effect in choice.effects],
    }
    replace_text(folder / CHOICE, json.dumps(plain, indent=2) + "\n")
