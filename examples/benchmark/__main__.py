"""Compare ways to train and to decide by dangerous errors, accuracy and coverage: ``python -m examples.benchmark``."""

import argparse
from pathlib import Path

from examples.benchmark.judging import Trials, results_of
from examples.benchmark.methods import method_of
from examples.benchmark.results import save_values, saved_results, summary_table, task_table, write_page
from examples.benchmark.tasks import tasks_of
from mpcs_torch.cli.console import counting_bar, say

DESCRIPTION = """\
Every method trains for the same number of steps and has the same number of settings and learning rates, chosen on
validation samples; then fresh seeds test it. Runs are parallel and go to OUT/benchmark, with a table and a figure for
each task. All tasks take hours. After an interrupt, the same command trains only what is missing, and the tables
hold all tasks that are done."""


def main() -> None:
    """Train what is missing, print the tables, and write the page and its figures."""
    parser = argparse.ArgumentParser("python -m examples.benchmark", description=DESCRIPTION)
    parser.add_argument("tasks", metavar="TASK", nargs="*", help="names of tasks, or parts of them; default: all")
    parser.add_argument("--method", action="append", default=[], help="your own Method, package.module:METHOD")
    parser.add_argument("--data-root", type=Path, default=Path("data"), help="default: data")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="default: runs")
    given = parser.parse_args()
    try:
        names = tasks_of(given.tasks)
        for path in given.method:
            method_of(path)
    except ValueError as error:
        parser.error(str(error))
    folder = given.out / "benchmark"
    trials = [Trials(name, given.data_root, folder, tuple(given.method)) for name in names]
    results = sorted(results_of(trials, counting_bar), key=lambda result: names.index(result["task"]))
    save_values(results, folder)
    write_page(list(saved_results(folder)), folder)
    tables = [part for result in results for part in (result["task"], task_table(result))]
    say(*tables, summary_table(results), f"wrote {folder / 'results.md'}, and for each task its values and a figure")


if __name__ == "__main__":
    main()
