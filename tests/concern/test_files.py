"""Concern files: safe loading, and errors with their lines."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from mpcs_torch import ConcernError, ConcernSpec, load_concern
from mpcs_torch.concern import save_concern
from tests.conftest import load_oracle

CONCERNS = Path(__file__).parents[2] / "configs" / "concerns"


def write(folder: Path, text: str) -> Path:
    path = folder / "concern.yaml"
    path.write_text(text)
    return path


def test_traffic_lights_release_red_and_yellow() -> None:
    spec = load_concern(CONCERNS / "traffic-lights.yaml")
    assert spec.class_names == ("red", "yellow", "green")
    assert spec.released().nonzero().tolist() == [[0, 1], [1, 0]]


def test_case_study_releases_the_published_pairs() -> None:
    released = torch.zeros(10, 10, dtype=torch.bool)
    for true, predicted in load_oracle("paper_tables")["figure_5"]["released_pairs"]:
        released[true, predicted] = True
    spec = load_concern(CONCERNS / "mnist-case-study.yaml")
    assert released.sum() == 28
    assert torch.equal(spec.released(), released)
    assert spec.factor == 0.5


def test_all_errors_are_reported_together_with_their_places(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "classes: [red, yellow, green]\nreleases:\n  - [red, purple]\n  - [green, 7]\nfactor: 2\ncolour: blue\n",
    )
    with pytest.raises(ConcernError) as error:
        load_concern(path)
    assert [problem.place for problem in error.value.problems] == [
        f"{path}:{place}" for place in ("6:9", "3:11", "4:13", "5:9")
    ]
    assert "one of the keys classes, releases, factor, weights, dangerous, refer, concession" in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("classes: [a, b\n", "concern.yaml:2:1: not valid YAML"),
        ("- a\n", "must be a mapping with the keys classes, releases, factor, weights"),
        ("", "must be a mapping with the keys"),
        ("factor: 0.5\n", "concern.yaml:1:1: must have the key classes"),
        ("classes: [a, b]\nfactor: 0.1\nfactor: 0.2\n", "concern.yaml:3:1: not valid YAML: factor appears twice"),
        ("classes: !!python/object/apply:os.getcwd []\n", "not valid YAML: could not determine a constructor"),
    ],
)
def test_broken_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConcernError, match=message):
        load_concern(write(tmp_path, text))


@pytest.mark.parametrize(
    "settings",
    [
        {"releases": [["a", "b"]], "factor": 0.1, "concession": 0.02},
        {"dangerous": [["a", "b"]], "factor": 0.1, "refer": 0.5},
        {"weights": [[0, 2.5], [50, 0]], "dangerous": 50, "refer": [1, 2]},
        {"weights": [[0, 2.5], [50, 0]], "dangerous": [["b", "a"]]},
    ],
)
def test_saved_specs_load_as_they_were(tmp_path: Path, settings: dict[str, Any]) -> None:
    spec = ConcernSpec(["a", "b"], **settings)
    save_concern(spec, tmp_path / "concern.yaml")
    assert load_concern(tmp_path / "concern.yaml") == spec


def test_without_pyyaml_loading_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.delitem(sys.modules, "mpcs_torch.yaml_files", raising=False)
    with pytest.raises(ImportError, match=r"load_concern needs PyYAML: pip install 'mpcs_torch\[train\]'"):
        load_concern(CONCERNS / "traffic-lights.yaml")


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "concern.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConcernError, match=r"concern.yaml: is not UTF-8 text"):
        load_concern(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent.yaml"):
        load_concern(tmp_path / "absent.yaml")
