"""Installed packages come before the files of the current folder, however ``mpcs`` is started."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpcs_torch.io.packaged import import_attribute
from tests.refused import Refused

ROOT = Path(__file__).parents[2]
MODULE = ("-m", "mpcs_torch")
SCRIPT = ("-P", "-c", "from mpcs_torch.cli import main; main()")
"""Like the installed script ``mpcs``, which does not search the current folder."""
SHADOWS = ("numpy", "torch", "typer", "yaml", "pyarrow", "torchmetrics", "pathlib")
METRICS = "accuracy,torchmetrics.classification:MulticlassCalibrationError"


def started(
    how: tuple[str, ...], folder: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *how, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with predictions, and with files that have the names of packages and leave a mark when they are run."""
    for name in SHADOWS:
        (tmp_path / f"{name}.py").write_text(f"open('ran-{name}', 'w')\n")
    (tmp_path / "p.csv").write_text(
        "target,a,b\na,0.7,0.3\nb,0.2,0.8\na,0.4,0.6\nb,0.1,0.9\n"
    )
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("how", [MODULE, SCRIPT], ids=["module", "script"])
def test_no_file_of_the_current_folder_is_run_instead_of_a_package(
    how: tuple[str, ...], folder: Path
) -> None:
    result = started(how, folder, "score", "p.csv", "--metrics", METRICS, "--no-intervals")
    assert result.returncode == 0, result.stderr
    assert "MulticlassCalibrationError" in result.stdout
    assert list(folder.glob("ran-*")) == []


@pytest.mark.slow
@pytest.mark.parametrize("how", [MODULE, SCRIPT], ids=["module", "script"])
def test_a_module_of_the_users_own_is_found_in_the_current_folder(
    how: tuple[str, ...], folder: Path
) -> None:
    (folder / "mine.py").write_text(
        "from torchmetrics.classification import MulticlassCalibrationError as Mine\n"
    )
    result = started(
        how, folder, "score", "p.csv", "--metrics", "mine:Mine", "--no-intervals"
    )
    assert result.returncode == 0, result.stderr
    assert list(folder.glob("ran-*")) == []


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])
    return tmp_path


def test_the_current_folder_is_searched_only_for_what_is_found_nowhere_else(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = list(sys.path)
    (here / "torchmetrics.py").write_text("Accuracy = 'mine'\n")
    assert import_attribute("torchmetrics:Accuracy") != "mine"
    assert sys.path == before
    with Refused("import_fails", "path"):
        import_attribute("nowhere_at_all:Net")
    assert sys.path == before
    for name in ("own_module", "own_package"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (here / "own_module.py").write_text("Net = 1\n")
    (here / "own_package").mkdir()
    (here / "own_package" / "models.py").write_text("from own_module import Net\n")
    assert import_attribute("own_package.models:Net") == 1
    assert sys.path == [*before, str(here)]
    assert import_attribute("own_module:Net") == 1
    assert sys.path == [*before, str(here)]


def test_an_error_says_which_of_two_modules_was_imported(here: Path) -> None:
    (here / "torchmetrics.py").write_text("class Mine: pass\n")
    with Refused("import_fails", "path"):
        import_attribute("torchmetrics:Mine")
    with Refused("import_fails", "path"):
        import_attribute("torch:Mine")
