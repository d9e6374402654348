"""skorch's callbacks take a concern scorer as they take one of `make_scorer`."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import accuracy_score, log_loss, make_scorer
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNetClassifier
from skorch.callbacks import (
    Checkpoint,
    EpochScoring,
    LRScheduler,
)
from torch import nn

from mpcs_torch import ConcernSpec
from mpcs_torch.integrations.checkpoints import TrainedTwiceError
from mpcs_torch.integrations.sklearn import concern_scorer
from mpcs_torch.integrations.skorch import SelectCheckpoint
from mpcs_torch.learning import MPCSLR, CheckpointSelector, SelectionRule

CONCERN = ConcernSpec(3)
LABELS = np.arange(90) % 3
INPUTS = (np.random.default_rng(0).normal(size=(90, 4)) + np.eye(3, 4)[LABELS]).astype(
    "float32"
)
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
@pytest.mark.parametrize(
    ("name", "theirs"),
    [("cross_entropy", LOG_LOSS), ("accuracy", make_scorer(accuracy_score))],
)
def test_scores_of_epochs_are_those_of_make_scorer(
    name: str, theirs: Any, settings: dict[str, Any]
) -> None:
    scorer = concern_scorer(name, CONCERN)
    ours = EpochScoring(scorer, lower_is_better=False, **settings)  # named after the metric
    fitted = net(
        ("ours", ours),
        ("theirs", EpochScoring(theirs, lower_is_better=False, name="theirs", **settings)),
    ).fit(INPUTS, LABELS)
    assert fitted.history[:, name] == pytest.approx(fitted.history[:, "theirs"], rel=1e-6)
    assert fitted.history[:, f"{name}_best"] == fitted.history[:, "theirs_best"]


RULE = SelectionRule("neg_mpcs", {"neg_mpcs": "max"})
SCORE = (
    "mpcs",
    EpochScoring(concern_scorer("mpcs", CONCERN), lower_is_better=False, name="neg_mpcs"),
)
FOLLOW = ("rate", LRScheduler(MPCSLR, monitor=lambda net: -net.history[-1, "neg_mpcs"]))


def test_a_training_that_goes_on_keeps_the_reference_of_its_rates() -> None:
    whole = net(SCORE, FOLLOW).set_params(max_epochs=5).fit(INPUTS, LABELS)
    fitted = net(SCORE, FOLLOW).fit(INPUTS, LABELS)
    fitted.set_params(max_epochs=1, warm_start=True)
    fitted.partial_fit(INPUTS, LABELS).fit(INPUTS, LABELS)
    assert fitted.history[:, "event_lr"] == pytest.approx(whole.history[:, "event_lr"])


def test_partial_fit_continues_the_selector_and_fit_begins_anew(tmp_path: Path) -> None:
    best = SelectCheckpoint(tmp_path / "best", RULE)
    fitted = net(SCORE, ("best", best)).fit(INPUTS, LABELS).partial_fit(INPUTS, LABELS)
    assert [epoch.number for epoch in best.selector.epochs] == [1, 2, 3, 4, 5, 6]
    fitted.set_params(callbacks__best__load_best=True).partial_fit(INPUTS, LABELS)
    assert len(CheckpointSelector.open(tmp_path / "best").epochs) == 9
    with pytest.raises(FileExistsError):
        fitted.fit(INPUTS, LABELS)
    selector = CheckpointSelector(tmp_path / "other", RULE)
    fitted = net(SCORE, ("best", SelectCheckpoint(selector))).fit(INPUTS, LABELS)
    with pytest.raises(TrainedTwiceError):
        fitted.fit(INPUTS, LABELS)


def test_the_best_epoch_is_loaded_as_skorchs_checkpoint_loads_it(tmp_path: Path) -> None:
    def fitted(*callbacks: tuple[str, Any]) -> NeuralNetClassifier:
        return net(SCORE, *callbacks).set_params(lr=20.0, max_epochs=6).fit(INPUTS, LABELS)

    ours = fitted(("best", SelectCheckpoint(tmp_path / "ours", RULE, load_best=True)))
    best = {"monitor": "neg_mpcs_best", "load_best": True}
    theirs = fitted(("best", Checkpoint(dirname=tmp_path / "theirs", **best)))
    assert ours.history[-1, "neg_mpcs"] < max(ours.history[:, "neg_mpcs"]), (
        "else the last weights would do"
    )
    assert np.array_equal(ours.predict_proba(INPUTS), theirs.predict_proba(INPUTS))


def test_a_net_with_the_callback_is_cloned_and_set_as_others(tmp_path: Path) -> None:
    first = net(SCORE, ("best", SelectCheckpoint(tmp_path / "a", RULE, patience=2)))
    second = clone(first)
    for name in ("b", "c"):
        second.set_params(
            callbacks__best__patience=None,
            callbacks__best__selector_or_folder=tmp_path / name,
        )
        best = dict(second.fit(INPUTS, LABELS).callbacks_)["best"]
        assert (best.selector.folder, best.selector.patience) == (tmp_path / name, None)
        assert len(best.selector.epochs) == 3
    pickle.loads(pickle.dumps(clone(first)))
    with pytest.raises(FileExistsError):  # several fits of a search share no folder
        GridSearchCV(second, {"lr": [0.1]}, cv=2, refit=False, error_score="raise").fit(
            INPUTS, LABELS
        )
