"""Keep new results of the benchmark: the values of each task here, and the page and figures of all tasks in docs/.

``python -m examples.benchmark.kept_results [runs/benchmark]`` copies the values of that folder first.
"""

import sys
from pathlib import Path

from examples.benchmark.results import save_values, saved_results, write_page

KEPT = Path(__file__).parent / "kept"
PAGE = Path(__file__).parents[2] / "docs" / "results" / "benchmark"


def main() -> None:
    """Copy new values, and write the page."""
    for folder in map(Path, sys.argv[1:]):
        new = list(saved_results(folder))
        save_values(new, KEPT)
        print(f"kept {', '.join(result['task'] for result in new)}")
    write_page(list(saved_results(KEPT)), PAGE)


if __name__ == "__main__":
    main()
