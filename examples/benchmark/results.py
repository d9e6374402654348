"""The page and figure of the benchmark, from the values of tasks: ``python -m examples.benchmark.results [FOLDER]``.

With a FOLDER, the values of the tasks in it are copied to docs/ first; ``python -m examples.benchmark`` writes them to
``runs/benchmark``.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from examples.benchmark.judging import Judged
from examples.benchmark.tables import Result, page_of, steps_figure
from examples.benchmark.tasks import TASKS
from examples.benchmark.training import file_name

KEPT = Path(__file__).parents[2] / "docs" / "results" / "benchmark"
UNIT = 100_000
"""Shares are kept as whole numbers of this part of 1."""


def save_values(results: Sequence[Result], folder: Path) -> None:
    """Write the values of each task to a folder, which `saved_results` reads."""
    for result in results:
        path = folder / f"{file_name(result['task'])}.json"
        path.write_text(
            json.dumps(with_each(result, packed), separators=(",", ":")) + "\n",
            encoding="utf-8",
        )


def saved_results(folder: Path) -> Iterator[Result]:
    """Read the results of each task that is done."""
    for name in TASKS:
        file = folder / f"{file_name(name)}.json"
        if file.is_file():
            yield with_each(json.loads(file.read_text(encoding="utf-8")), unpacked)


def with_each(result: Result, change: Any) -> dict[str, Any]:
    """Return a result in which the values of each way to decide are changed."""
    judged = {}
    for key, of_key in result["judged"].items():
        decisions = {
            decision: change(values) for decision, values in of_key["decisions"].items()
        }
        judged[key] = {
            **of_key,
            "seconds": round(of_key["seconds"], 3),
            "decisions": decisions,
        }
    return {**result, "judged": judged}


def packed(values: Sequence[Sequence[float]]) -> dict[str, list[int]]:
    """Return `Judged` values of seeds as whole numbers, by column; coverage is left out if all are decided."""
    columns = {
        name: [round(UNIT * each[place]) for each in values]
        for place, name in enumerate(Judged._fields)
    }
    if set(columns["coverage"]) == {UNIT}:
        del columns["coverage"]
    return columns


def unpacked(columns: Mapping[str, Sequence[int]]) -> list[list[float]]:
    """Return the values of seeds of `packed`."""
    full = {"coverage": [UNIT] * len(columns["dangerous"]), **columns}
    return [
        [full[name][seed] / UNIT for name in Judged._fields]
        for seed in range(len(full["accuracy"]))
    ]


def main() -> None:
    """Copy new values, and write the page and its figure."""
    for folder in map(Path, sys.argv[1:]):
        save_values(list(saved_results(folder)), KEPT)
    kept = list(saved_results(KEPT))
    (KEPT / "results.md").write_text(page_of(kept), encoding="utf-8")
    steps_figure(kept).savefig(KEPT / "steps.png", dpi=110)


if __name__ == "__main__":
    main()
