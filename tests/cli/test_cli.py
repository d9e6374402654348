"""The command line: files, output and errors."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mpcs_torch.exit_statuses import ExitStatus
from mpcs_torch.metrics.named_metrics import ENTRIES, OF_CLASS
from mpcs_torch.trainer.result import read_records
from tests.cli.printed import printed_tables
from tests.cli.shell import Shell
from tests.processes.in_this_process import in_this_process
from tests.report.page import Page

IRIS = Path(__file__).parents[2] / "configs" / "experiments" / "exp01.yaml"


def result(folder: str) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(Path(folder, "result.json").read_text())
    return plain


def test_train_writes_records_and_the_resolved_config(mpcs: Shell) -> None:
    printed = mpcs("train exp01 epochs.count=3 name=mine").out
    assert len(read_records("runs/mine/records.csv")) == 3
    assert "count: 3" in Path("runs/mine/config.yaml").read_text()
    assert "wrote runs/mine/records.csv" in printed


def test_train_takes_a_users_own_model_and_data(
    mpcs: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("my_parts.py").write_text(
        "import torch\n"
        "from mpcs_torch.trainer.data import DataSplits, Split\n\n"
        "def net(input_shape, num_classes, *, bias: bool = True):\n"
        "    return torch.nn.Linear(input_shape[0], num_classes, bias=bias)\n\n"
        "def blobs(root, *, size: int):\n"
        "    labels = torch.arange(size) % 2\n"
        "    inputs = torch.randn(size, 3) + labels.unsqueeze(1)\n"
        "    return DataSplits(Split(inputs, labels), Split(inputs, labels), ('left', 'right'))\n"
    )
    monkeypatch.setattr(sys, "path", list(sys.path))
    data = "train exp01 \"data={path: 'my_parts:blobs', size: SIZE}\""
    model = "\"model={path: 'my_parts:net', bias: false}\" score={} epochs.count=2"
    mpcs(f"{data.replace('SIZE', '30')} {model}")
    assert "bias: false" in Path("runs/exp01/config.yaml").read_text()
    mpcs.refusal(f"{data.replace('SIZE', 'many')} name=other")


@pytest.mark.slow
def test_reproduce_prints_the_papers_correlations_beside_ours_and_their_interval_over_seeds(
    mpcs: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpcs_torch.trainer.folder.run_in_processes", in_this_process)
    printed = mpcs("reproduce exp01 --seeds 2").out
    for part in (
        "## exp01: mlp on iris, 150 epochs",
        "ours (paper)",
        "(-0.909)",
        "## exp01 over seeds 0 to 1",
    ):
        assert part in printed
    mpcs("report runs/exp01")
    assert Path("runs/seeds/exp01-seed01/records.csv").is_file()
    mpcs.refusal("reproduce exp01")


RECORDS = """epoch,accuracy,f1_macro,mcc,mean_squared_error,cross_entropy,mpcs,mpcs_count,dangerous,test_accuracy
1,0.95,0.9,0.9,0.1,0.2,0.31,0.3,9,0.9
2,0.949,0.9,0.9,0.1,0.3,0.30,0.3,4,0.9
3,0.90,0.9,0.9,0.1,0.1,0.29,0.3,2,0.9
"""


def test_select_says_where_no_epoch_keeps_its_rule(mpcs: Shell) -> None:
    Path("records.csv").write_text(RECORDS)
    printed = mpcs("select . --within accuracy=0 --within mpcs=0").out
    assert printed.endswith("\nNo epoch is within the limits.\n")


def test_select_says_where_counts_do_not_tell_epochs_apart(mpcs: Shell) -> None:
    Path("records.csv").write_text("epoch,accuracy,dangerous\n1,0.9,5\n2,0.9,4\n3,0.9,29\n")
    printed = mpcs("select . --by dangerous").out
    for part in (
        "95 % intervals of columns read as counts of independent errors: dangerous.",
        "1 (1 epoch)",
        "exact test at 5 % for all pairs of epochs",
        "4 [1.09, 10.2]",
    ):
        assert part in printed
    plain = mpcs.json("select . --by dangerous")
    assert plain["as_good_as"] == [1]
    assert plain["intervals"]["dangerous"] == pytest.approx([1.0899, 10.2416], abs=1e-4)


VALUES = {1: (0.95, 0.3), 2: (0.94, 0.1), 3: (0.93, 0.2), 4: (0.92, 0.1)}


@pytest.mark.parametrize(
    ("options", "epoch"),
    [
        ("", 2),
        ("--by accuracy", 1),
        ("--within accuracy=0.005", 1),
        ("--within accuracy=0.025", 2),
    ],
)
def test_every_option_of_select_changes_the_pick(
    options: str, epoch: int, mpcs: Shell
) -> None:
    rows = [f"{number},{accuracy},{cost}" for number, (accuracy, cost) in VALUES.items()]
    Path("records.csv").write_text("\n".join(["epoch,accuracy,mpcs", *rows]) + "\n")
    printed = mpcs(f"select . {options}").out
    assert f"\nBest epoch: {epoch}\n" in printed
    [table] = printed_tables(printed)
    assert table.rows[0][:2] == ["the rule", str(epoch)]
    cells = {row[0]: row[2:4] for row in table.rows if row[1] == "1"}
    assert epoch == 1 or cells["accuracy"] == ["0.95 (+0.01)", "0.3 (+0.2)"]
    [best] = mpcs.json(f"select . {options}")["best"]
    assert best["epoch"] == epoch
    assert tuple(best["values"].values()) == VALUES[epoch]


TRAIN = "train exp01 'epochs={count: 6, samples: validation}' data.validation_fraction=0.3"


def test_train_ends_with_the_pick_its_reason_and_its_test_result(mpcs: Shell) -> None:
    printed = mpcs(f"{TRAIN} 'selector={{by: mpcs}}'").out
    picked = re.match(
        r"Picked epoch (\d): lowest mpcs \((.*)\) on validation data of 6 epochs\.\n",
        printed,
    )
    assert picked is not None
    records = read_records("runs/exp01/records.csv")
    assert int(picked[1]) == min(records, key=lambda record: record["mpcs"])["epoch"]
    [table] = printed_tables(printed)
    assert table.header == ["metric", "train", "validation", "test"]
    [validation] = [row[2] for row in table.rows if row[0] == "mpcs"]
    assert validation == picked[2]


@pytest.mark.parametrize("selector", ["", "'selector={by: mpcs}'"])
def test_a_diverged_run_says_so_and_fails(selector: str, mpcs: Shell) -> None:
    train = f"train exp01 training.learning_rate=1e30 'epochs={{count: 6}}' {selector}"
    error = mpcs(train, ExitStatus.DIVERGED).err
    why = "the model of epoch 6 gives NaN or infinite logits."
    assert f"mpcs: exp01 has diverged: {why}" in error
    assert result("runs/exp01")["diverged"] is True
    assert len(read_records("runs/exp01/records.csv")) == 6


def test_a_run_that_diverges_after_its_pick_says_so(mpcs: Shell) -> None:
    train = "train exp01 training.learning_rate=1e30 data.validation_fraction=0.3"
    epochs = "'epochs={count: 6, when: before}' 'selector={by: mpcs}'"
    assert re.match(
        r"Picked epoch 1: lowest mpcs \(.*\) on train data of 6 epochs, \d of which gave NaN\.\n",
        mpcs(f"{train} {epochs}").out,
    )
    assert result("runs/exp01")["diverged"] is False


def test_metrics_lists_the_register(mpcs: Shell) -> None:
    lines = mpcs("metrics").out.splitlines()
    assert len(lines) == 2 + len(ENTRIES) + len(OF_CLASS)


@pytest.mark.slow
def test_demo_compares_the_recommended_recipe_with_a_plain_run(
    mpcs: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpcs_torch.report.demonstration.SEEDS", range(2))
    printed = mpcs("demo").out
    assert re.search(r"\| cross entropy as usual +\| 100\.0 % ", printed)
    assert re.search(r"\| \+ referrals +\| [89]\d\.\d % ", printed)
    page = Page(Path("runs/demo/report.html")).plain_text
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
