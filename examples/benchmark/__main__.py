"""Compare ways to train and to decide by dangerous errors, accuracy and coverage: ``python -m examples.benchmark``."""

import argparse
import os
from pathlib import Path

import torch

from examples.benchmark.judging import result_of
from examples.benchmark.results import save_values, saved_results
from examples.benchmark.tables import page_of, task_table
from examples.benchmark.tasks import tasks_of
from examples.benchmark.trials import Trials
from mpcs_torch.cli.console import say

DESCRIPTION = """\
Each loss has the same steps, augmentation, learning rates and number of settings. Validation samples choose among them,
and test samples of other seeds judge. All tasks take hours. After an interrupt, the same command trains only what is
missing. Tasks can run in several processes at once, each with its own TASK."""


def main() -> None:
    """Train what is missing, print the tables, and write the values and the page of all tasks that are done."""
    parser = argparse.ArgumentParser(
        "python -m examples.benchmark", description=DESCRIPTION
    )
    parser.add_argument(
        "tasks",
        metavar="TASK",
        nargs="*",
        help="names of tasks, or parts of them; default: all",
    )
    parser.add_argument(
        "--data-root", type=Path, default=Path(os.environ.get("MPCS_DATA_ROOT", "data"))
    )
    parser.add_argument("--out", type=Path, default=Path("runs"), help="default: runs")
    arguments = parser.parse_args()
    try:
        names = tasks_of(arguments.tasks)
    except ValueError as error:
        parser.error(str(error))
    torch.set_num_threads(
        1
    )  # for such small models, waiting for other threads takes most of the time
    folder = arguments.out / "benchmark"
    for name in names:
        result = result_of(Trials(name, arguments.data_root, folder))
        save_values([result], folder)
        say(name, task_table(result))
    page = folder / "results.md"
    page.write_text(page_of(list(saved_results(folder))), encoding="utf-8")
    say(f"wrote {page}")


if __name__ == "__main__":
    main()
