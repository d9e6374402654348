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

from tests.cli.shell import Shell, run

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
FIT = "--out new.pt --overwrite"
COMMANDS: dict[str, tuple[Columns, str]] = {
    "score": (CLASSES, "score FILE --concern concern.yaml --json"),
    "explore": (
        CLASSES,
        "explore FILE --concern concern.yaml --out page.html --overwrite",
    ),
    "decide fit": (CLASSES, f"decide fit FILE --concern concern.yaml {FIT} --json"),
    "calibrate fit": (CLASSES, f"calibrate fit FILE --method temperature {FIT} --json"),
    "calibrate priors": (
        CLASSES,
        "calibrate priors FILE FILE --concern concern.yaml --json",
    ),
    "monitor": (
        DECIDED,
        "monitor rule.pt FILE --state FILE.state --limit 'dangerous<=0.9' --json",
    ),
    "detect": (TRIALS, "detect FILE --json"),
    "calibrate fit (trials)": (
        TRIALS,
        f"calibrate fit FILE --method logistic {FIT} --json",
    ),
}
"""The columns of a file, and a command that reads them."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that commands need beside the one that is read."""
    made = tmp_path_factory.mktemp("formats")
    (made / "concern.yaml").write_text(CONCERN)
    (made / "cohort.txt").write_text(COHORT)
    FORMATS["p.csv"](made / "classes.csv", CLASSES)
    FORMATS["p.csv"](made / "trials.csv", TRIALS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        for command in (
            "decide fit classes.csv --concern concern.yaml --out rule.pt",
            "calibrate fit classes.csv --method temperature --out cal.pt",
            "calibrate fit trials.csv --method pav --out pav.pt",
        ):
            assert run(*command.split()) == 0
    return made


@pytest.fixture
def here(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """Return the command line in the folder, which all tests share."""
    monkeypatch.chdir(folder)
    return Shell(capsys)


def numbers_of(result: Any, name: str = "") -> dict[str, float]:
    """Return the numbers in a result by their place; what is told of how files were read is left out."""
    if isinstance(result, (int, float)):
        return {name: result}
    if isinstance(result, list):
        result = dict(enumerate(result))
    numbers = dict[str, float]()
    for key, value in result.items() if isinstance(result, dict) else ():
        if key != "read":
            numbers |= numbers_of(value, f"{name}/{key}")
    return numbers


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kind", COMMANDS)
def test_a_command_reads_a_format_as_csv(name: str, kind: str, here: Shell) -> None:
    columns, command = COMMANDS[kind]
    results = []
    for file in ("p.csv", name):
        FORMATS[file](Path(file), columns)
        Path(f"{file}.state").unlink(missing_ok=True)
        printed = here(command.replace("FILE", file)).out
        plain = json.loads(printed) if "--json" in command else {}
        # Classes may have other names.
        results.append([*numbers_of(plain).values()])
    assert results[0] == pytest.approx(results[1], abs=1e-6)
    assert results[0] or kind == "explore"


def test_decisions_of_rows_without_labels_are_not_measured_against_themselves(
    here: Shell,
) -> None:
    FORMATS["p.csv"](Path("new.csv"), {name: CLASSES[name] for name in NAMES})
    score = "score decided.csv --concern concern.yaml"
    here("decide apply rule.pt new.csv --out decided.csv --overwrite")
    assert "has no column of labels" in here.refusal(score)
    here("decide apply rule.pt classes.csv --out decided.csv --overwrite")
    for option, scored in (
        ("", 'predicted labels "decision"'),
        ("--score-columns cat,dog,owl", "scores cat, dog, owl"),
    ):
        read = f'decided.csv: labels "label"; {scored}'
        assert here(f"{score} {option}").out.startswith(read)


def test_a_calibration_of_distances_is_applied_to_distances(here: Shell) -> None:
    distances = [1 - score for score in TRIALS["score"]]
    FORMATS["p.csv"](Path("distances.csv"), {**TRIALS, "score": distances})
    here(f"calibrate fit distances.csv --method logistic {FIT} --lower-is-target")
    here("calibrate apply new.pt distances.csv --out llr.csv --overwrite")
    assert here.json("detect llr.csv --llr")["metrics"]["auroc"] > 0.8


def test_groups_without_a_name_are_one_group(here: Shell) -> None:
    Path("groups.csv").write_text(
        "score,label,site\n0.9,1,\n0.1,0,\n0.7,1,(none)\n0.9,0,(none)\n"
    )
    [groups] = here.json("detect groups.csv --by site")["groups"]
    assert [*groups["groups"]] == ["(none)"]
