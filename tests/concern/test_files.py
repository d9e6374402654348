"""Concern files: safe loading, and errors with their lines."""

import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from mpcs_torch import ConcernError, ConcernSpec, load_concern
from mpcs_torch.concern import save_concern
from mpcs_torch.concern.checks import MAX_PROBLEMS
from mpcs_torch.errors import has_control
from tests.conftest import load_oracle

CONCERNS = Path(__file__).parents[2] / "configs" / "concerns"


def write(folder: Path, text: str) -> Path:
    path = folder / "concern.yaml"
    path.write_text(text)
    return path


def test_traffic_lights_release_red_and_yellow() -> None:
    spec = load_concern(CONCERNS / "traffic-lights.yaml")
    assert spec.classes == ("red", "yellow", "green")
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
    assert (
        "one of the keys classes, releases, factor, weights, dangerous, refer, concession"
        in str(error.value)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("classes: [a, b\n", "concern.yaml:2:1: not valid YAML"),
        ("- a\n", "must be a mapping with the keys classes, releases, factor, weights"),
        ("", "must be a mapping with the keys"),
        ("factor: 0.5\n", "concern.yaml:1:1: must have the key classes"),
        (
            "classes: [a, b]\nfactor: 0.1\nfactor: 0.2\n",
            "concern.yaml:3:1: not valid YAML: factor appears twice",
        ),
        (
            "classes: !!python/object/apply:os.getcwd []\n",
            "not valid YAML: tags such as tag:yaml.org,2002:python/object",
        ),
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


def test_without_pyyaml_loading_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.delitem(sys.modules, "mpcs_torch.io.yaml_files", raising=False)
    with pytest.raises(
        ImportError, match=r"load_concern needs PyYAML: pip install 'mpcs_torch\[cli\]'"
    ):
        load_concern(CONCERNS / "traffic-lights.yaml")


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "concern.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(
        ConcernError, match=r"concern.yaml: not valid YAML: not UTF-8 text: byte 0xff at 0"
    ):
        load_concern(path)


def test_a_concern_of_the_package_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_concern("traffic-lights") == load_concern(
        "configs/concerns/traffic-lights.yaml"
    )
    with pytest.raises(
        FileNotFoundError,
        match=r"trafic-lights: no such file, .* did you mean traffic-lights\?",
    ):
        load_concern("trafic-lights")
    with pytest.raises(FileNotFoundError, match=r"xyz: .* the names are mnist-case-study,"):
        load_concern("xyz")
    monkeypatch.chdir(tmp_path)
    Path("traffic-lights").write_text("classes: [mine, yours]")
    assert load_concern("traffic-lights").classes == ("mine", "yours")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent.yaml"):
        load_concern(tmp_path / "absent.yaml")


def test_a_bomb_of_aliases_is_refused_at_once_and_briefly(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    start = time.process_time()
    with pytest.raises(ConcernError) as error:
        load_concern(write(tmp_path, "\n".join([*lines, "classes: *a11", ""])))
    assert time.process_time() - start < 1
    assert len(str(error.value)) < 300 + len(str(tmp_path))


def test_a_file_with_many_classes_or_keys_takes_linear_time(tmp_path: Path) -> None:
    names = ", ".join(f"c{i}" for i in range(20_000))
    start = time.process_time()
    assert len(load_concern(write(tmp_path, f"classes: [{names}]\n")).classes) == 20_000
    with pytest.raises(ConcernError) as error:
        load_concern(write(tmp_path, "\n".join(f"k{i}: 0" for i in range(20_000))))
    assert time.process_time() - start < 10
    assert str(error.value).endswith("... and more")
    assert len(str(error.value).splitlines()) == MAX_PROBLEMS + 1


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (
            f"[a, {'b' * 100_000}]",
            r"classes\[1\]: must have at most 200 characters, but has 100000",
        ),
        (
            r'[a, "\e[31m"]',
            r"classes\[1\]: must not contain control characters, but got '\\x1b\[31m'",
        ),
        (r'[a, "\0"]', r"must not contain control characters, but got '\\x00'"),
        (r'[a, "\u202e"]', r"must not contain control characters, but got '\\u202e'"),
        (r'[a, "\ud800"]', r"must not contain control characters, but got '\\ud800'"),
        (
            "{a: " + "b" * 100_000 + "}",
            r"classes: must be a list of names .* but got \{'a': 'bbb",
        ),
        (
            "0x" + "f" * 50,
            r"classes: must be at least 2 and at most 10000000, but got 16069",
        ),
    ],
    ids=range(7),
)
def test_names_that_cannot_be_shown_are_refused(
    tmp_path: Path, classes: str, message: str
) -> None:
    with pytest.raises(ConcernError, match=message) as error:
        load_concern(write(tmp_path, f"classes: {classes}\n"))
    assert len(str(error.value)) < 400 + len(str(tmp_path))
    assert not has_control(str(error.value).replace("\n", " "))


def test_names_in_other_scripts_are_kept(tmp_path: Path) -> None:
    names = (
        "grün",
        "\u0645\u06cc\u200c\u0634\u0648\u062f",
        "\U0001f469\u200d\U0001f52c",
        "\u7ea2\u3000\u706f",
    )
    (tmp_path / "concern.yaml").write_text(
        f"\ufeffclasses: [{', '.join(names)}]\n", encoding="utf-8"
    )
    assert load_concern(tmp_path / "concern.yaml").classes == names
