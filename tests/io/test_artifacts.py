"""Files that carry a promise: a change of any byte is refused by name."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mpcs_torch import ConcernSpec
from mpcs_torch.calibration import TemperatureScaling
from mpcs_torch.errors import MpcsError
from mpcs_torch.evaluation.calibration_files import (
    SavedCalibration,
    load_calibration,
    save_calibration,
)
from mpcs_torch.io.artifacts import sealed, sealed_json, unsealed, unsealed_json
from mpcs_torch.io.untrusted_files import FileRuleError
from mpcs_torch.learning import DecisionRule, Limit
from mpcs_torch.monitoring.watch import Settings, Watch

CONCERN = ConcernSpec(["good", "bad"], refer=0.3)


def save_rule(path: Path) -> None:
    logits = torch.tensor([[4.0, 0.0], [0.0, 4.0]]).repeat(200, 1)
    DecisionRule(CONCERN, Limit(0.1), calibration=None).fit(
        logits, torch.arange(400) % 2
    ).save(path)


ARTIFACTS: dict[str, tuple[Callable[[Path], object], Callable[[Path], Any]]] = {
    "rule": (save_rule, DecisionRule.load),
    "calibration": (
        lambda path: save_calibration(
            SavedCalibration("temperature", TemperatureScaling(), ("a", "b"), True), path
        ),
        load_calibration,
    ),
    "state of a monitor": (
        Watch(Settings("", ["any <= 0.1"], run_length=1000.0), CONCERN).save,
        lambda path: Watch.load(path, CONCERN),
    ),
}


@pytest.mark.parametrize("name", ARTIFACTS)
@pytest.mark.parametrize("flips", [100, pytest.param(2000, marks=pytest.mark.exhaustive)])
def test_a_flipped_bit_is_refused_by_name(name: str, flips: int, tmp_path: Path) -> None:
    save, load = ARTIFACTS[name]
    path = tmp_path / "artifact"
    save(path)
    load(path)
    content = path.read_bytes()
    chance = random.Random(0)
    for _ in range(flips):
        place = chance.randrange(len(content))
        changed = bytearray(content)
        changed[place] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        with pytest.raises(MpcsError, match=str(path)):
            load(path)


@pytest.mark.parametrize("name", ARTIFACTS)
def test_a_file_that_was_cut_off_or_continued_is_refused_by_name(
    name: str, tmp_path: Path
) -> None:
    save, load = ARTIFACTS[name]
    path = tmp_path / "artifact"
    save(path)
    content = path.read_bytes()
    for changed in (
        b"",
        content[:-1],
        content[:-80],
        content[1:],
        content + b"\n",
        content + content,
    ):
        path.write_bytes(changed)
        with pytest.raises(MpcsError, match=str(path)):
            load(path)


@given(st.binary(max_size=200), st.integers(0, 300), st.integers(1, 255))
def test_a_seal_fits_its_content_alone(content: bytes, place: int, change: int) -> None:
    whole = sealed(content)
    assert unsealed(whole) == content
    changed = bytearray(whole)
    changed[place % len(whole)] ^= change
    with pytest.raises(FileRuleError):
        unsealed(bytes(changed))


numbers = st.floats() | st.integers(-(2**60), 2**60)
plain = st.recursive(
    numbers | st.text() | st.none() | st.booleans(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(plain)
def test_sealed_json_is_json_and_comes_back(content: Any) -> None:
    text = sealed_json(content)
    assert (
        json.dumps(unsealed_json(text.encode()))
        == json.dumps(content)
        == json.dumps(json.loads(text)["content"])
    )
    spread = json.dumps(json.loads(text), indent=1)
    with pytest.raises(FileRuleError):
        unsealed_json(spread.encode())


OTHER_ALARM = {"kind": "risk", "name": "other", "log": "log.csv", "row": 1, "time": ""}
CHANGES: dict[str, tuple[tuple[str | int, ...], Callable[[Any], Any]]] = {
    "counts must be finite and at least 0": (("counts", 0, 0), lambda _: -1.0),
    r"counts must have shape \(3, 3\), but got \(2, 3\)": (
        ("counts",),
        lambda rows: rows[:-1],
    ),
    "risk loss must be finite and at least 0": (
        ("monitors", "risk", "loss", 0),
        lambda _: float("nan"),
    ),
    r"risk samples must have shape \(1,\), but got \(2,\)": (
        ("monitors", "risk", "samples"),
        lambda numbers: [*numbers, 1.0],
    ),
    "change starts must be finite and at least -inf": (
        ("monitors", "change", "starts", 0, 0),
        lambda _: float("inf"),
    ),
    "must be an alarm of this state": (("alarms",), lambda alarms: [*alarms, OTHER_ALARM]),
    "the place in 'log.csv' must be a number of rows and a hash": (
        ("logs",),
        lambda logs: {**logs, "log.csv": ["1", "a"]},
    ),
    "counts must be lists of numbers, but got 'many'": (("counts",), lambda _: "many"),
    "'monitors'": (("monitors",), None),
}
"""By the problem: the path of an entry of a state, and what it becomes; None removes it."""


def change_entry(state: Any, path: tuple[str | int, ...], change: Any) -> None:
    *above, name = path
    for part in above:
        state = state[part]
    if change is None:
        del state[name]
    else:
        state[name] = change(state[name])


@pytest.mark.parametrize("problem", CHANGES)
def test_a_state_with_invalid_values_is_refused_even_if_its_hash_fits(
    problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "state.json"
    save, load = ARTIFACTS["state of a monitor"]
    save(path)
    state = json.loads(path.read_text())["content"]
    change_entry(state, *CHANGES[problem])
    path.write_text(sealed_json(state))
    with pytest.raises(MpcsError, match=problem):
        load(path)
