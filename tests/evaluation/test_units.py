"""Units of decision, such as patients: the rows of each become one row, by rules that are computed by hand here."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mpcs_torch import ConcernSpec, evaluate, evaluate_detectors
from mpcs_torch.concern import save_concern
from mpcs_torch.evaluation.cautions import independence
from mpcs_torch.evaluation.units import DecisionUnits, order_of_severity
from mpcs_torch.learning import DecisionRule
from tests.cli.shell import run
from tests.evaluation.alike import assert_same_numbers
from tests.refused import Refused

GENERATOR = torch.Generator().manual_seed(0)
NAMES = ["none", "mild", "severe"]
PATIENTS = torch.arange(240) // 4
OF_PATIENTS = torch.randint(3, (60,), generator=GENERATOR)
LABELS = OF_PATIENTS[PATIENTS]
PROBS, OTHER = [
    (
        torch.randn(240, 3, generator=GENERATOR).double()
        + skill * torch.eye(3).double()[LABELS]
    ).softmax(1)
    for skill in (1, 2)
]
SEEN = torch.minimum(LABELS, torch.randint(3, (240,), generator=GENERATOR))
"""The label of each image: no worse than the worst that the patient has."""
ORDER = torch.randperm(240, generator=GENERATOR)
CONCERN = ConcernSpec(NAMES, weights=[[0, 1, 1], [2, 0, 1], [20, 5, 0]], refer=0.5)
SITES = np.where(PATIENTS % 3 > 0, "north", "south")


def by_hand(probs: Any, combine: str) -> Any:
    """Combine the probabilities of each patient by loops in numpy."""
    of_patients = probs.numpy().reshape(60, 4, 3)
    if combine == "mean":
        return torch.from_numpy(of_patients.mean(1))
    reached = [
        [max(row[grade:].sum() for row in rows) for grade in range(4)]
        for rows in of_patients
    ]
    return torch.from_numpy(-np.diff(reached))


@pytest.mark.parametrize("combine", ["mean", "worst"])
def test_units_are_evaluated_as_rows_that_were_combined_by_hand(combine: Any) -> None:
    target = LABELS if combine == "mean" else SEEN
    sizes = torch.arange(60) % 3 + 1
    found = evaluate(
        {"A": PROBS[ORDER], "B": OTHER[ORDER]},
        target[ORDER],
        unit=PATIENTS[ORDER],
        combine=combine,
        concern=CONCERN,
        groups={"site": SITES[ORDER]},
        clusters=PATIENTS[ORDER] // 2,
        weights=sizes[PATIENTS][ORDER],
    )
    expected = evaluate(
        {"A": by_hand(PROBS, combine), "B": by_hand(OTHER, combine)},
        target.view(60, 4).amax(1),
        concern=CONCERN,
        groups={"site": SITES[::4]},
        clusters=torch.arange(60) // 2,
        weights=sizes,
    )
    assert_same_numbers(found, expected)
    assert found.first.rows == 60
    [note] = found.notes[:1]
    assert f"60 units of decision of 240 rows, combined by {combine}" in note
    is_ordered = "(from the least severe: none, mild, severe)" in note
    assert is_ordered == (combine == "worst")


@pytest.mark.parametrize(
    ("classes", "order"), [(10, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"), (11, "0, 1, 2, 8, 9, 10")]
)
def test_the_order_of_many_classes_is_shortened(classes: int, order: str) -> None:
    target = torch.arange(4 * classes) % classes
    note = evaluate(
        torch.eye(classes)[target],
        target,
        unit=torch.arange(4 * classes) // 2,
        combine="worst",
    ).notes[0]
    assert f"(from the least severe: {order})" in note


def test_a_function_combines_probabilities_and_labels() -> None:
    last = evaluate(PROBS, SEEN, unit=PATIENTS, combine=lambda rows: rows[-1])
    assert_same_numbers(last, evaluate(PROBS[3::4], SEEN[3::4]))


@pytest.mark.parametrize("combine", ["mean", "worst"])
def test_decisions_and_soft_labels_are_combined(combine: Any) -> None:
    labels = SEEN if combine == "worst" else LABELS
    decisions = labels.clone()
    decisions[:4] = -1
    found = evaluate(decisions, labels, unit=PATIENTS, combine=combine, class_names=3)
    worst = [each.view(60, 4).amax(1) for each in (decisions, labels)]
    assert_same_numbers(found, evaluate(*worst, class_names=3))
    soft = (PROBS + OTHER) / 2
    assert_same_numbers(
        evaluate(PROBS, soft, unit=PATIENTS, combine=combine),
        evaluate(by_hand(PROBS, combine), by_hand(soft, combine)),
    )


@given(st.integers(2, 5), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_the_worst_is_between_the_worst_row_and_certainty(classes: int, seed: int) -> None:
    """For each grade, the chance of it or worse is that of one of the rows; certain rows give the worst class."""
    generator = torch.Generator().manual_seed(seed)
    probs = torch.rand(12, classes, generator=generator).double().pow(4)
    probs /= probs.sum(1, keepdim=True)
    names = torch.randint(4, (12,), generator=generator)
    labels = torch.randint(classes, (12,), generator=generator)
    units = DecisionUnits.of(names, "worst", None, classes, 12)
    found = units.probabilities(probs)
    assert (found >= 0).all()
    for row, label, name in zip(
        found, units.classes(labels, classes), units.units.names, strict=True
    ):
        of_unit = names == int(name)
        expected = probs[of_unit].flip(1).cumsum(1).amax(0)
        torch.testing.assert_close(row.flip(0).cumsum(0), expected)
        assert label == labels[of_unit].max()
    alone = DecisionUnits.of(range(12), "worst", None, classes, 12)
    torch.testing.assert_close(alone.probabilities(probs), probs)


def test_costs_say_which_class_is_worse() -> None:
    assert order_of_severity(None, 3).tolist() == [0, 1, 2]
    assert order_of_severity(CONCERN, 3).tolist() == [0, 1, 2]
    upside_down = ConcernSpec(NAMES[::-1], weights=[[0, 5, 20], [1, 0, 2], [1, 1, 0]])
    assert order_of_severity(upside_down, 3).tolist() == [2, 1, 0]
    circle = ConcernSpec(NAMES, weights=[[0, 1, 9], [1, 0, 1], [1, 1, 0]])
    with Refused("order_of_severity", "combine='worst'"):
        order_of_severity(circle, 3)


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"target": SEEN}, Refused("same_in_unit", "labels", unit="'0'")),
        (
            {"groups": {"eye": torch.arange(240) % 2}},
            Refused("same_in_unit", "groups['eye']"),
        ),
        ({"clusters": torch.arange(240)}, Refused("same_in_unit", "clusters", unit="'0'")),
        ({"weights": torch.arange(240)}, Refused("same_in_unit", "weights")),
        ({"frequencies": torch.arange(240) + 1}, Refused("same_in_unit", "frequencies")),
        ({"unit": [1, 2]}, Refused("name_for_each", "unit", 2, rows=240)),
        ({"combine": "best"}, Refused("combination", "combine", "best")),
        ({"combine": lambda rows: rows.sum(0)}, Refused("combined", "combine", number=3)),
        (
            {"combine": lambda rows: rows},
            Refused("combined", "combine", number=3, unit="0"),
        ),
        (
            {"combine": lambda rows: rows.mean(0), "target": torch.arange(240) % 2},
            Refused("same_in_unit", "labels"),
        ),
        (
            {"preds": torch.arange(240) % 2 - 1, "combine": "worst", "class_names": 3},
            Refused("same_decisions_in_unit", "decisions"),
        ),
    ],
)
def test_units_that_differ_within_are_refused_by_name(
    arguments: dict[str, Any], refusal: Refused
) -> None:
    with refusal:
        evaluate(**{"preds": PROBS, "target": LABELS, "unit": PATIENTS, **arguments})


def test_without_clusters_units_are_said_to_be_independent() -> None:
    units = evaluate(PROBS, LABELS, unit=PATIENTS)
    detected = evaluate_detectors(
        PROBS[:, 2], LABELS == 2, unit=PATIENTS, groups={"site": SITES.tolist()}
    )
    for result, others in ((units, "rows"), (detected, "trials")):
        assert independence("units") in result.all_notes()
        assert independence(others) not in result.all_notes()
    assert independence("rows") in evaluate(PROBS, LABELS).notes


def test_decide_fits_and_applies_rules_to_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    save_concern(CONCERN, Path("concern.yaml"))
    rows = pd.DataFrame(PROBS.numpy(), columns=NAMES)
    rows = rows.assign(label=np.array(NAMES)[LABELS], patient=PATIENTS.numpy())
    rows.iloc[ORDER].to_csv("rows.csv", index=False)
    single = pd.DataFrame(by_hand(PROBS, "mean").numpy(), columns=NAMES)
    single.assign(label=np.array(NAMES)[OF_PATIENTS]).to_csv("units.csv", index=False)
    decided, tables = [], []
    for file, options in (("rows.csv", ["--unit", "patient"]), ("units.csv", [])):
        fit = ["decide", "fit", file, "--concern", "concern.yaml", *options]
        assert run(*fit, "--out", "rule.pt", "--overwrite") == 0
        combined = "60 units of decision (patient) of 240 rows, combined by mean"
        assert (combined in capsys.readouterr().out) == bool(options)
        assert run("decide", "apply", "rule.pt", file, *options, "--out", "out.csv") == 0
        printed = capsys.readouterr().out
        assert "60 decisions" in printed
        tables.append([line for line in printed.splitlines() if line.startswith("|")])
        read = pd.read_csv("out.csv", keep_default_na=False)
        decided.append(read[["decision", "reason", "best"]])
        Path("out.csv").unlink()
    assert tables[0] == tables[1]
    expected = decided[1].iloc[PATIENTS[ORDER]].reset_index(drop=True)
    pd.testing.assert_frame_equal(decided[0], expected)


def test_a_unit_with_a_row_without_label_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    DecisionRule(CONCERN, calibration=None).save(tmp_path / "rule.pt")
    rows = pd.DataFrame(PROBS.numpy(), columns=NAMES)
    labels = [None, *np.array(NAMES)[LABELS[1:]]]
    rows.assign(label=labels, patient=PATIENTS.numpy()).to_csv(
        tmp_path / "rows.csv", index=False
    )
    files = [tmp_path / "rule.pt", tmp_path / "rows.csv"]
    words = ["--unit", "patient", "--out", tmp_path / "d.csv"]
    assert run("decide", "apply", *files, *words) == 0
    assert len(pd.read_csv(tmp_path / "d.csv")) == 240
    assert "59 labels" in capsys.readouterr().out
