"""The options of how to read a file are the same in every verb that reads predictions, and each says how it read."""

from pathlib import Path

import pytest

from tests.cli.shell import Shell

HEADER = "id,red,green,truth,label,age"
ROWS = [
    f"img{row},{0.9 - 0.01 * row},{0.1 + 0.01 * row},{'red' if row % 3 else 'green'},red,{20 + row}"
    for row in range(60)
]
READ = 'p.csv: labels "truth"; scores red, green; not used: id, label, age'
DECISIONS = f"{HEADER},decision,risk,cost,reason,best"


@pytest.fixture(autouse=True)
def _files(mpcs: Shell) -> None:
    Path("p.csv").write_text("\n".join([HEADER, *ROWS]) + "\n")
    Path("concern.yaml").write_text("classes: [red, green]\n")


def test_calibrating_and_deciding_take_the_options_of_scoring(mpcs: Shell) -> None:
    for command in (
        "score p.csv --concern concern.yaml --no-intervals",
        "calibrate fit p.csv --method temperature --out c.pt",
        "calibrate apply c.pt p.csv --out out.csv",
        "decide fit p.csv --concern concern.yaml --out r.pt",
        "decide apply r.pt p.csv --out decisions.csv",
        "explore p.csv --concern concern.yaml --out page.html",
    ):
        if " apply " not in command:
            assert "--label-column truth" in mpcs.refusal(command), command
        printed = mpcs(f"{command} --label-column truth").out
        assert printed.startswith(READ), command
    for name, header in (("out.csv", HEADER), ("decisions.csv", DECISIONS)):
        assert Path(name).read_text().splitlines()[0] == header
