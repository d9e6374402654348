"""Files that a command writes are read by the next one with the same values: all formats, awkward names and cells."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.evaluation.decision_files import apply_rule, open_to_decide
from mpcs_torch.evaluation.decision_numbers import decision_numbers
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.tables import FileTable
from mpcs_torch.evaluation.files.words import WRITTEN
from mpcs_torch.learning import DecisionRule
from tests.cli.shell import Shell
from tests.cli.test_formats_of_commands import (
    CLASSES,
    FORMATS,
    LABELS,
    NAMES,
    PROBS,
    TRIALS,
    Columns,
    numbers_of,
    records,
    text,
)
from tests.cli.test_formats_of_commands import folder as folder
from tests.cli.test_formats_of_commands import here as here

ALL_FORMATS: dict[str, Callable[[Path, Columns], object]] = {
    **FORMATS,
    "bars.csv": lambda path, columns: path.write_text(text(columns, "|")),
    "blanks.txt": lambda path, columns: path.write_text(text(columns, "   ")),
    "tabs and commas.tsv": lambda path, columns: path.write_text(
        text(columns, "\t", comma=True)
    ),
    "blanks and commas.txt": lambda path, columns: path.write_text(
        text(columns, "  ", comma=True)
    ),
    "no header.csv": lambda path, columns: path.write_text(text(columns, header=False)),
    "no header.txt": lambda path, columns: path.write_text(
        text(columns, " ", header=False)
    ),
    "numbers.csv": lambda path, columns: path.write_text(
        text(numbered(columns), header=False)
    ),
}
"""All formats and dialects that are read: the function that writes columns to a file, by the name of the file."""
CHAINS: dict[str, tuple[Columns, str, list[str]]] = {
    "decide apply": (
        CLASSES,
        "decide apply rule.pt",
        [
            "score OUT --concern concern.yaml",
            "monitor rule.pt OUT --state log.state --limit 'dangerous<=0.9'",
        ],
    ),
    "calibrate apply": (
        CLASSES,
        "calibrate apply cal.pt",
        ["score OUT --classes cat,dog,owl"],
    ),
    "calibrate apply (trials)": (TRIALS, "calibrate apply pav.pt", ["detect OUT --llr"]),
}
"""The columns of a file, the command that writes another file, and the commands that read this file next."""


def numbered(columns: Columns) -> Columns:
    """Return columns whose labels are numbers of the classes, or 1 for targets."""
    numbers = {
        "target": 1,
        "nontarget": 0,
        **{name: number for number, name in enumerate(NAMES)},
    }
    return columns | {"label": [numbers[label] for label in columns["label"]]}


@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("name", ALL_FORMATS)
def test_a_written_file_is_read_by_the_next_command_as_that_of_csv(
    name: str, chain: str, here: Shell
) -> None:
    columns, command, next_commands = CHAINS[chain]
    suffixes = {".csv", ".parquet"}
    if Path(name).suffix in (".tsv", ".txt", ".npz", ".pt"):
        suffixes.add(Path(name).suffix)
    pairs = [("p.csv", "out.csv")]
    pairs += [(name, f"out{suffix}") for suffix in sorted(suffixes)]
    results = []
    for source, out in pairs:
        ALL_FORMATS[source](Path(source), columns)
        Path("log.state").unlink(missing_ok=True)
        here(f"{command} '{source}' --out {out} --overwrite")
        numbers = dict[str, float]()
        for reading in next_commands:
            plain = here.json(reading.replace("OUT", out))
            values = {
                part: plain.get(part) for part in ("metrics", "rows", "alarms", "counts")
            }
            numbers |= numbers_of(values, reading)
        results.append(numbers)
    assert results[0]
    for other in results[1:]:
        assert other == pytest.approx(results[0], abs=1e-6, nan_ok=True)


def test_decisions_that_look_like_missing_values_are_read(mpcs: Shell) -> None:
    Path("concern.yaml").write_text("classes: [none, crack]\nweights: [[0, 9], [1, 0]]\n")
    rows = "none,0.75,0.25\ncrack,0.25,0.75\nnone,0.625,0.375\n" * 9
    Path("dev.csv").write_text(f"label,none,crack\n{rows}")
    Path("new.csv").write_text("label,none,crack\n" + "none,0.4375,0.5625\n" * 9)
    mpcs("decide fit dev.csv --concern concern.yaml --out rule.pt")
    mpcs("decide apply rule.pt new.csv --out decided.csv")
    accuracy = mpcs.json("score decided.csv --concern concern.yaml")["metrics"]["accuracy"]
    assert accuracy == 1, "of decisions, not of the highest scores"


def test_labels_of_another_file_are_copied_once(here: Shell) -> None:
    FORMATS["p.csv"](Path("scores.csv"), {name: CLASSES[name] for name in NAMES})
    FORMATS["p.csv"](Path("labels.csv"), {"label": CLASSES["label"]})
    FORMATS["p.csv"](Path("both.csv"), CLASSES)
    here("calibrate apply cal.pt scores.csv --labels labels.csv --out calibrated.csv")
    here("decide apply rule.pt scores.csv --labels labels.csv --out labelled.csv")
    assert open_table(Path("calibrated.csv")).names == NAMES
    assert open_table(Path("labelled.csv")).names == [*NAMES, "label", *WRITTEN]
    apply = "decide apply rule.pt both.csv --labels labels.csv --out other.csv"
    twice = "has a column 'label', which is read as labels beside decisions"
    assert twice in here.refusal(apply)


@pytest.mark.parametrize(
    ("numbers", "label"),
    [
        ([0, 1, 1, 0], "column 1"),
        ([1, 3, 3, 1], "column 1"),
        ([1, 2, 1, 2], None),
        ([0, 1, 7, 7], None),
        ([3, 0, 1, 2], None),
    ],
)
def test_numbers_without_a_header_are_labels_only_if_they_clearly_count_classes(
    tmp_path: Path, numbers: list[int], label: str | None
) -> None:
    rows = zip(numbers, PROBS.tolist(), strict=False)
    (tmp_path / "p.csv").write_text(
        "".join(f"{number},{','.join(map(str, row))}\n" for number, row in rows)
    )
    assert (
        Predictions(tmp_path / "p.csv", class_names=NAMES, needs_labels=False).roles.label
        == label
    )


NAMES_OF_CLASSES = [
    "night owl",
    "a,b",
    "a;b",
    "a|b",
    'say "hi"',
    "it's",
    "# 1",
    "sep=;",
    "été",
    "雪",
    "NA",
    "none",
    "[x]",
]
ORDINARY = [
    *NAMES_OF_CLASSES,
    "",
    "a",
    "a\tb",
    "two\nlines",
    "a\r\nb",
    "\r",
    " x ",
    "0,5",
    "1.5",
    "007",
    "1e5",
]
ORDINARY += ["[1, 2]", '{"a": 1}', "=1+1", "True"]
NAMES_OF_COLUMNS = ["id", "file name", "1;2", "étage", 'the "id"']
AWKWARD = st.text(st.sampled_from("ab 0.,;|\t\"'#=[{\r\n\0\ufeffé雪"), max_size=6)
ROWS = 8


def write_input(folder: Path, form: str, columns: Columns) -> Path:
    """Write columns in a form: as JSON lines, parquet, or text with a delimiter and quotes."""
    if form == "jsonl":
        path = folder / "in.jsonl"
        path.write_text("\n".join(map(json.dumps, records(columns))))
    elif form == "parquet":
        path = folder / "in.parquet"
        parquet.write_table(pyarrow.table(columns), path)
    else:
        path = folder / "in.txt"
        with path.open("w", newline="") as file:
            rows = csv.writer(file, delimiter=form, quoting=csv.QUOTE_ALL)
            rows.writerows([[*columns], *zip(*columns.values(), strict=True)])
    return path


def texts_of(table: FileTable) -> dict[str, list[str]]:
    columns = table.read(table.names).columns
    return {
        name: ["" if each is None else str(each) for each in columns[name].to_pylist()]
        for name in table.names
    }


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.sampled_from(["jsonl", "parquet", *",;\t|"]),
    st.lists(st.sampled_from(ORDINARY) | AWKWARD, min_size=ROWS, max_size=ROWS),
    st.sampled_from(NAMES_OF_COLUMNS) | AWKWARD,
    st.lists(st.sampled_from(NAMES_OF_CLASSES), min_size=3, max_size=3, unique=True),
)
@example("jsonl", ["\0"] * ROWS, "id", NAMES)
@example("parquet", ORDINARY[:ROWS], " id ", NAMES)
def test_cells_are_read_back_and_only_awkward_ones_are_refused(
    tmp_path: Path, form: str, cells: list[str], column: str, names: list[str]
) -> None:
    columns: Columns = {
        column: cells,
        "label": [names[row % 3] for row in range(ROWS)],
        "note": cells[::-1],
    }
    columns |= {name: PROBS[:ROWS, place].tolist() for place, name in enumerate(names)}
    rule = DecisionRule(
        ConcernSpec(names, weights=[[0, 1, 5], [1, 0, 1], [3, 1, 0]], refer=0.4)
    )
    labels_of_fit = torch.tensor([NAMES.index(label) for label in LABELS[ROWS:]])
    rule.fit(torch.from_numpy(PROBS[ROWS:]).clamp(min=1e-6).log(), labels_of_fit)
    is_ordinary = column in NAMES_OF_COLUMNS and {*cells} <= {*ORDINARY}
    rows, refusal = [], ""
    try:
        predictions = open_to_decide(
            rule, write_input(tmp_path, form, columns), ReadOptions()
        )
        before = texts_of(predictions.table)
        for name in ("out.parquet", "out.csv"):
            (tmp_path / name).unlink(missing_ok=True)
            apply_rule(rule, predictions, tmp_path / name, lambda _: None)
            after = texts_of(open_table(tmp_path / name))
            assert after | before == after
            written = Predictions(
                tmp_path / name, class_names=names, decisions=decision_numbers(names)
            ).rows()
            rows.append((written.scores.tolist(), written.target.tolist()))
    except PredictionsError as error:
        refusal = str(error)
    if not refusal:
        assert rows[0] == rows[1]
        return
    assert not is_ordinary, refusal
    # The input may be refused for many reasons, the output only because of cells that text cannot hold.
    if "out." in refusal:
        assert "write .parquet instead" in refusal
        assert not (tmp_path / "out.csv").exists()
