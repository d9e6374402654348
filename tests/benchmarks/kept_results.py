"""Keep what `mpcs benchmark` has found: its values of each task, and the page and figures of all tasks, in docs/.

``python -m tests.benchmarks.kept_results [runs/benchmark]`` copies the values of that folder first.
"""

import sys
from pathlib import Path
from shutil import copy

from mpcs_torch.benchmark.results import save_results, saved_results
from mpcs_torch.benchmark.runs import file_name

KEPT = Path(__file__).parents[2] / "docs" / "results" / "benchmark"


def main() -> None:
    """Copy new values, and write the page."""
    for folder in map(Path, sys.argv[1:]):
        for result in saved_results(folder):
            copy(folder / f"{file_name(result['task'])}.json", KEPT)
            print(f"kept {result['task']}")
    save_results([], KEPT)


if __name__ == "__main__":
    main()
