"""``mpcs`` answers without loading what only the work needs."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import start_up
from mpcs_torch.cli.app import VERBS

HEAVY = {"torch", "numpy", "torchmetrics", "matplotlib"}
HELP = [[*verb, "--help"] for verb in start_up.HELP]
UNKNOWN = [
    "trian",
    "train --epochs 3",
    "data put",
]
MISTAKES = [
    "train",
    "train none.yaml",
    "score none.csv",
    "score here.csv --html nowhere/report.html",
    "detect here.csv --trials none.txt",
    "detect here.csv --point 0.5,1",
    "detect here.csv --fuse",
    "calibrate fit none.csv --method pav --out cal.pt",
    "calibrate fit here.csv --method none --out cal.pt",
    "calibrate fit here.csv --method pav --logits --out cal.pt",
    "calibrate fit here.csv --method pav --out here.csv",
    "calibrate apply here.csv here.csv --out nowhere/out.csv",
    "calibrate priors here.csv none.csv",
    "decide fit here.csv --concern none.yaml --out rule.pt",
    "decide apply here.csv here.csv --out nowhere/out.csv",
    "select none",
    "select . --within accuracy",
    "reproduce",
    "reproduce exp99",
    "concern suggest none.yaml --from tree --out out.yaml",
    "concern suggest a,b --from 'thin air' --out out.yaml",
]
CODE = """
import sys
{first}
theirs = set(sys.modules)
from mpcs_torch.cli.app import run_app
try:
    run_app(sys.argv[1:])
finally:
    print(*{{name.split(".")[0] for name in set(sys.modules) - theirs}}, file=open("modules.txt", "w"))
"""


def answer(
    folder: Path, *arguments: str, first: str = "", **environment: str
) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """Return the output of a command line, and the packages that it loads beside those of a first statement."""
    result = subprocess.run(
        [sys.executable, "-c", CODE.format(first=first), *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return result, set((folder / "modules.txt").read_text().split())


@pytest.mark.parametrize("arguments", [["--version"], *HELP], ids=" ".join)
def test_help_loads_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    result, loaded = answer(tmp_path, *arguments)
    assert (result.returncode, result.stderr) == (0, "")
    assert not loaded & (HEAVY | {"pydantic"})


@pytest.mark.slow
@pytest.mark.parametrize("command", UNKNOWN + MISTAKES)
def test_a_mistake_in_the_arguments_loads_nothing_heavy(
    command: str, tmp_path: Path
) -> None:
    (tmp_path / "here.csv").touch()
    result, loaded = answer(tmp_path, *shlex.split(command))
    assert result.returncode == 2
    assert "Error" in result.stderr
    assert "Traceback" not in result.stderr
    assert not loaded & (
        HEAVY if command in MISTAKES else HEAVY | {"pydantic"}
    )  # Typer converts values with pydantic


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "rows", "first", "unneeded"),
    [
        ("detect", "score,label\n0.5,1\n0.2,0\n", "", {"torchmetrics"}),
        (
            "score",
            "target,a,b\na,0.5,0.5\n",
            "import torchmetrics",
            set(),
        ),  # loads all that is installed, once
    ],
    ids=["detect", "score"],
)
def test_a_file_is_measured_without_the_parts_of_the_trainer(
    verb: str, rows: str, first: str, unneeded: set[str], tmp_path: Path
) -> None:
    (tmp_path / "p.csv").write_text(rows)
    result, loaded = answer(tmp_path, verb, "p.csv", first=first)
    assert result.returncode == 0
    assert not loaded & {
        "sklearn",
        "lightning_fabric",
        "yaml",
        "jinja2",
        "pooch",
        "requests",
        "pandas",
        *unneeded,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "given"), [("order", "a,b"), ("costs", "costs.csv"), ("tree", "tree.yaml")]
)
def test_a_draft_without_samples_needs_no_extra_but_the_command_line(
    source: str, given: str, tmp_path: Path
) -> None:
    (tmp_path / "costs.csv").write_text("a,b\n0,2\n1,0\n")
    (tmp_path / "tree.yaml").write_text("pets: [a, b]\n")
    missing = ["sklearn", "torchvision", "pooch", "requests", "pandas", "matplotlib"]
    first = f"sys.modules.update(dict.fromkeys({missing}))"
    result, _ = answer(
        tmp_path,
        *f"concern suggest {given} --from {source} --out out.yaml".split(),
        first=first,
    )
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "out.yaml").is_file()


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    assert answer(tmp_path, "--version")[0].stdout.startswith("mpcs_torch 0.")


def test_a_misspelt_verb_is_corrected(tmp_path: Path) -> None:
    assert "Did you mean 'train'?" in answer(tmp_path, "trian")[0].stderr


def test_the_package_runs_as_a_module() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "mpcs_torch", "train", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Usage: mpcs train" in result.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("mpcs ", set(VERBS)),
        ("mpcs de", {"decide", "detect", "demo"}),
        ("mpcs reproduce exp01", {"exp01", "exp01-breast-cancer"}),
        ("mpcs reproduce exp01 fig", {"figure6"}),
        ("mpcs data ", {"get", "list"}),
        ("mpcs data get ", {"mnist", "add", "ucr/Chinatown", "ucr/SmoothSubspace"}),
        ("mpcs concern suggest --from t", {"tree"}),
    ],
)
def test_the_shell_completes(words: str, expected: set[str], tmp_path: Path) -> None:
    place = str(len(words.split(" ")) - 1)
    environment = {
        "_MPCS_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": place,
    }
    result, loaded = answer(tmp_path, **environment)
    assert set(result.stdout.split()) == expected
    assert not loaded & HEAVY


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_shown(shell: str, tmp_path: Path) -> None:
    environment = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    result, loaded = answer(tmp_path, "--show-completion", shell, **environment)
    assert "_MPCS_COMPLETE=complete_" in result.stdout
    assert not loaded & HEAVY
