"""Every format is read by every command that reads files: a table of which each cell is run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
import torch
from pyarrow import parquet

from tests.cli.shell import run

ROWS, NAMES = 60, ["cat", "dog", "owl"]
GENERATOR = np.random.default_rng(0)
PROBS = GENERATOR.dirichlet(np.full(3, 0.7), ROWS).round(3)
PROBS[:, 0] = (1 - PROBS[:, 1:].sum(axis=1)).round(3)
LABELS = [NAMES[GENERATOR.choice(3, p=row / row.sum())] for row in PROBS]
CLASSES: dict[str, list[Any]] = {
    "label": LABELS,
    **{name: PROBS[:, c].tolist() for c, name in enumerate(NAMES)},
}
DECIDED: dict[str, list[Any]] = {
    "label": LABELS,
    "decision": [NAMES[label] for label in PROBS.argmax(axis=1)],
}
TRIALS: dict[str, list[Any]] = {
    "enrollment": [f"m{row % 7}" for row in range(ROWS)],
    "test": [f"t{row}" for row in range(ROWS)],
    "score": PROBS[:, 0].tolist(),
    "label": ["target" if label == "cat" else "nontarget" for label in LABELS],
}
COHORT = "".join(
    f"{name} c{c} {GENERATOR.normal():.3f}\n"
    for name in {*TRIALS["enrollment"]}
    for c in range(5)
)
CONCERN = (
    "classes: [cat, dog, owl]\nweights: [[0, 1, 5], [1, 0, 1], [3, 1, 0]]\nrefer: 0.4\n"
)
Columns = dict[str, list[Any]]


def text(
    columns: Columns, delimiter: str = ",", *, header: bool = True, comma: bool = False
) -> str:
    rows = [[*columns]] if header else []
    cells = [[*map(str, row)] for row in [*rows, *zip(*columns.values(), strict=True)]]
    return "".join(
        delimiter.join(cell.replace(".", ",") if comma else cell for cell in row) + "\n"
        for row in cells
    )


def records(columns: Columns) -> list[dict[str, Any]]:
    return [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ]


def pack(path: Path, columns: Columns) -> None:
    with pyarrow.output_stream(str(path), compression="gzip") as stream:
        stream.write(text(columns).encode())


def as_xlsx(path: Path, columns: Columns) -> None:
    book = pytest.importorskip("openpyxl", reason="xlsx needs openpyxl").Workbook()
    for row in [[*columns], *zip(*columns.values(), strict=True)]:
        book.active.append(row)
    book.save(path)


def arrays(columns: Columns) -> dict[str, "np.ndarray[Any, np.dtype[Any]]"]:
    if "label" in columns and "cat" not in columns:
        return {name: np.array(values) for name, values in columns.items()}
    return {"preds": PROBS, "target": np.array([NAMES.index(label) for label in LABELS])}


def as_tensors(path: Path, columns: Columns) -> None:
    tensors = {"index": torch.arange(ROWS)}  # a file of texts alone is not one of tensors
    texts = dict[str, list[str]]()
    for name, values in arrays(columns).items():
        if values.dtype.kind == "U":
            texts[name] = values.tolist()
        else:
            tensors[name] = torch.from_numpy(values)
    torch.save(texts | tensors, path)


FORMATS: dict[str, Callable[[Path, Columns], object]] = {
    "p.csv": lambda path, columns: path.write_text(text(columns)),
    "p.tsv": lambda path, columns: path.write_text(text(columns, "\t")),
    "commas.csv": lambda path, columns: path.write_text(text(columns, ";", comma=True)),
    "utf16.csv": lambda path, columns: path.write_bytes(text(columns).encode("utf-16")),
    "p.csv.gz": pack,
    "p.jsonl": lambda path, columns: path.write_text(
        "\n".join(map(json.dumps, records(columns)))
    ),
    "p.json": lambda path, columns: path.write_text(json.dumps(records(columns))),
    "p.parquet": lambda path, columns: parquet.write_table(pyarrow.table(columns), path),
    "p.xlsx": as_xlsx,
    "p.npz": lambda path, columns: np.savez(path, **arrays(columns)),  # type: ignore[arg-type]
    "p.pt": as_tensors,
}
OF_CLASSES = {
    "score": "score FILE --concern concern.yaml --json",
    "explore": "explore FILE --concern concern.yaml --out page.html --overwrite",
    "decide fit": "decide fit FILE --concern concern.yaml --out new.pt --overwrite --json",
    "calibrate fit": "calibrate fit FILE --method temperature --out new.pt --overwrite --json",
    "calibrate priors": "calibrate priors FILE FILE --concern concern.yaml --json",
}
OF_DECISIONS = {
    "monitor": "monitor rule.pt FILE --state NAME.state --limit dangerous<=0.9 --json"
}
OF_TRIALS = {
    "detect": "detect FILE --json",
    "calibrate fit": "calibrate fit FILE --method logistic --out new.pt --overwrite --json",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that commands need beside the one that is read."""
    made = tmp_path_factory.mktemp("formats")
    (made / "concern.yaml").write_text(CONCERN)
    (made / "cohort.txt").write_text(COHORT)
    FORMATS["p.csv"](made / "of classes.csv", CLASSES)
    FORMATS["p.csv"](made / "of trials.csv", TRIALS)
    for command in (
        [
            "decide",
            "fit",
            "of classes.csv",
            "--concern",
            "concern.yaml",
            "--out",
            "rule.pt",
        ],
        [
            "calibrate",
            "fit",
            "of classes.csv",
            "--method",
            "temperature",
            "--out",
            "cal.pt",
        ],
        ["calibrate", "fit", "of trials.csv", "--method", "pav", "--out", "pav.pt"],
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(made)
            assert run(*command) == 0
    return made


def told(output: str) -> Any:
    """Return what JSON says, without how the file was read; of text, nothing."""
    start = output.find("{")
    return (
        {k: v for k, v in json.loads(output[start:]).items() if k != "read"}
        if start >= 0
        else {}
    )


def equal(one: Any, other: Any) -> bool:
    """Return whether two results are the same numbers, whatever classes are called."""
    if isinstance(one, dict):
        return all(equal(*pair) for pair in zip(one.values(), other.values(), strict=True))
    if isinstance(one, list):
        return all(equal(*pair) for pair in zip(one, other, strict=True))
    are_numbers = isinstance(one, (int, float))
    return one == pytest.approx(other, abs=1e-6) if are_numbers else True


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("columns", "command"),
    [
        (columns, command)
        for columns, commands in (
            (CLASSES, OF_CLASSES),
            (DECIDED, OF_DECISIONS),
            (TRIALS, OF_TRIALS),
        )
        for command in commands.values()
    ],
    ids=[*OF_CLASSES, *OF_DECISIONS, *(f"{command} (trials)" for command in OF_TRIALS)],
)
def test_a_command_reads_a_format_as_csv(
    name: str,
    columns: Columns,
    command: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    results = []
    for each in dict.fromkeys(("p.csv", name)):
        FORMATS[each](folder / each, columns)
        (folder / f"{each}.state").unlink(missing_ok=True)
        words = [
            word.replace("FILE", each).replace("NAME", each) for word in command.split()
        ]
        capsys.readouterr()
        assert run(*words) == 0, capsys.readouterr().err
        results.append(told(capsys.readouterr().out))
    assert equal(results[0], results[-1])


def test_decisions_of_rows_without_labels_are_not_measured_against_themselves(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    FORMATS["p.csv"](folder / "new.csv", {name: CLASSES[name] for name in NAMES})
    assert (
        run("decide", "apply", "rule.pt", "new.csv", "--out", "decided.csv", "--overwrite")
        == 0
    )
    assert run("score", "decided.csv", "--concern", "concern.yaml") == 2
    assert "has no column of labels" in capsys.readouterr().err
    assert (
        run(
            "decide",
            "apply",
            "rule.pt",
            "of classes.csv",
            "--out",
            "decided.csv",
            "--overwrite",
        )
        == 0
    )
    for options, line in (
        ((), 'decided.csv: labels "label"; predicted labels "decision"'),
        (
            ("--score-columns", "cat,dog,owl"),
            'decided.csv: labels "label"; scores cat, dog, owl',
        ),
    ):
        capsys.readouterr()
        assert run("score", "decided.csv", "--concern", "concern.yaml", *options) == 0
        assert capsys.readouterr().out.startswith(line)


def test_a_calibration_of_distances_is_applied_to_distances(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    FORMATS["p.csv"](
        folder / "distances.csv",
        {**TRIALS, "score": [1 - score for score in TRIALS["score"]]},
    )
    fit = (
        "calibrate",
        "fit",
        "distances.csv",
        "--method",
        "logistic",
        "--out",
        "distances.pt",
        "--overwrite",
    )
    assert run(*fit, "--lower-is-target") == 0
    assert (
        run(
            "calibrate",
            "apply",
            "distances.pt",
            "distances.csv",
            "--out",
            "llr.csv",
            "--overwrite",
        )
        == 0
    )
    capsys.readouterr()
    assert run("detect", "llr.csv", "--llr", "--json") == 0
    assert told(capsys.readouterr().out)["metrics"]["auroc"] > 0.8


def test_groups_without_a_name_are_one_group(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    (folder / "groups.csv").write_text(
        "score,label,site\n0.9,1,\n0.1,0,\n0.7,1,(none)\n0.9,0,(none)\n"
    )
    assert run("detect", "groups.csv", "--by", "site", "--json") == 0
    groups = told(capsys.readouterr().out)["groups"]
    assert [[*each["groups"]] for each in groups] == [["(none)"]]
