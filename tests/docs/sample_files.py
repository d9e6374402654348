"""The files that the commands of the pages read, small and with a fixed seed."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from shutil import copyfile

import numpy as np

HDF5 = Path(__file__).parents[1] / "oracles" / "data" / "hdf5"
CLASSES = ("red", "yellow", "green")
CONCERN = (
    "classes: [red, yellow, green]\nreleases: [[red, yellow], [yellow, red]]\nfactor: 0.5\n"
)
RANGE = """\
classes: [red, yellow, green]
weights:
  - [0, 1, 5 to 50]
  - [1, 0, 2 to 5]
  - [1 to 3, 1, 0]
refer: 0.3 to 0.8
"""
LOADER = """\
import torch
from mpcs_torch.trainer.data import DataSplits, Split

def load(root):
    labels = torch.arange(90) % 3
    inputs = torch.randn(90, 4) + 3 * torch.nn.functional.one_hot(labels, 4)
    return DataSplits(Split(inputs, labels), Split(inputs, labels), ("red", "yellow", "green"))
"""


def write_samples(folder: Path) -> None:
    """Write every file that the pages take for granted."""
    random = np.random.default_rng(0)
    (folder / "concern.yaml").write_text(CONCERN)
    (folder / "range.yaml").write_text(RANGE)
    for name, factor in (("anna", 0.2), ("ben", 0.6)):
        (folder / f"{name}.yaml").write_text(CONCERN.replace("0.5", str(factor)))
    for name, rows, skill in (
        ("predictions", 200, 3.0),
        ("validation", 2000, 4.0),
        ("dev", 300, 3.0),
        ("test", 300, 3.0),
        ("old", 250, 2.5),
        ("new", 250, 3.0),
    ):
        write_predictions(folder / f"{name}.csv", rows, skill, np.random.default_rng(rows))
    for name in ("scores", "dev-scores"):
        is_target = np.arange(200) % 2
        rows = zip(random.normal(2 * is_target, 1), is_target, strict=True)
        write(folder / f"{name}.csv", ["score", "label"], rows)
    write_pairs(folder, random)
    (folder / "my_package").mkdir()
    (folder / "my_package" / "data.py").write_text(LOADER)
    labels = np.arange(90) % 3
    points = random.normal(size=(90, 4)) + 3 * np.eye(4)[labels]
    np.savez(folder / "features.npz", inputs=points.astype("float32"), labels=labels)


def write_predictions(
    path: Path, rows: int, skill: float, random: np.random.Generator
) -> None:
    """Write probabilities and labels."""
    target = random.integers(3, size=rows)
    logits = random.normal(size=(rows, 3)) + skill * np.eye(3)[target]
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    rows = [[*row, CLASSES[label]] for row, label in zip(probs, target, strict=True)]
    write(path, [*CLASSES, "target"], rows)


def write_pairs(folder: Path, random: np.random.Generator) -> None:
    """Write trials with names as HDF5 and as text."""
    labels = [row % 2 for row in range(40)]
    scores = random.normal([2 * label for label in labels], 1)
    rows = [
        [f"e{row}", f"t{row}", score, label]
        for row, (score, label) in enumerate(zip(scores, labels, strict=True))
    ]
    write(folder / "named.csv", ["enrollment", "test", "score", "label"], rows)
    for kind in ("scores", "key"):
        copyfile(HDF5 / f"sidekit-{kind}.h5", folder / f"{kind}.h5")
    lines = [f"{enrollment} {test} {score}\n" for enrollment, test, score, _ in rows]
    (folder / "scores.txt").write_text("".join(lines))


def write(path: Path, header: list[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
