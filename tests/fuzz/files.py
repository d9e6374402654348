"""Feed damaged files to their readers: python -m tests.fuzz.files --count 20000.

Each reader runs in a child process, so that a crash of native code is counted too; the child is started again after it,
and after a file that takes more than `MAX_SECONDS`.
"""

import argparse
import multiprocessing
import random
import resource
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from mpcs_torch.errors import MpcsError
from mpcs_torch.tables import Table
from tests.fuzz.readers import Reader, readers

READ, REFUSED = "read", "refused"
MAX_SECONDS = 5.0
MAX_MESSAGE = 10_000
MAX_BYTES = 4 * 2**30
"""Of the address space of a child beyond that of its parent: readers of small files need far less."""


def damaged(reader: Reader, seed: int, folder: Path) -> None:
    """Write the files of a reader to a folder, one of them damaged."""
    generator = random.Random(seed)
    chosen = generator.choice(sorted(reader.files))
    for name, content in reader.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(reader.damage(content, generator) if name == chosen else content)


def outcome(reader: Reader, folder: Path) -> str:
    """Read the files of a folder; return `READ`, `REFUSED` or the error that is none of ours."""
    started = time.perf_counter()
    try:
        reader.read(folder)
    except MpcsError as error:
        if _asked_for_memory(error):
            return f"too much memory: {error}"
        seconds = time.perf_counter() - started
        if seconds > MAX_SECONDS:
            return f"refused after {seconds:.1f} s"
        message = str(error)
        if len(message) >= MAX_MESSAGE or not message.replace("\n", "").isprintable():
            return f"long or not printable: {message[:200]!r}"
        return REFUSED
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - started
    return READ if seconds < MAX_SECONDS else f"read after {seconds:.1f} s"


def _asked_for_memory(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError) or "allocate memory" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _serve(pipe: Connection, reader: Reader, folder: Path) -> None:
    """Answer each seed with the outcome of its damaged files."""
    warnings.simplefilter("ignore")
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MAX_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        damaged(reader, pipe.recv(), folder)
        pipe.send(outcome(reader, folder))


def outcomes(
    reader: Reader, seeds: range, folder: Path
) -> Iterator[tuple[int, str, float]]:
    """Yield each seed with its outcome and seconds."""
    context = multiprocessing.get_context("fork")
    child = None
    for seed in seeds:
        if child is None:
            pipe, other = context.Pipe()
            child = context.Process(
                target=_serve, args=(other, reader, folder), daemon=True
            )
            child.start()
            other.close()
        started = time.perf_counter()
        pipe.send(seed)
        is_lost = not pipe.poll(MAX_SECONDS)
        answer = f"over {MAX_SECONDS:g} s"
        if not is_lost:
            try:
                answer = pipe.recv()
            except EOFError:
                child.join()
                is_lost = True
                answer = f"crash with exit code {child.exitcode}"
        yield seed, answer, time.perf_counter() - started
        if is_lost:
            child.kill()
            child.join()
            child = None
    if child is not None:
        child.kill()
        child.join()


def main() -> int:
    """Print a table of the outcomes, and the seeds of those that must not be; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--count", type=int, default=1000, help="damaged files for each reader"
    )
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--reader", action="append", help="only this one; repeat for several"
    )
    arguments = parser.parse_args()
    rows, wrong = [], []
    seeds = range(arguments.first, arguments.first + arguments.count)
    with Progress(console=Console(stderr=True)) as progress:
        for name, reader in readers().items():
            if arguments.reader and name not in arguments.reader:
                continue
            counts: Counter[str] = Counter()
            slowest = 0.0
            with tempfile.TemporaryDirectory() as folder:
                task = progress.add_task(name, total=arguments.count)
                for seed, answer, seconds in outcomes(reader, seeds, Path(folder)):
                    slowest = max(slowest, seconds)
                    if answer in (READ, REFUSED):
                        counts[answer] += 1
                    else:
                        counts["other"] += 1
                        wrong.append(f"{name}, seed {seed}: {answer[:300]!r}")
                    progress.advance(task)
            numbers = [str(counts[key]) for key in (READ, REFUSED, "other")]
            rows.append([name, *numbers, f"{slowest:.3f}"])
    print(Table(["reader", READ, REFUSED, "other", "slowest, s"], rows).markdown())
    print("\n".join(wrong[:50]))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
