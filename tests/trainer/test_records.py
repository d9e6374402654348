"""Records as data: whole rows are read, and broken ones are named."""

from math import nan
from pathlib import Path

import pytest

from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.recorded_epochs import plain_config, recorded_directions
from mpcs_torch.trainer.result import first_best, read_records
from tests.refused import Refused
from tests.trainer.toy import toy_config, toy_data


@pytest.mark.parametrize(
    ("values", "pick"),
    [
        ({"accuracy": [0.5, 0.9]}, 2),
        ({"mpcs": [0.2, 0.8]}, 1),
        ({"mpcs": [0.5, 0.5, 0.5]}, 1),
        ({"mpcs": [nan, 3.0]}, 2),
        ({"mpcs": [nan]}, None),
    ],
)
def test_the_first_best_epoch_is_picked_and_never_nan(
    values: dict[str, list[float]], pick: int | None
) -> None:
    [(name, column)] = values.items()
    records = [{"epoch": place, name: value} for place, value in enumerate(column, start=1)]
    directions = {name: toy_config().directions[name]}
    assert first_best(records, directions) == ({} if pick is None else {name: pick})


def test_the_direction_of_a_metric_is_that_of_its_key_or_of_what_it_measures() -> None:
    own = {"name": "accuracy", "path": "theirs:Own"}
    metrics = [
        {"name": "mpcs", "k": 2},
        {"name": "top", "metric": "mcc", "k": 2},
        "dangerous",
    ]
    columns = ["mpcs", "accuracy", "top", "dangerous"]
    known = recorded_directions({"metrics": [*metrics, own]}, columns)
    assert known == {"mpcs": "min", "top": "max", "dangerous": "min"}
    own["direction"] = "min"
    assert recorded_directions({"metrics": [own]}, columns[:2]) == dict.fromkeys(
        columns[:2], "min"
    )


def write(folder: Path, data: bytes) -> Path:
    (folder / "records.csv").write_bytes(data)
    return folder / "records.csv"


def test_a_file_cut_at_any_byte_gives_its_whole_rows(tmp_path: Path) -> None:
    run_in_folder(toy_config(epochs={"count": 4}), toy_data(), tmp_path)
    data = (tmp_path / "records.csv").read_bytes()
    records = read_records(tmp_path / "records.csv")
    header = data.index(b"\n") + 1
    for size in range(len(data) + 1):
        path = write(tmp_path, data[:size])
        if size < header:
            with Refused("complete_line", f"{path}:"):
                read_records(path)
            continue
        assert read_records(path) == records[: data[:size].count(b"\n") - 1]


@pytest.mark.parametrize(
    ("data", "line", "code", "cause"),
    [
        (b"epoch,mpcs\n1,high\n2,0.1\n", " line 2:", "caused_by", None),
        (b"epoch,mpcs\n1,0.2\n2\n3,0.1\n", " line 3:", "caused_by", "columns_of_line"),
        (b"epoch,mpcs\n1,0.2,0.3\n", " line 2:", "caused_by", "columns_of_line"),
        (b"epoch,mpcs\n\n1,0.2\n", " line 2:", "caused_by", "columns_of_line"),
        (b"epoch,mpcs\nnan,0.2\n", " line 2:", "caused_by", "epoch_of_line"),
        (b"epoch,mpcs\n1.5,0.2\n", " line 2:", "caused_by", "epoch_of_line"),
        (b"epoch,mpcs\n1," + b"x" * 100_000 + b"\n", " line 2:", "caused_by", None),
        (b"epoch,mpcs\n1,\x1b[31m\n", " line 2:", "caused_by", None),
        (b"epoch,mpcs\n1,\xff\n", "", "text_file", None),
        (b"mpcs,epoch\n0.1,1\n", "", "columns_of_records", None),
        (b"epoch,mpcs,mpcs\n1,0.2,0.3\n", "", "columns_of_records", None),
        (b"", "", "complete_line", None),
    ],
    ids=range(12),
)
def test_broken_rows_are_named_briefly(
    tmp_path: Path, data: bytes, line: str, code: str, cause: str | None
) -> None:
    path = write(tmp_path, data)
    with Refused(code, f"{path}:{line}") as refused:
        read_records(path)
    assert getattr(refused.value.fields.get("cause"), "code", None) == cause
    assert len(str(refused.value)) < 250 + len(str(tmp_path))
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize(
    ("data", "metric"),
    [
        (b"epoch,mpcs\r\n1,0.2\r\n2,nan\r\n", "mpcs"),
        (b"turn,mpcs\n1,0.2\n", "mpcs"),
        (b"epoch,returned\n1,0.2\n", "returned"),
    ],
    ids=["lines of Windows", "turns", "turn in a name"],
)
def test_first_records_are_read(tmp_path: Path, data: bytes, metric: str) -> None:
    assert read_records(write(tmp_path, data))[0] == {"epoch": 1, metric: 0.2}


@pytest.mark.parametrize(
    "text",
    ["a: &x [1]\nb: *x\n", "[" * 10_000, "\x00", "metrics: !!python/name:os.system\n"],
)
def test_a_config_that_is_not_plain_yaml_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with Refused("caused_by", f"{tmp_path / 'config.yaml'}:"):
        plain_config(tmp_path)
