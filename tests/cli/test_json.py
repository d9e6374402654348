"""Every verb that prints results prints them as JSON on request, and nothing else on standard output."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from mpcs_torch.cli.app import VERBS
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.learning import DecisionRule, Limit
from mpcs_torch.report.demonstration import WAYS, Demonstration, SeedResult
from tests.cli.shell import Shell
from tests.cli.test_cli import RECORDS

WRITE_FILES_ALONE = {"explore", "report"}
PREDICTIONS = (
    "target,red,green\n" + "red,0.8,0.2\ngreen,0.4,0.6\nred,0.3,0.7\ngreen,0.1,0.9\n" * 30
)


@pytest.fixture(autouse=True)
def _files(mpcs: Shell) -> None:
    """Write the inputs of all commands."""
    Path("p.csv").write_text(PREDICTIONS)
    Path("s.csv").write_text("score,label\n0.9,1\n0.4,1\n0.5,0\n0.1,0\n")
    Path("c.yaml").write_text("classes: [red, green]\nrefer: 0.5\n")
    Path("records.csv").write_text(RECORDS)
    concern = ConcernSpec(["red", "green"])
    DecisionRule(concern, Limit(0.5), calibration=None).save("fitted.pt")
    Path("log.csv").write_text("decision,target\nred,red\nrefer,\n")


def strict_json(mpcs: Shell, command: str) -> Any:
    """Return what a command prints as JSON without NaN and infinity, which JSON does not have."""
    out = mpcs(f"{command} --json").out
    return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


COMMANDS: dict[str, Callable[[Any], bool]] = {
    "train exp01 epochs.count=2": lambda found: (
        found["epoch"] == 2 and "test" in found["values"]
    ),
    "train --list": lambda found: (
        {"name": "exp06", "data": "ucr Chinatown", "model": "rnn"} in found
    ),
    "score p.csv": lambda found: found["metrics"]["accuracy"] == 0.75,
    "detect s.csv --no-intervals": lambda found: found["targets"] == 2,
    "calibrate fit p.csv --method temperature --out cal.pt": lambda found: (
        found["parameters"] != {}
    ),
    "calibrate fit p.csv --method vector --out vector.pt": lambda found: (
        found["parameters"] == {}
    ),
    "calibrate priors p.csv p.csv": lambda found: (
        found["classes"] == ["red", "green"] and found["is_label_shift"]
    ),
    "decide fit p.csv --concern c.yaml --out rule.pt": lambda found: (
        found["guaranteed"] == []
    ),
    "decide fit p.csv --concern c.yaml --out limited.pt --limit dangerous<=0.5": lambda found: (
        found["guaranteed"] == ["dangerous <= 0.5 of samples with confidence 0.95"]
    ),
    "monitor fitted.pt log.csv --state state.json": lambda found: (
        (found["rows"], found["labelled"]) == (2, 1)
    ),
    "select .": lambda found: found["best"][0]["epoch"] == 3,
    "data list": lambda found: {"name", "state"} == set(found[0]),
    "concern check c.yaml": lambda found: (
        found["refer"] == 0.5 and len(found["warnings"]) == 1
    ),
    "concern suggest a,b --from order --out drafted.yaml": lambda found: (
        found["classes"] == ["a", "b"]
    ),
    "metrics": lambda found: found[0]["name"] == "accuracy",
    "demo": lambda found: found["by_seed"][WAYS[0]][0]["errors"] == 4,
    "reproduce exp01": lambda found: len(found["exp01"]["spearman"]) == 5,
}


@pytest.fixture
def _short_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace what takes long."""
    from mpcs_torch.paper import experiments
    from mpcs_torch.paper.experiments import experiment_config

    def short(name: str) -> object:
        return experiment_config(name, ["epochs.count=3"])

    labels = torch.tensor([0, 1, 1, 0])
    told = Demonstration(
        ConcernSpec(2), [SeedResult(labels, dict.fromkeys(WAYS, 1 - labels))]
    )
    monkeypatch.setattr(
        "mpcs_torch.report.demonstration.demonstrate", lambda *_, **__: told
    )
    monkeypatch.setattr("mpcs_torch.report.demo.write_demo_report", lambda *_: None)
    monkeypatch.setattr(experiments, "experiment_config", short)


@pytest.mark.usefixtures("_short_work")
@pytest.mark.parametrize("command", COMMANDS)
def test_standard_output_holds_json_alone(command: str, mpcs: Shell) -> None:
    assert COMMANDS[command](strict_json(mpcs, command))


def test_every_verb_is_tried() -> None:
    assert {command.split()[0] for command in COMMANDS} | WRITE_FILES_ALONE == set(VERBS)


def test_decisions_are_counted_and_measured_only_with_labels(mpcs: Shell) -> None:
    mpcs("decide fit p.csv --concern c.yaml --out rule.pt")
    labelled = strict_json(mpcs, "decide apply rule.pt p.csv --out d.csv")
    assert labelled["metrics"]["dangerous_rate"] <= 1
    Path("unlabelled.csv").write_text("red,green\n0.9,0.1\n")
    plain = strict_json(mpcs, "decide apply rule.pt unlabelled.csv --out e.csv")
    dangerous, cost = plain.pop("estimated")
    assert 0 <= dangerous["value"] <= cost["value"]
    assert dangerous["difference"] is cost["low"] is None
    assert plain == {
        "read": ["unlabelled.csv: no labels; scores red, green"],
        "decisions": 1,
        "referrals": 0,
    }
