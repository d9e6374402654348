"""skorch's callbacks take a concern scorer as they take one of `make_scorer`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, log_loss, make_scorer
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNetClassifier
from skorch.callbacks import BatchScoring, Checkpoint, EarlyStopping, EpochScoring, LRScheduler
from torch import nn

from mpcs_torch import ConcernSpec
from mpcs_torch.integrations.sklearn import concern_scorer
from mpcs_torch.learning import MPCSLR

CONCERN = ConcernSpec(3)
LABELS = np.arange(90) % 3
INPUTS = (np.random.default_rng(0).normal(size=(90, 4)) + np.eye(3, 4)[LABELS]).astype("float32")
LOG_LOSS = make_scorer(log_loss, response_method="predict_proba", greater_is_better=False)


def net(*callbacks: tuple[str, Any]) -> NeuralNetClassifier:
    torch.manual_seed(0)
    return NeuralNetClassifier(
        nn.Linear(4, 3),
        criterion=nn.CrossEntropyLoss,
        classes=[0, 1, 2],
        lr=0.3,
        max_epochs=3,
        verbose=0,
        callbacks=list(callbacks),
    )


@pytest.mark.parametrize("settings", [{}, {"on_train": True}, {"use_caching": False}])
@pytest.mark.parametrize(("name", "theirs"), [("cross_entropy", LOG_LOSS), ("accuracy", make_scorer(accuracy_score))])
def test_scores_of_epochs_are_those_of_make_scorer(name: str, theirs: Any, settings: dict[str, Any]) -> None:
    scorer = concern_scorer(name, CONCERN)
    ours = EpochScoring(scorer, lower_is_better=False, **settings)  # named after the metric
    fitted = net(
        ("ours", ours),
        ("theirs", EpochScoring(theirs, lower_is_better=False, name="theirs", **settings)),
        ("batches", BatchScoring(scorer, name="batches", lower_is_better=False)),
    ).fit(INPUTS, LABELS)
    assert fitted.history[:, name] == pytest.approx(fitted.history[:, "theirs"], rel=1e-6)
    assert fitted.history[:, f"{name}_best"] == fitted.history[:, "theirs_best"]
    assert len(fitted.history[:, "batches"]) == 3


def test_rates_checkpoints_and_stops_follow_the_score(tmp_path: Path) -> None:
    fitted = net(
        ("mpcs", EpochScoring(concern_scorer("mpcs", CONCERN), lower_is_better=False)),
        ("rate", LRScheduler(MPCSLR, monitor=lambda net: -net.history[-1, "mpcs"])),
        ("saved", Checkpoint(monitor="mpcs_best", dirname=tmp_path)),
        ("stop", EarlyStopping(monitor="mpcs", lower_is_better=False)),
    ).fit(INPUTS, LABELS)
    optimizer = torch.optim.SGD(nn.Linear(4, 3).parameters(), lr=0.3)
    plain, rates = MPCSLR(optimizer), []
    for score in fitted.history[:, "mpcs"]:
        rates.append(optimizer.param_groups[0]["lr"])
        plain.step(-score)
    assert fitted.history[:, "event_lr"] == rates
    best = net().initialize()
    best.load_params(checkpoint=Checkpoint(monitor="mpcs_best", dirname=tmp_path))
    assert concern_scorer("mpcs", CONCERN)(best, INPUTS, LABELS) > -1


def test_a_search_over_networks_takes_several_scorers() -> None:
    scoring = {name: concern_scorer(name, CONCERN) for name in ("mpcs", "accuracy")}
    search = GridSearchCV(net(), {"lr": [1e-6, 0.3]}, scoring=scoring, refit="mpcs", cv=2).fit(INPUTS, LABELS)
    assert search.best_params_ == {"lr": 0.3}
