"""The command line: files, output and errors."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mpcs_torch.errors import ExitStatus
from mpcs_torch.metrics.named_metrics import ENTRIES, OF_CLASS
from mpcs_torch.trainer.result import read_records
from tests.cli.printed import printed_tables
from tests.cli.shell import run
from tests.processes.in_this_process import in_this_process
from tests.report.page import Page

IRIS = Path(__file__).parents[2] / "configs" / "experiments" / "exp01.yaml"


def test_train_writes_records_and_the_resolved_config(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", IRIS, "epochs.count=3", "name=mine", "--out", tmp_path) == 0
    assert len(read_records(tmp_path / "mine" / "records.csv")) == 3
    assert "count: 3" in (tmp_path / "mine" / "config.yaml").read_text()
    assert f"wrote {tmp_path / 'mine' / 'records.csv'}" in capsys.readouterr().out


def test_train_takes_a_users_own_model_and_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_parts.py").write_text(
        "import torch\n"
        "from mpcs_torch.trainer.data import DataSplits, Split\n\n"
        "def net(input_shape, num_classes, *, bias: bool = True):\n"
        "    return torch.nn.Linear(input_shape[0], num_classes, bias=bias)\n\n"
        "def blobs(root, *, size: int):\n"
        "    labels = torch.arange(size) % 2\n"
        "    inputs = torch.randn(size, 3) + labels.unsqueeze(1)\n"
        "    return DataSplits(Split(inputs, labels), Split(inputs, labels), ('left', 'right'))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    own = (
        "data={path: 'my_parts:blobs', size: 30}",
        "model={path: 'my_parts:net', bias: false}",
        "score={}",
    )
    assert run("train", IRIS, *own, "epochs.count=2") == 0
    assert "bias: false" in (tmp_path / "runs" / "exp01" / "config.yaml").read_text()
    assert (
        run("train", IRIS, "data={path: 'my_parts:blobs', size: many}", "name=other") == 2
    )


@pytest.mark.slow
def test_reproduce_prints_the_papers_correlations_beside_ours_and_their_interval_over_seeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpcs_torch.trainer.folder.run_in_processes", in_this_process)
    assert run("reproduce", "exp01", "--seeds", 2, "--out", tmp_path) == 0
    printed = capsys.readouterr().out
    assert "## exp01: mlp on iris, 150 epochs" in printed
    assert "ours (paper)" in printed
    assert "(-0.909)" in printed
    assert run("report", tmp_path / "exp01") == 0
    assert "## exp01 over seeds 0 to 1" in printed
    assert (tmp_path / "seeds" / "exp01-seed01" / "records.csv").is_file()
    assert run("reproduce", "exp01", "--out", tmp_path) == 2


RECORDS = """epoch,accuracy,f1_macro,mcc,mean_squared_error,cross_entropy,mpcs,mpcs_count,dangerous,test_accuracy
1,0.95,0.9,0.9,0.1,0.2,0.31,0.3,9,0.9
2,0.949,0.9,0.9,0.1,0.3,0.30,0.3,4,0.9
3,0.90,0.9,0.9,0.1,0.1,0.29,0.3,2,0.9
"""


def test_select_says_where_no_epoch_keeps_its_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "records.csv").write_text(RECORDS)
    assert run("select", tmp_path, "--within", "accuracy=0", "--within", "mpcs=0") == 0
    assert capsys.readouterr().out.endswith("\nNo epoch is within the limits.\n")


def test_select_says_where_counts_do_not_tell_epochs_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "records.csv").write_text(
        "epoch,accuracy,dangerous\n1,0.9,5\n2,0.9,4\n3,0.9,29\n"
    )
    assert run("select", tmp_path, "--by", "dangerous") == 0
    printed = capsys.readouterr().out
    assert (
        "95 % intervals of columns read as counts of independent errors: dangerous."
        in printed
    )
    assert "1 (1 epoch)" in printed
    assert "exact test at 5 % for all pairs of epochs" in printed
    assert "4 [1.09, 10.2]" in printed
    assert run("select", tmp_path, "--by", "dangerous", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["as_good_as"] == [1]
    assert told["intervals"]["dangerous"] == pytest.approx([1.0899, 10.2416], abs=1e-4)


def test_select_ranks_records_with_other_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "records.csv").write_text(
        "epoch,accuracy,mpcs\n1,0.95,0.3\n2,0.94,0.1\n3,0.93,0.2\n"
    )
    assert run("select", tmp_path) == 0
    assert "| accuracy  | 1     | 0.95 (+0.01) | 0.3 (+0.2) |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "epoch"),
    [
        ((), 2),
        (("--by", "accuracy"), 1),
        (("--within", "accuracy=0.005"), 1),
        (("--within", "accuracy=0.025"), 2),
    ],
)
def test_every_option_of_select_changes_the_pick(
    options: tuple[str, ...], epoch: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "records.csv").write_text(
        "epoch,accuracy,mpcs\n1,0.95,0.3\n2,0.94,0.1\n3,0.93,0.2\n4,0.92,0.1\n"
    )
    assert run("select", tmp_path, *options) == 0
    out = capsys.readouterr().out
    assert f"\nBest epoch: {epoch}\n" in out
    [table] = printed_tables(out)
    assert table.rows[0][:2] == ["the rule", str(epoch)]
    assert run("select", tmp_path, *options, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [best["epoch"] for best in found["best"]] == [epoch]
    assert found["best"][0]["values"] == dict(
        zip(("accuracy", "mpcs"), VALUES[epoch], strict=True)
    )


VALUES = {1: (0.95, 0.3), 2: (0.94, 0.1)}


def test_train_ends_with_the_pick_its_reason_and_its_test_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = (
        "data.validation_fraction=0.3",
        "epochs={count: 6, samples: validation}",
        "selector={by: mpcs}",
    )
    assert run("train", IRIS, *options, "--out", tmp_path) == 0
    printed = capsys.readouterr().out
    picked = re.match(
        r"Picked epoch (\d): lowest mpcs \((.*)\) on validation data of 6 epochs\.\n",
        printed,
    )
    assert picked is not None
    records = read_records(tmp_path / "exp01" / "records.csv")
    assert int(picked[1]) == min(records, key=lambda record: record["mpcs"])["epoch"]
    header, row = (
        re.sub(r" +", " ", line)
        for line in printed.splitlines()
        if line.startswith(("| metric", "| mpcs "))
    )
    assert header == "| metric | train | validation | test |"
    assert row.split(" | ")[2] == picked[2]


@pytest.mark.parametrize("selector", [[], ["selector={by: mpcs}"]])
def test_a_diverged_run_says_so_and_fails(
    selector: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("training.learning_rate=1e30", "epochs={count: 6}", "--out", tmp_path)
    assert run("train", IRIS, *options, *selector) == ExitStatus.DIVERGED
    error = capsys.readouterr().err
    assert (
        "mpcs: exp01 has diverged: the model of epoch 6 gives NaN or infinite logits."
        in error
    )
    assert json.loads((tmp_path / "exp01" / "result.json").read_text())["diverged"] is True
    assert len(read_records(tmp_path / "exp01" / "records.csv")) == 6


def test_a_run_that_diverges_after_its_pick_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = (
        "data.validation_fraction=0.3",
        "epochs={count: 6, when: before}",
        "selector={by: mpcs}",
    )
    assert run("train", IRIS, *data, "training.learning_rate=1e30", "--out", tmp_path) == 0
    printed = capsys.readouterr().out
    assert re.match(
        r"Picked epoch 1: lowest mpcs \(.*\) on train data of 6 epochs, \d of which gave NaN\.\n",
        printed,
    )
    assert json.loads((tmp_path / "exp01" / "result.json").read_text())["diverged"] is False


def test_metrics_lists_the_register(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("metrics") == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(ENTRIES) + len(OF_CLASS)


@pytest.mark.slow
def test_demo_compares_the_recommended_recipe_with_a_plain_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpcs_torch.report.demonstration.SEEDS", range(2))
    assert run("demo", "--out", tmp_path) == 0
    printed = capsys.readouterr().out
    assert re.search(r"\| cross entropy as usual +\| 100\.0 % ", printed)
    assert re.search(r"\| \+ referrals +\| [89]\d\.\d % ", printed)
    page = Page(tmp_path / "demo" / "report.html").text.replace("\N{NO-BREAK SPACE}", " ")
    assert all(sentence in page for sentence in re.findall(r"(?:Of|If) .*", printed))


def test_without_the_cli_extra_the_command_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['typer'] = None; from mpcs_torch.cli import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == ExitStatus.REFUSED
    assert "pip install 'mpcs_torch[cli]'" in result.stderr
