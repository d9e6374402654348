"""An error of a user's own part names its key, the error and their line, whenever it is raised."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import run
from tests.cli.test_cli import IRIS

PARTS = """
import numpy
import torch
from torch import nn
from torchmetrics import Metric
from mpcs_torch.trainer.data import DataSplits, Split
from own_layers import Scaled, scaled


class Net(nn.Module):
    def __init__(self, shape, classes, *, kind):
        super().__init__()
        self.layer, self.classes, self.kind, self.passes = nn.Linear(shape[0], classes), classes, kind, 0

    def forward(self, x):
        self.passes += 1
        logits = self.layer(x)
        if self.passes < 4:
            return logits
        if self.kind == "key":
            return {}["width"]
        if self.kind == "shape":
            return logits @ torch.zeros(7, 3)
        if self.kind == "assert":
            assert len(x) < 0
        if self.kind == "numpy":
            return numpy.linalg.cholesky(-numpy.eye(3))
        if self.kind == "layer":
            return scaled(logits)
        if self.kind == "backward":
            return Scaled.apply(logits)
        if self.kind == "measured":
            assert self.training, "only in evaluation"
            return logits
        outputs = {"tuple": (logits, None), "wide": logits.repeat(1, 2), "whole": logits.long()}
        return logits.detach() if self.kind == "detached" else outputs[self.kind]


def stack(shape, classes):
    return nn.Sequential(nn.Linear(shape[0], 7), nn.Linear(8, classes))


def loss(concern, *, kind):
    calls = []

    def of(logits, target):
        calls.append(0)
        if len(calls) < 3:
            return nn.functional.cross_entropy(logits, target)
        if kind == "zero":
            return 1 / 0
        return nn.functional.cross_entropy(logits, target, reduction="none")

    return of


def scheduler(optimizer, epochs, directions):
    return lambda values: values["nothing"]


class Unsaved:
    def __init__(self, optimizer, epochs, directions):
        pass

    def __call__(self, values):
        pass

    def state_dict(self):
        raise TypeError("no state")


class Optimizer(torch.optim.SGD):
    def step(self, closure=None):
        raise RuntimeError("no step")


def optimizer(weights, learning_rate):
    return Optimizer(weights, lr=learning_rate)


class Mean(Metric):
    higher_is_better = True

    def __init__(self, num_classes=2):
        super().__init__()
        self.add_state("total", torch.zeros(()))

    def update(self, preds, target):
        self.total += preds.mean()

    def compute(self):
        return self.total


class Broken(Mean):
    def update(self, preds, target):
        raise IndexError("no row")


class Computed(Mean):
    def compute(self):
        return self.total.tolist()[0]


def data(root, *, kind):
    labels, inputs = torch.arange(30) % 3, torch.randn(30, 4)
    if kind == "key":
        return {}["train"]
    split = {
        "float": Split(inputs, labels.float()),
        "range": Split(inputs, labels + 1),
        "negative": Split(inputs, labels - 1),
        "rows": Split(inputs[:20], labels),
        "list": Split(inputs, labels.tolist()),
        "empty": Split(inputs[:0], labels[:0]),
        "groups": Split(inputs, labels, clusters=labels[:3]),
        "pair": (inputs, labels),
        "whole": Split(inputs.long(), labels),
    }[kind]
    return DataSplits(Split(inputs, labels) if kind == "range" else split, split, ("a", "b", "c"))
"""
LAYERS = """
import torch


