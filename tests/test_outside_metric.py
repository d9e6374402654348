"""A metric from outside the package goes through records, scheduler, selector, `mpcs select` and `mpcs score`."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torchmetrics.functional.classification import multiclass_accuracy

from mpcs_torch.trainer.result import read_records
from tests.cli.shell import run
from tests.cli.test_cli import IRIS

MODULE = '''
import torch
from torchmetrics import Metric


class SecondChance(Metric):
    """Share of samples whose label is among the two most probable classes."""

    higher_is_better = True
    full_state_update = False

    def __init__(self, num_classes, *, places: int = 2, **kwargs):
        super().__init__(**kwargs)
        self.places = places
        self.add_state("hits", torch.tensor(0), dist_reduce_fx="sum")
        self.add_state("samples", torch.tensor(0), dist_reduce_fx="sum")

    def update(self, preds, target):
        self.hits = self.hits + (preds.topk(self.places, dim=1).indices == target.unsqueeze(1)).sum()
        self.samples = self.samples + len(target)

    def compute(self):
        return self.hits.double() / self.samples
'''


@pytest.fixture(autouse=True)
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "outside_metric.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


def test_it_is_recorded_followed_and_selected_by(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = "[mpcs, accuracy, {name: second, path: 'outside_metric:SecondChance'}]"
    options = (
        "data.validation_fraction=0.3",
        "epochs={count: 8, samples: validation}",
        f"metrics={metrics}",
    )
    followed = (
        "selector={by: second, ties: last}",
        "scheduler={name: plateau, score: second, patience: 0}",
    )
    assert run("train", IRIS, *options, *followed, "name=mine") == 0
    assert "highest second" in capsys.readouterr().out
    records = read_records(tmp_path / "runs" / "mine" / "records.csv")
    assert list(records[0]) == ["epoch", "mpcs", "accuracy", "second"]
    assert all(record["second"] >= record["accuracy"] for record in records)
    best = max(records, key=lambda record: (record["second"], record["epoch"]))
    assert (
        json.loads((tmp_path / "runs" / "mine" / "result.json").read_text())["epoch"]
        == best["epoch"]
    )

    sys.modules.pop("outside_metric")
    (tmp_path / "outside_metric.py").unlink()  # selecting runs no code of the run's
    assert run("select", tmp_path / "runs" / "mine", "--by", "second", "--json") == 0
    found = json.loads(capsys.readouterr().out)["best"][0]
    assert found["values"]["second"] == best["second"]


def test_it_scores_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    probs = torch.rand(30, 4, generator=torch.Generator().manual_seed(0)).softmax(dim=1)
    target = torch.arange(30) % 4
    np.savez(tmp_path / "p.npz", preds=probs.numpy(), target=target.numpy())
    assert (
        run(
            "score",
            tmp_path / "p.npz",
            "--metrics",
            "mpcs,outside_metric:SecondChance",
            "--json",
        )
        == 0
    )
    found = json.loads(capsys.readouterr().out)["metrics"]
    expected = multiclass_accuracy(
        probs, target, num_classes=4, top_k=2, average="micro"
    ).item()
    assert list(found) == ["mpcs", "SecondChance"]
    assert found["SecondChance"] == pytest.approx(expected)


def test_a_config_names_what_is_wrong_with_a_metric(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wrong = {
        "metrics=[]": "metrics: must have at least one metric",
        "metrics=[soft_f1_micro]": "must be one of accuracy, ",
        "metrics=[{name: test_it, metric: mpcs}]": "name must not be 'epoch' nor begin with 'test_'",
        "metrics=[{name: accuracy}, {name: mpcs, k: 9}]": "k must be from 1 to the number of classes (3), but got 9",
        "epochs.test=[brier_score]": "epochs.test: must be one of the suitable metrics of the run",
        "selector.by=brier_score": "selector.by: must be one of the suitable metrics of the run",
        "scheduler={name: mpcs_lr, score: accuracy}": "scheduler.score: must be one of the suitable metrics of the run",
    }
    for override, message in wrong.items():
        assert run("train", IRIS, override) == 2
        assert message in capsys.readouterr().err
