"""The report of finished training runs."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from mpcs_torch.report.run import (
    RunEpoch,
    last_picked,
    verdict_of_run,
    write_run_report,
)
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.result import TrainedRun, open_trained
from tests.cli.shell import run
from tests.report.page import Page
from tests.trainer.toy import toy_config

SETTINGS = {
    "data": {"name": "digits", "test_fraction": 0.2, "validation_fraction": 0.3},
    "metrics": ["accuracy", "cross_entropy", "mpcs", "dangerous"],
    "training": {"batch_size": 32, "learning_rate": 0.01},
    "epochs": {"count": 4, "every": 10, "samples": "validation"},
    "score": {"concern": {"releases": [[1, 8], [8, 1]], "factor": 0.1}},
}


def trained(folder: Path, **changed: object) -> Path:
    config = toy_config(**{**SETTINGS, "name": folder.name, **changed})
    run_in_folder(config, config.data.load(Path("data")), folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a run that kept all checkpoints, one that kept the best, and one that kept none."""
    root = tmp_path_factory.mktemp("runs")
    every = {"by": "cross_entropy", "keep_every": 1}
    return {
        "all": trained(root / "all", selector=every),
        "best": trained(
            root / "best", selector={"by": "dangerous", "keep_best_by": []}, seed=6
        ),
        "none": trained(root / "none"),
    }


def text_of(path: Path) -> str:
    return Page(path).text.replace("\N{NO-BREAK SPACE}", " ")


def opened(folder: Path) -> TrainedRun:
    return open_trained(folder, Path("data"))


def test_the_report_has_all_parts_and_says_how_to_repeat_the_run(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    write_run_report([opened(folders["all"])], tmp_path / "r.html", data_root=Path("data"))
    text = text_of(tmp_path / "r.html")
    for heading in (
        "Costliest confusions",
        "Worst test samples",
        "How sure decisions are",
        "Trends",
        "Repeat it",
    ):
        assert heading in text
    assert f"mpcs train {folders['all']}/config.yaml --data-root data" in text
    assert (tmp_path / "r.html").stat().st_size < 3_000_000


def test_without_the_other_checkpoint_the_errors_of_the_picked_epoch_are_reported(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    found = opened(folders["best"])
    write_run_report([found], tmp_path / "r.html", data_root=Path("data"))
    text = text_of(tmp_path / "r.html")
    assert f"Epoch {found.result.epoch} makes " in text


def test_without_checkpoints_the_records_are_reported(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    write_run_report([opened(folders["none"])], tmp_path / "r.html", data_root=Path("data"))
    text = text_of(tmp_path / "r.html")
    assert "No checkpoint of the picked epoch was kept" in text
    assert "Costliest confusions" not in text


def test_runs_without_checkpoints_are_not_compared(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    runs = {name: opened(folders[name]) for name in ("all", "best", "none")}
    write_run_report(list(runs.values()), tmp_path / "r.html", data_root=Path("data"))
    text = text_of(tmp_path / "r.html")
    assert "compared sample by sample if they share" in text
    errors = {
        name: f"{run.result.values['test']['dangerous']:g} dangerous test errors"
        for name, run in runs.items()
    }
    title = "; ".join(
        f"{n} (epoch {run.result.epoch}): {errors[n]} of 360 samples"
        for n, run in runs.items()
    )
    assert f"{title}." in text, "the title has the numbers of all runs, those of the table"
    assert not [alt for alt in Page(tmp_path / "r.html").alts if "matrix" in alt]


@pytest.mark.parametrize(
    ("values", "is_told"), [([3.0, 2.0, 1.0], True), ([3.0, 1.0, 1.0], False)]
)
def test_an_epoch_that_is_picked_last_of_all_is_remarked(
    folders: dict[str, Path], values: list[float], is_told: bool
) -> None:
    found = opened(folders["all"])
    records = [
        {"epoch": epoch, "cross_entropy": value}
        for epoch, value in enumerate(values, start=1)
    ]
    told = last_picked(
        replace(found, records=records, result=replace(found.result, epoch=3))
    )
    sentence = (
        "The last epoch, 3, was picked: cross_entropy was still getting better. "
        "More epochs may give a better model."
    )
    assert told == ([sentence] if is_told else [])


def test_a_run_without_a_selector_has_no_remark_on_its_last_epoch(
    folders: dict[str, Path],
) -> None:
    assert last_picked(opened(folders["none"])) == []


@pytest.mark.slow
def test_the_command_writes_beside_the_run_and_replaces_only_on_request(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(folders["all"], folder)
    assert run("report", folder) == 0
    assert (folder / "report.html").is_file()
    assert run("report", folder) == 2
    told = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert "exists: choose another file or pass --overwrite" in told
    assert run("report", folder, folder) == 2
    assert run("report", folder, folders["best"]) == 2, "several runs need --out"
    capsys.readouterr()
    assert run("report", folder, "--overwrite", "--quiet") == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (None, "finish the run first"),
        ("[]", "is not the result of a run"),
        ('{"epoch": 1}', "is not the result"),
    ],
)
def test_a_run_without_a_result_is_refused(
    folders: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    result: str | None,
    told: str,
) -> None:
    shutil.copytree(folders["none"], tmp_path / "run")
    path = tmp_path / "run" / "result.json"
    path.unlink() if result is None else path.write_text(result)
    assert run("report", tmp_path / "run") == 2
    assert told in capsys.readouterr().err


def test_a_checkpoint_of_another_model_is_refused(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(folders["best"], folder)
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("hidden: 8", "hidden: 9"))
    assert run("report", folder) == 2
    assert "does not fit" in capsys.readouterr().err
    assert json.loads((folder / "result.json").read_text())


@pytest.mark.parametrize(
    ("errors", "text"), [(3, "which also makes 3."), (5, "which makes 5.")]
)
def test_the_verdict_says_where_both_picks_make_equally_many_errors(
    folders: dict[str, Path], errors: int, text: str
) -> None:
    run = replace(
        opened(folders["none"]),
        records=[
            {"epoch": 1, "test_dangerous": 3},
            {"epoch": 2, "test_dangerous": errors},
        ],
    )
    sentence = verdict_of_run(RunEpoch(run, 1), "accuracy", RunEpoch(run, 2))
    assert sentence == (
        f"Epoch 1 makes 3 dangerous test errors; accuracy would have picked epoch 2, {text}"
    )