def scaled(x):
    raise FloatingPointError("too large")


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise FloatingPointError("no gradient")
"""
NET = "model={{path: 'own_parts:Net', kind: {}}}"
LOSS = "loss={{path: 'own_parts:loss', kind: {}}}"
METRIC = "metrics=[accuracy, {{name: good, path: 'own_parts:Mean'}}, {{name: mine, path: 'own_parts:{}'}}]"
DATA = "data={{path: 'own_parts:data', kind: {}}}"
LOGITS = "model.path: forward must return logits, floating point (40, 3), but returns "
LABELS = "data.path: own_parts:data: {}.labels must be int64 (N,) with N > 0, but is "
RANGE = "data.path: own_parts:data: {}.labels must be from 0 to 2, but are from "
ERRORS = {
    NET.format("key"): (
        "model.path: your own_parts:Net raised KeyError: 'width'",
        'return {}["width"]',
    ),
    NET.format("shape"): (
        "model.path: your own_parts:Net raised RuntimeError: mat1",
        "logits @ torch.zeros(7, 3)",
    ),
    NET.format("assert"): (
        "model.path: your own_parts:Net raised AssertionError at",
        "assert len(x) < 0",
    ),
    NET.format("numpy"): (
        "model.path: your own_parts:Net raised LinAlgError: Matrix",
        "numpy.linalg.cholesky",
    ),
    NET.format("layer"): (
        "model.path: your own_parts:Net raised FloatingPointError: too",
        "scaled(logits)",
    ),
    NET.format("backward"): (
        "model.path: your own_parts:Net raised FloatingPointError: no gradient",
        "",
    ),
    NET.format("measured"): (
        "model.path: your own_parts:Net raised AssertionError: only in evaluation",
        "self.training",
    ),
    NET.format("tuple"): (LOGITS + "tuple", ""),
    NET.format("wide"): (LOGITS + "torch.float32 (40, 6)", ""),
    NET.format("whole"): (LOGITS + "torch.int64 (40, 3)", ""),
    NET.format("detached"): (
        "model.path: your own_parts:Net raised RuntimeError: element 0 of tensors",
        "",
    ),
    "model={path: 'own_parts:stack'}": (
        "model.path: your own_parts:stack raised RuntimeError: mat1 and mat2",
        "",
    ),
    LOSS.format("zero"): (
        "loss.path: your own_parts:loss raised ZeroDivisionError: division by zero",
        "return 1 / 0",
    ),
    LOSS.format("vector"): (
        "loss.path: your own_parts:loss raised RuntimeError: grad can be implicitly created",
        "",
    ),
    "scheduler={path: 'own_parts:scheduler'}": (
        "scheduler.path: your own_parts:scheduler raised KeyError",
        '["nothing"]',
    ),
    "scheduler={path: 'own_parts:Unsaved'}": (
        "scheduler.path: your own_parts:Unsaved raised TypeError",
        '"no state"',
    ),
    "training.optimizer={path: 'own_parts:optimizer'}": (
        "training.optimizer.path: your own_parts:optimizer raised RuntimeError: no step",
        'raise RuntimeError("no step")',
    ),
    METRIC.format("Broken"): (
        "metrics.2.path: your own_parts:Broken raised IndexError",
        'IndexError("no row")',
    ),
    METRIC.format("Computed"): (
        "metrics.2.path: your own_parts:Computed raised TypeError",
        "self.total.tolist()[0]",
    ),
    DATA.format("key"): (
        "data.path: your own_parts:data raised KeyError: 'train'",
        'return {}["train"]',
    ),
    DATA.format("float"): (LABELS.format("train") + "torch.float32 (30,)", ""),
    DATA.format("range"): (RANGE.format("test") + "1 to 3", ""),
    DATA.format("negative"): (RANGE.format("train") + "-1 to 1", ""),
    DATA.format("list"): (LABELS.format("train") + "list", ""),
    DATA.format("empty"): (LABELS.format("train") + "torch.int64 (0,)", ""),
    DATA.format("rows"): (
        "train.inputs must be (N, ...) with N = 30, as labels, but is torch.float32 (20, 4)",
        "",
    ),
    DATA.format("groups"): (
        "train.clusters must be int64 (N,) with N = 30, as labels, but is torch.int64 (3,)",
        "",
    ),
    DATA.format("pair"): (
        "data.path: own_parts:data: train must be a Split, but is tuple",
        "",
    ),
    DATA.format("whole"): (
        "data.path: your own_parts:data raised RuntimeError: mat1 and mat2 must have the same dtype",
        "",
    ),
}


@pytest.fixture(scope="module")
def own_parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("own")
    (folder / "own_parts.py").write_text(PARTS)
    (folder / "own_layers.py").write_text(LAYERS)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.mark.parametrize("part", ERRORS)
def test_an_error_of_a_users_own_part_names_its_key_and_line(
    part: str, own_parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = (
        "score={}",
        "epochs.count=4",
        "training={batch_size: 40, save_seconds: 0}",
        "--out",
        tmp_path,
        "-q",
    )
    assert run("train", IRIS, *settings, part) == 2
    told = capsys.readouterr().err
    message, line = ERRORS[part]
    assert message in told
    assert "bug" not in told
    assert told.count("\n") == 1
    assert f"at {own_parts / 'own_parts.py'}:" in told or not line
    assert line in told
