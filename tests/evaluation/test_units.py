"""Units of decision, such as patients: the rows of each become one row, by rules that are computed by hand here."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mpcs_torch import ConcernSpec, evaluate
from mpcs_torch.evaluation.cautions import independence
from mpcs_torch.evaluation.units import DecisionUnits, order_of_severity
from tests.cli.test_cli import run
from tests.refused import Refused

GENERATOR = torch.Generator().manual_seed(0)
NAMES = ["none", "mild", "severe"]
PATIENTS = torch.arange(240) // 4
OF_PATIENTS = torch.randint(3, (60,), generator=GENERATOR)
LABELS = OF_PATIENTS[PATIENTS]
PROBS, OTHER = (
    (
        torch.randn(240, 3, generator=GENERATOR).double()
        + skill * torch.eye(3).double()[LABELS]
    ).softmax(1)
    for skill in (1, 2)
)
SEEN = torch.minimum(LABELS, torch.randint(3, (240,), generator=GENERATOR))
"""The label of each image: no worse than the worst that the patient has."""
ORDER = torch.randperm(240, generator=GENERATOR)
CONCERN = ConcernSpec(NAMES, weights=[[0, 1, 1], [2, 0, 1], [20, 5, 0]], refer=0.5)
SITES = ["north" if patient % 3 else "south" for patient in PATIENTS]


def by_hand(probs: Any, combine: str) -> Any:
    """Combine the probabilities of each patient by loops in numpy."""
    rows = []
    for patient in range(60):
        of_patient = probs.numpy()[PATIENTS.numpy() == patient]
        if combine == "mean":
            rows.append(of_patient.mean(0))
            continue
        reached = [max(row[grade:].sum() for row in of_patient) for grade in range(3)]
        rows.append([reached[0] - reached[1], reached[1] - reached[2], reached[2]])
    return torch.tensor(np.array(rows))


def alike(one: Any, other: Any) -> None:
    """Compare all values, intervals and comparisons of two results."""
    for model, scores in one.models.items():
        assert dict(scores.values) == pytest.approx(other.models[model].values, nan_ok=True)
        assert [*scores.intervals] == [*other.models[model].intervals]
        for name, ends in scores.intervals.items():
            assert ends == pytest.approx(other.models[model].intervals[name]), name
    for row, expected in zip(one.comparisons, other.comparisons, strict=True):
        assert row.paired == pytest.approx(expected.paired, nan_ok=True)
    for groups, expected in zip(one.groups, other.groups, strict=True):
        for name, scores in groups.groups.items():
            assert dict(scores.values) == pytest.approx(
                expected.groups[name].values, nan_ok=True
            )


@pytest.mark.parametrize("combine", ["mean", "worst"])
def test_units_are_evaluated_as_rows_that_were_combined_by_hand(combine: str) -> None:
    target = LABELS if combine == "mean" else SEEN
    of_units = (
        OF_PATIENTS
        if combine == "mean"
        else torch.stack([SEEN[each == PATIENTS].max() for each in range(60)])
    )
    sizes = torch.arange(60) % 3 + 1
    found = evaluate(
        {"A": PROBS[ORDER], "B": OTHER[ORDER]},
        target[ORDER],
        unit=PATIENTS[ORDER],
        combine=combine,  # type: ignore[arg-type]
        concern=CONCERN,
        groups={"site": [SITES[row] for row in ORDER]},
        clusters=PATIENTS[ORDER] // 2,
        weights=sizes[PATIENTS][ORDER],
    )
    expected = evaluate(
        {"A": by_hand(PROBS, combine), "B": by_hand(OTHER, combine)},
        of_units,
        concern=CONCERN,
        groups={"site": SITES[::4]},
        clusters=torch.arange(60) // 2,
        weights=sizes,
    )
    alike(found, expected)
    assert found.first.rows == 60
    assert f"60 units of decision of 240 rows, combined by {combine}" in found.notes[0]
    assert ("(from the least severe: none, mild, severe)" in found.notes[0]) == (
        combine == "worst"
    )


def test_a_function_combines_probabilities_and_labels() -> None:
    def product(rows: torch.Tensor) -> torch.Tensor:
        return (rows + 1e-9).prod(0) / (rows + 1e-9).prod(0).sum()

    expected = torch.stack([product(PROBS[patient == PATIENTS]) for patient in range(60)])
    alike(
        evaluate(PROBS, LABELS, unit=PATIENTS, combine=product),
        evaluate(expected, OF_PATIENTS),
    )
    last = evaluate(PROBS, SEEN, unit=PATIENTS, combine=lambda rows: rows[-1])
    alike(last, evaluate(PROBS[3::4], SEEN[3::4]))


@pytest.mark.parametrize("combine", ["mean", "worst"])
def test_decisions_and_soft_labels_are_combined(combine: Any) -> None:
    decisions = LABELS.clone()
    decisions[:4] = -1
    decisions[4:] = SEEN[4:] if combine == "worst" else LABELS[4:]
    found = evaluate(
        decisions,
        SEEN if combine == "worst" else LABELS,
        unit=PATIENTS,
        combine=combine,
        class_names=3,
    )
    worst = [decisions[patient == PATIENTS].max() for patient in range(60)]
    target = torch.stack([SEEN[patient == PATIENTS].max() for patient in range(60)])
    expected = evaluate(
        torch.stack(worst), target if combine == "worst" else OF_PATIENTS, class_names=3
    )
    alike(found, expected)
    soft = (PROBS + OTHER) / 2
    alike(
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
    units = DecisionUnits.of(names, "worst", None, classes, 12)
    found = units.probabilities(probs)
    labels = torch.randint(classes, (12,), generator=generator)
    assert (found >= 0).all()
    torch.testing.assert_close(found.sum(1), torch.ones(len(found), dtype=torch.float64))
    reached = found.flip(1).cumsum(1)
    for place, name in enumerate(units.units.names):
        of_unit = names == int(name)
        torch.testing.assert_close(reached[place], probs[of_unit].flip(1).cumsum(1).amax(0))
        assert units.classes(labels, classes)[place] == labels[of_unit].max()
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


def written(
    path: Path, probs: Any, rows: Any, labels: Any = LABELS, **columns: Any
) -> Path:
    with path.open("w") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "patient", "site", *NAMES, *columns, "label"])
        for row in rows.tolist():
            own = [values[row] for values in columns.values()]
            shown = [
                row,
                f"p{PATIENTS[row]}",
                SITES[row],
                *probs[row].tolist(),
                *own,
                NAMES[labels[row]],
            ]
            lines.writerow(shown)
    return path


@pytest.fixture
def concern(tmp_path: Path) -> Path:
    path = tmp_path / "concern.yaml"
    path.write_text(
        f"classes: {NAMES}\nweights: [[0, 1, 1], [2, 0, 1], [20, 5, 0]]\nrefer: 0.5\n".replace(
            "'", ""
        )
    )
    return path


def test_without_clusters_units_are_said_to_be_independent() -> None:
    found = evaluate(PROBS, LABELS, unit=PATIENTS)
    assert independence("units") in found.notes
    assert independence("rows") not in found.notes
    assert independence("rows") in evaluate(PROBS, LABELS).notes


def test_units_of_detectors_are_not_called_trials(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{row % 7},{row // 4 % 2},p{row // 4}" for row in range(80)]
    (tmp_path / "s.csv").write_text("\n".join(["score,label,patient", *rows]) + "\n")
    assert run("detect", tmp_path / "s.csv", "--unit", "patient") == 0
    out = capsys.readouterr().out
    assert independence("units") in out
    assert independence("trials") not in out


def test_decide_fits_and_applies_rules_to_units(
    tmp_path: Path, concern: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, units = written(tmp_path / "a.csv", PROBS, ORDER), ("--unit", "patient")
    single = tmp_path / "patients.csv"
    with single.open("w") as file:
        lines = csv.writer(file)
        lines.writerow([*NAMES, "label"])
        lines.writerows(
            [*probs, NAMES[label]]
            for probs, label in zip(
                by_hand(PROBS, "mean").tolist(), OF_PATIENTS, strict=True
            )
        )
    reports = []
    for file, options in ((path, units), (single, ())):
        assert (
            run(
                "decide",
                "fit",
                file,
                "--concern",
                concern,
                *options,
                "--out",
                tmp_path / "r",
                "--overwrite",
            )
            == 0
        )
        told = capsys.readouterr().out
        assert (
            "60 units of decision (patient) of 240 rows, combined by mean" in told
        ) == bool(options)
        assert (
            run(
                "decide",
                "apply",
                tmp_path / "r",
                file,
                *options,
                "--out",
                tmp_path / f"{len(options)}.csv",
            )
            == 0
        )
        reports.append(capsys.readouterr().out)
        assert "60 decisions" in reports[-1]
    tables = [
        [line for line in report.splitlines() if line.startswith("|")] for report in reports
    ]
    assert tables[0] == tables[1]
    with (tmp_path / "2.csv").open() as file, (tmp_path / "0.csv").open() as other:
        of_rows = {int(row["id"]): row for row in csv.DictReader(file)}
        of_units = list(csv.DictReader(other))
    for row, decided in of_rows.items():
        unit = of_units[int(PATIENTS[row])]
        assert [decided[name] for name in ("decision", "reason", "best")] == [
            unit[name] for name in ("decision", "reason", "best")
        ]


def test_a_unit_with_a_row_without_label_has_none(tmp_path: Path, concern: Path) -> None:
    path = written(tmp_path / "a.csv", PROBS, ORDER)
    assert (
        run(
            "decide",
            "fit",
            path,
            "--concern",
            concern,
            "--unit",
            "patient",
            "--out",
            tmp_path / "r",
        )
        == 0
    )
    lines = path.read_text().splitlines()
    lines[1] = lines[1].rpartition(",")[0] + ","
    path.write_text("\n".join(lines) + "\n")
    assert (
        run(
            "decide",
            "apply",
            tmp_path / "r",
            path,
            "--unit",
            "patient",
            "--out",
            tmp_path / "d.csv",
        )
        == 0
    )
    assert len((tmp_path / "d.csv").read_text().splitlines()) == 241
