"""A pool of workers that write their numbers and sleep: ``python -m tests.processes.sleepers FOLDER``."""

import os
import signal
import sys
import time
from pathlib import Path

from mpcs_torch.processes import run_in_processes


def sleep(folder: Path) -> None:
    (folder / f"{os.getpid()}.worker").touch()
    time.sleep(600)


if __name__ == "__main__":
    # Shells ignore SIGINT for jobs in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    list(run_in_processes(sleep, [Path(sys.argv[1])] * 2))
