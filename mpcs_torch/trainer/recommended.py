"""Train the models of the recommended recipe, one run for each loss, and choose one."""

import json
from pathlib import Path

import torch
from torch import Tensor

from mpcs_torch.io.atomic_files import replace_text
from mpcs_torch.learning import Limit, Recommendation, recommended
from mpcs_torch.learning.recommended import LOSSES
from mpcs_torch.trainer.config.load_with_suggestions import dump_config
from mpcs_torch.trainer.config.sections import RunConfig
from mpcs_torch.trainer.data import DataSplits
from mpcs_torch.trainer.folder import CONFIG, HooksOf, finish_in_folder
from mpcs_torch.trainer.result import open_trained
from mpcs_torch.trainer.resume import check_resumable

CHOICE, RULE = "recommended.json", "rule.pt"
"""The names of two files: the choice as JSON, and the fitted decision rule."""


def runs_of(config: RunConfig) -> dict[str, RunConfig]:
    """Return the config of each run of the recipe, by the name of its loss."""
    runs = {}
    for name, (margin, smoothing) in LOSSES.items():
        loss = {"name": "recommended", "margin": margin, "label_smoothing": smoothing}
        training = {**config.training.model_dump(), "margin_ramp": [0.1, 0.6] if margin else None}
        changes = {"name": name.replace(", ", "-").replace(" ", "-"), "loss": loss, "training": training}
        if config.selector is None:
            changes["selector"] = {"by": next(iter(config.directions)), "keep_last": True}
        runs[name] = RunConfig.model_validate({**config.model_dump(), "recommended": None, **changes})
    return runs


def train_recommended(config: RunConfig, data: DataSplits, folder: Path, hooks_of: HooksOf) -> Recommendation:
    """Finish all runs of the recipe in ``folder``, choose a model on validation samples, and write it with its rule."""
    assert config.recommended is not None
    settings = config.recommended
    concern = config.score.concern.spec(data.class_names)
    refer = [Limit.parse(limit) for limit in settings.refer]
    recipe = recommended(concern, max_accuracy_loss=settings.max_accuracy_loss, refer=refer)
    path = folder / CONFIG
    if path.exists():
        check_resumable(path.read_text(encoding="utf-8"), config)
    folder.mkdir(parents=True, exist_ok=True)
    replace_text(path, dump_config(config))
    logits: dict[str, Tensor] = {}
    target = torch.empty(0, dtype=torch.int64)
    for name, run in runs_of(config).items():
        finish_in_folder(run, data, folder / run.name, hooks_of)
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
    """Write the choice and its decision rule to ``folder``."""
    choice.rule.save(folder / RULE, overwrite=True)
    plain = {"loss": choice.name, "factor": choice.factor, "summary": choice.summary, "rule": RULE}
    text = json.dumps({**plain, "options": choice.options.records()}, indent=2)
    replace_text(folder / CHOICE, text + "\n")
