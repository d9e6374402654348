"""Feed damaged concern files, run configs, manifests and records to their readers: each is read or refused.

``python -m tests.fuzz.configs --count 20000`` prints how often each reader read a file, refused it with an error of
ours, or did anything else: another exception, or more than 5 seconds. Those are listed with the seeds that repeat them,
and must be none.
"""

import argparse
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from mpcs_torch.concern import load_concern
from mpcs_torch.errors import MpcsError
from mpcs_torch.learning.manifest import Manifest, delete_checkpoints
from mpcs_torch.trainer.config import dump_config, load_config
from mpcs_torch.trainer.records import read_records, recorded_directions
from tests.fuzz.mutations import mutated

CONFIGS = Path(__file__).parents[2] / "configs"
SLOW = 5.0
LONGEST_MESSAGE = 10_000


class Target(NamedTuple):
    """A kind of file, its reader, and whole examples."""

    file: str
    read: Callable[[Path], object]
    examples: tuple[bytes, ...]


def _read_config(path: Path) -> object:
    """Read a run config as `mpcs train` and `mpcs select` do, and write it out again."""
    recorded_directions(path.parent, ["mpcs"])
    return dump_config(load_config(path))


def _read_override(path: Path) -> object:
    text = path.read_bytes().decode("utf-8", "surrogateescape")  # as arguments of a command are decoded
    return load_config(CONFIGS / "experiments" / "exp01.yaml", text.splitlines())


def _read_manifest(path: Path) -> object:
    found = Manifest.read(path.parent)
    delete_checkpoints(path.parent)
    return found


_EPOCHS = '{"number": 1, "values": {"mpcs": 0.5, "accuracy": NaN}, "file": "epoch-00001.pt", "sha256": "ab"}'
_MANIFEST = f'{{"format": 1, "rule": {{"by": "mpcs"}}, "epochs": [{_EPOCHS}], "pending": null, "garbage": [{_EPOCHS}]}}'
_OWN_CONFIG = b"""name: mine
data: {name: digits, validation_fraction: 0.2}
model: {path: "tests.trainer.test_loop:Dropping", p: 0.25}
training: {batch_size: all, learning_rate: 1e-3, averaging: 0.9}
loss: {name: softmax_margin, margin: 2.0}
scheduler: {name: plateau, score: mine}
selector: {by: mpcs, within: {accuracy: 0.001}, ties: last}
metrics: [accuracy, mpcs, {name: mine, metric: mpcs, k: 2}]
score: {k: 3, concern: {classes: 10, weights: null, releases: [[0, 1], [2, 3]], concession: 0.02}}
"""
_OVERRIDES = b"""training.batch_size=32
metrics=[{name: mpcs, k: 2}, accuracy]
score.concern={releases: [[0, 1]], factor: 0.1}
selector.within.accuracy=1e-3
model={name: lstm, hidden: 7, layers: 2}
"""
_RECORDS = b"epoch,accuracy,mpcs,dangerous\n1,0.9333333333333333,0.31,9\n2,0.95,1e-05,4\n3,nan,inf,0\n"

TARGETS = {
    "concern": Target(
        "concern.yaml",
        load_concern,
        (
            *(path.read_bytes() for path in sorted((CONFIGS / "concerns").glob("*.yaml"))),
            b"classes: [a, b]\nweights: [[0, 2.5], [50, 0]]\ndangerous: [[b, a]]\nrefer: [1, 2]\nconcession: 0.02\n",
        ),
    ),
    "config": Target(
        "config.yaml",
        _read_config,
        (*(path.read_bytes() for path in sorted((CONFIGS / "experiments").glob("*.yaml"))), _OWN_CONFIG),
    ),
    "override": Target("overrides", _read_override, (_OVERRIDES,)),
    "manifest": Target("manifest.json", _read_manifest, (_MANIFEST.encode(),)),
    "records": Target("records.csv", read_records, (_RECORDS,)),
}


def outcome(target: Target, seed: int, folder: Path) -> str:
    """Read one damaged file: "read", "refused", or what else happened."""
    generator = random.Random(seed)
    path = folder / target.file
    path.write_bytes(mutated(generator.choice(target.examples), generator))
    start = time.perf_counter()
    try:
        target.read(path)
        found = "read"
    except MpcsError as error:
        message = str(error)
        is_shown = all(character.isprintable() or character == "\n" for character in message)
        found = "refused" if is_shown and len(message) < LONGEST_MESSAGE else f"long or unprintable: {message[:200]!r}"
    except Exception as error:
        found = f"{type(error).__name__}: {str(error)[:200]!r}"
    seconds = time.perf_counter() - start
    return found if seconds < SLOW else f"{found}, after {seconds:.1f} s"


def counted(name: str, count: int, *, first: int = 0) -> tuple[Counter[str], dict[int, str]]:
    """Count the outcomes of a reader over seeds; return those that must not be, by seed, as well."""
    counts: Counter[str] = Counter()
    others = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of records that were cut
        for seed in range(first, first + count):
            found = outcome(TARGETS[name], seed, Path(folder))
            is_fine = found in ("read", "refused")
            counts[found if is_fine else "other"] += 1
            if not is_fine:
                others[seed] = found
    return counts, others


def main() -> int:
    """Count all readers, and fail if one did anything else."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    given = parser.parse_args()
    failed = False
    for name in TARGETS:
        counts, others = counted(name, given.count, first=given.first)
        print(f"{name}: {counts['read']} read, {counts['refused']} refused, {counts['other']} other", flush=True)
        for seed, found in list(others.items())[:20]:
            print(f"  seed {seed}: {found}")
        failed |= bool(others)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
