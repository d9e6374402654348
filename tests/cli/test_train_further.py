"""``mpcs train`` with a stop, and with more epochs for a run that is finished."""

from pathlib import Path

from mpcs_torch.trainer.result import read_records
from tests.cli.shell import Shell
from tests.trainer.toy import contents

FOLDER = Path("runs/exp01")
RESUME = f"train --resume {FOLDER}"


def test_a_finished_run_is_trained_longer_and_nothing_else(mpcs: Shell) -> None:
    train = "train exp01 training.batch_size=20 score={} -q"
    mpcs(f"{train} epochs.count=9 --out whole")
    mpcs(f"{train} epochs.count=4")
    before = contents(FOLDER)
    assert f"{FOLDER} is finished" in mpcs(RESUME).out
    for override, reason in (
        (
            "training.batch_size=5",
            "saved run in training.batch_size; only epochs.count may change",
        ),
        ("epochs.count=3", "epochs.count must be at least 4"),
        ("'scheduler={name: cosine}'", "the saved run in scheduler.name"),
    ):
        assert reason in mpcs.refusal(f"{RESUME} {override} -q")
    assert contents(FOLDER) == before
    mpcs(f"{RESUME} epochs.count=9 -q")
    assert contents(FOLDER) == contents(Path("whole/exp01"))


def test_a_run_that_stops_says_so_now_and_later(mpcs: Shell) -> None:
    selector = "'selector={by: accuracy, patience: 3}'"
    rate = "training.learning_rate=1e-30 epochs.unit=pass"
    printed = mpcs(f"train exp01 {selector} {rate}").out
    why = "after epoch 4 of 150: the best epoch by the selector's rule is still 1 (selector.patience: 3)"
    assert f"Stopped {why}." in printed
    assert len(read_records(FOLDER / "records.csv")) == 4
    assert f"result.json; it stopped {why}" in mpcs(RESUME).out
    assert mpcs.json(RESUME)["stopped"] == why
    more = mpcs.refusal(f"{RESUME} epochs.count=500")
    assert "more epochs would not change that" in more
    mpcs(f"report {FOLDER}")
    page = (FOLDER / "report.html").read_text().replace("&#39;", "'")
    assert f"The run stopped {why}." in page
