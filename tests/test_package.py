"""``import mpcs_torch`` imports what is used, when it is used."""

import pickle
import subprocess
import sys

import pytest

import mpcs_torch


def fresh(statements: str) -> str:
    """The output of a new process."""
    return subprocess.run(
        [sys.executable, "-c", statements], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("name", mpcs_torch.__all__)
def test_every_public_name_is_there_and_listed(name: str) -> None:
    assert getattr(mpcs_torch, name) is not None
    assert name in dir(mpcs_torch)


def test_a_star_import_gives_the_public_names() -> None:
    names: dict[str, object] = {}
    exec("from mpcs_torch import *", names)
    assert set(names) - {"__builtins__"} == set(mpcs_torch.__all__)


@pytest.mark.slow
def test_packages_need_no_import_of_their_own() -> None:
    names = ["concern", "functional", "calibration", "learning", "metrics"]
    told = fresh(
        f"import mpcs_torch\nfor name in {names}: print(getattr(mpcs_torch, name).__name__)"
    )
    assert told.split() == [f"mpcs_torch.{name}" for name in names]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(
        AttributeError, match="module 'mpcs_torch' has no attribute 'MetaPattern'"
    ):
        mpcs_torch.MetaPattern  # noqa: B018


@pytest.mark.slow
def test_a_metric_and_a_spec_travel_to_another_process() -> None:
    spec = mpcs_torch.ConcernSpec(["red", "green"], releases=[["red", "green"]])
    metric = mpcs_torch.MetaPatternConcernScore(num_classes=2, concern=spec)
    load = f"import pickle; metric, spec = pickle.loads({pickle.dumps((metric, spec))!r}); print(spec.classes)"
    assert fresh(load) == "('red', 'green')\n"
