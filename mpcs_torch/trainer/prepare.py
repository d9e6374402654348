"""Prepare a training run from its config: seed, batches, model, optimizer and metrics."""

import itertools
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_avg_fn

from mpcs_torch.errors import MpcsError, shown
from mpcs_torch.functional.concern.mpcs import pattern_settings
from mpcs_torch.learning import MarginRamp, SoftmaxMarginLoss
from mpcs_torch.metrics.register import MetricEntry
from mpcs_torch.processes import ALONE, World, is_of_backend
from mpcs_torch.trainer.config.sections import ConfigError, RunConfig
from mpcs_torch.trainer.data import DataSplits, Split
from mpcs_torch.trainer.loop import Evaluator, LoopState, PreparedRun, ShuffledBatches
from mpcs_torch.trainer.loss_scale import ConcernLossScale


def prepare_run(config: RunConfig, data: DataSplits, world: World = ALONE) -> PreparedRun:
    """Seed PyTorch's random generator, make batches, model, optimizer and metrics, and return the run.

    Raises:
        ConfigError: If the config does not match the data, a split is missing, or the accelerator is unavailable.
    """
    config = resolved_config(config, data)
    concern = config.score.concern.spec(data.class_names)
    device = _device(config)
    training, epochs = config.training, config.epochs
    batch_size = len(data.train.labels) if training.batch_size == "all" else training.batch_size

    # To reproduce published runs, keep the order of all uses of the random generator below.
    torch.manual_seed(config.seed)
    dtype = torch.float64 if config.device.precision == "64-true" else torch.float32
    on_device = data.to(device, dtype)
    batches = ShuffledBatches(on_device.train, batch_size, world)
    with _config_errors(f"{config.name}: model does not fit {config.data}"):
        model = config.model.build(data).to(device, dtype)
    world.copy_from_first([*model.parameters(), *model.buffers()])
    average = None
    if training.averaging is not None:
        average = AveragedModel(model, avg_fn=get_ema_avg_fn(training.averaging), use_buffers=True)  # type: ignore[no-untyped-call]
    with _config_errors(f"{config.name}: PyTorch cannot train this model in {world.size} processes"):
        engine = world.engine(model)
    with _config_errors(f"{config.name}: training.optimizer"):
        optimizer = training.optimizer.make(model.parameters(), training.learning_rate)
    measured = on_device.train
    if epochs.batches is not None:  # uses the random generator, so do it even if validation samples are measured
        inputs, labels = zip(*itertools.islice(batches, epochs.batches), strict=True)
        measured = Split(torch.cat(inputs), torch.cat(labels))
    if epochs.samples == "validation":
        if on_device.validation is None:
            reason = f"{config.data} has no validation split: set data.validation_fraction, such as 0.2"
            raise ConfigError(f"{config.name}: epochs.samples: {reason}")
        measured = on_device.validation

    at_once, precision = len(measured.labels) if epochs.batches is None else batch_size, config.device.precision
    classes = len(data.class_names)
    evaluator = Evaluator(measured, make_metrics(config, data), epochs.mode, precision, classes, at_once, world)
    test_evaluator = None
    if epochs.test:
        metrics = make_metrics(config, data, only=epochs.test)
        test_evaluator = replace(evaluator, split=on_device.test, metrics=metrics, batch_size=len(data.test.labels))
    with _config_errors(f"{config.name}: loss"):
        loss = config.loss.make(concern)
        loss = loss.to(device) if isinstance(loss, nn.Module) else loss
        ramp = None
        if training.margin_ramp is not None:
            if not isinstance(loss, SoftmaxMarginLoss):
                raise ValueError("training.margin_ramp needs the loss softmax_margin")
            begin, end = training.margin_ramp
            ramp = MarginRamp(loss, epochs.count, begin=begin, end=end)
    state = LoopState(model, engine, optimizer, loss, ConcernLossScale(), precision, classes, world, average=average)
    state.clip_norm, state.ramp = training.clip_norm, ramp
    state.noise = training.noise * on_device.train.inputs.std().item() if training.noise else 0.0
    scheduler = None
    if config.scheduler is not None:
        with _config_errors(f"{config.name}: scheduler"):
            scheduler = config.scheduler.make(optimizer, epochs.count, config.directions)
    if world.rank:  # dropout, for example, must differ between the shares of a batch
        torch.manual_seed(config.seed + world.rank)
    return PreparedRun(config, state, batches, on_device, evaluator, test_evaluator, scheduler)


def make_metrics(
    config: RunConfig, data: DataSplits, *, only: Collection[str] | None = None
) -> list[tuple[MetricEntry, Any]]:
    """Make the metrics of ``config`` for the classes of ``data``. If ``only`` is given, make those with these names."""
    entries = [metric.entry() for metric in config.metrics if only is None or metric.name in only]
    settings = {"concern": config.score.concern.spec(data.class_names), "k": config.score.k, "t": config.score.t}
    with _config_errors(f"{config.name}: metrics"):
        return [(entry, entry.make(len(data.class_names), validate_args=False, **settings)) for entry in entries]


@contextmanager
def _config_errors(place: str) -> Iterator[None]:
    """Turn an error in the with block into a `ConfigError` that begins with ``place``; pass communication errors on."""
    try:
        yield
    except Exception as error:
        if is_of_backend(error):
            raise
        kind = "" if isinstance(error, TypeError | ValueError | MpcsError) else f"{type(error).__name__}: "
        raise ConfigError(f"{place}: {kind}{shown(str(error), 500)}") from error


def resolved_config(config: RunConfig, data: DataSplits) -> RunConfig:
    """Return ``config`` with k and t of MPCS filled in for ``data``; raise a `ConfigError` if the data do not fit."""
    score, classes = config.score, len(data.class_names)
    try:
        concern = score.concern.spec(data.class_names)
        k, t = pattern_settings(classes, concern, k=score.k, t=score.t, concession=score.concession)
    except ValueError as error:
        raise ConfigError(f"{config.name}: score does not fit {config.data}: {error}") from None
    resolved = score.model_copy(update={"k": k, "t": t, "concession": None})
    return config.model_copy(update={"score": resolved})


def _device(config: RunConfig) -> torch.device:
    if config.device.accelerator == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise ConfigError(f"{config.name}: device.accelerator cuda: PyTorch finds no CUDA device")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", torch.cuda.current_device())))
