"""The readers that are fuzzed, each with the files that it accepts."""

import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow
import pyarrow.parquet
import torch

from mpcs_torch import ConcernSpec
from mpcs_torch.concern import load_concern
from mpcs_torch.evaluation.calibration_files import (
    SavedCalibration,
    load_calibration,
    new_calibration,
    save_calibration,
)
from mpcs_torch.evaluation.files.changed_trials import rewrite_scores
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.evaluation.files.trials import read_trials
from mpcs_torch.learning import DecisionRule
from mpcs_torch.learning.checkpoint_files import Manifest, delete_checkpoints
from mpcs_torch.trainer.config.load import dump_config, load_config
from mpcs_torch.trainer.data import load_add, load_mnist, load_ucr
from mpcs_torch.trainer.recorded_epochs import plain_config, recorded_directions
from mpcs_torch.trainer.result import read_records
from tests.fuzz.mutations import mutated

Damage = Callable[[bytes, random.Random], bytes]
Files = Mapping[str, bytes]
"""By their paths in the folder that is read."""

GENERATOR = torch.Generator().manual_seed(0)
PROBS = torch.rand(20, 3, generator=GENERATOR, dtype=torch.float64).softmax(dim=1)
TARGET = torch.arange(20) % 3
HDF5 = Path(__file__).parents[1] / "oracles" / "data" / "hdf5"
CONFIGS = Path(__file__).parents[2] / "configs"
EPOCHS = '{"number": 1, "values": {"mpcs": 0.5, "accuracy": NaN}, "file": "epoch-00001.pt", "sha256": "ab"}'
MANIFEST = f"""{{"format": 2, "rule": {{"by": "mpcs"}}, "settings": {{}}, "epochs": [{EPOCHS}]}}
{EPOCHS.replace("1", "2")[:-1]}, "dropped": ["epoch-00001.pt"]}}
"""
OWN_CONCERN = b"classes: [a, b]\nweights: [[0, 2.5], [50, 0]]\ndangerous: [[b, a]]\nrefer: [1, 2]\nconcession: 0.02\n"
OWN_CONFIG = b"""name: mine
data: {name: digits, validation_fraction: 0.2}
model: {path: "tests.trainer.test_loop:Dropping", p: 0.25}
training: {batch_size: all, learning_rate: 1e-3, averaging: 0.9}
loss: {name: softmax_margin, margin: 2.0}
scheduler: {name: plateau, score: mine}
selector: {by: mpcs, within: {accuracy: 0.001}, ties: last}
metrics: [accuracy, mpcs, {name: mine, metric: mpcs, k: 2}]
score: {k: 3, concern: {classes: 10, weights: null, releases: [[0, 1], [2, 3]], concession: 0.02}}
"""
OVERRIDES = b"""training.batch_size=32
metrics=[{name: mpcs, k: 2}, accuracy]
score.concern={releases: [[0, 1]], factor: 0.1}
selector.within.accuracy=1e-3
model={name: lstm, hidden: 7, layers: 2}
"""
RECORDS = b"epoch,accuracy,mpcs,dangerous\n1,0.9333333333333333,0.31,9\n2,0.95,1e-05,4\n3,nan,inf,0\n"


class Reader(NamedTuple):
    """A reader, files that it accepts, and how one of them is damaged."""

    files: Files
    read: Callable[[Path], object]
    """Takes the folder of the files."""
    damage: Damage = mutated


def _saved(save: Callable[[Path], object], suffix: str = "") -> bytes:
    """Return what a function writes to a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix}"
        save(path)
        return path.read_bytes()


def damaged_member(data: bytes, generator: random.Random) -> bytes:
    """Damage one member of a zip file, whose checksums stay right."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {member.filename: archive.read(member) for member in archive.infolist()}
        compression = archive.infolist()[0].compress_type
    chosen = generator.choice(
        [name for name in members if name.endswith((".npy", ".pkl", ".xml"))]
    )
    members[chosen] = mutated(members[chosen], generator)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _one_of(file: str, read: Callable[[Path], object], *examples: bytes) -> Reader:
    """Return a reader of one file, of which any example is damaged."""
    return Reader(
        {file: examples[-1]},
        read,
        lambda _, generator: mutated(generator.choice(examples), generator),
    )


def _configs(folder: str) -> Iterator[bytes]:
    yield from (path.read_bytes() for path in sorted((CONFIGS / folder).glob("*.yaml")))


def _read_config(folder: Path) -> object:
    """Read a run config as `mpcs train` and `mpcs select` do, and write it out again."""
    recorded_directions(plain_config(folder), ["mpcs"])
    return dump_config(load_config(folder / "config.yaml"))


def _read_concern(folder: Path) -> object:
    return load_concern(folder / "concern.yaml")


def _read_override(folder: Path) -> object:
    # As arguments of a command are decoded.
    text = (folder / "overrides").read_bytes().decode("utf-8", "surrogateescape")
    return load_config(CONFIGS / "experiments" / "exp01.yaml", text.splitlines())


def _read_manifest(folder: Path) -> object:
    found = Manifest.read(folder)
    delete_checkpoints(folder)
    return found


def _predictions(name: str, labels: str | None = None) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        opened = Predictions(
            folder / name, ReadOptions(labels=None if labels is None else folder / labels)
        )
        return len(opened.rows().scores)

    return read


def _trials(
    name: str, trials: str | None = None, **wanted: bool
) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        options = ReadOptions(labels=None if trials is None else folder / trials)
        return read_trials(folder / name, options, lambda rows: None, **wanted)

    return read


def _rewritten(name: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        out = folder / f"out-{name}"
        return rewrite_scores(
            folder / name, out, lambda scores: scores, ReadOptions(), lambda rows: None
        )

    return read


def _hdf5(toolkit: str) -> Files:
    return {
        f"{kind}.h5": (HDF5 / f"{toolkit}-{kind}.h5").read_bytes()
        for kind in ("scores", "key")
    }


def _decide(folder: Path) -> object:
    rule = DecisionRule.load(folder / "rule")
    return rule(torch.zeros(2, len(rule.concern.classes)))


def _calibrate(folder: Path) -> object:
    saved = load_calibration(folder / "calibration")
    return saved.module(torch.zeros(2, max(2, len(saved.class_names))))


def _table(names: list[str], target: list[str]) -> str:
    rows = (
        ",".join([*map(repr, row), label])
        for row, label in zip(PROBS.tolist(), target, strict=True)
    )
    return "\n".join([",".join([*names, "target"]), *rows]) + "\n"


def _ucr(label_first: bool) -> bytes:
    lines = []
    for label, row in zip(["a", "b", "1"], PROBS.tolist(), strict=False):
        if label_first:
            lines.append("\t".join([label, *map(repr, row)]))
        else:
            lines.append(f"{','.join(map(repr, row))}:{label}")
    text = "\n".join(lines) + "\n"
    if not label_first:
        text = f"# a set\n@univariate true\n@data\n{text}"
    return text.encode()


def _idx(shape: tuple[int, ...]) -> bytes:
    """Return an array of zeros in the format of MNIST: bytes are type 8, and sizes have four bytes each."""
    sizes = b"".join(size.to_bytes(4, "big") for size in shape)
    return bytes([0, 0, 8, len(shape)]) + sizes + bytes(prod(shape))


def _npy(array: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]") -> bytes:
    return _saved(lambda path: np.save(path, array), ".npy")


def _columns() -> dict[str, list[Any]]:
    columns = {f"c{place}": column.tolist() for place, column in enumerate(PROBS.T)}
    return {**columns, "target": TARGET.tolist()}


def _parquet(path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table(_columns()), path)


def _xlsx(path: Path) -> None:
    from openpyxl import Workbook

    book, columns = Workbook(), _columns()
    for row in [list(columns), *zip(*columns.values(), strict=True)]:
        book.active.append(row)
    book.save(path)


def _tables(named: bytes) -> dict[str, Reader]:
    """Return the readers of further formats of the table of predictions."""
    records = [
        dict(zip(_columns(), row, strict=True))
        for row in zip(*_columns().values(), strict=True)
    ]
    scored = [
        [{"label": name, "score": row[f"c{place}"]} for place, name in enumerate("abc")]
        for row in records
    ]
    pipeline = [
        {"scores": scores, "target": "abc"[row["target"]]}
        for scores, row in zip(scored, records, strict=True)
    ]
    contents = {
        "json lines": "\n".join(map(json.dumps, records)).encode(),
        "json array": json.dumps(records, indent=1).encode(),
        "json of a pipeline": "\n".join(map(json.dumps, pipeline)).encode(),
        "csv of UTF-16": named.decode().encode("utf-16"),
        "csv with semicolons": named.replace(b",", b";").replace(b".", b","),
        "csv packed by gzip": gzip.compress(named),
    }
    found = {
        name: Reader({"p": content}, _predictions("p"))
        for name, content in contents.items()
    }
    if find_spec("openpyxl") is not None:
        found["xlsx"] = Reader(
            {"p.xlsx": _saved(_xlsx, ".xlsx")}, _predictions("p.xlsx"), damaged_member
        )
    return found


def _parquet_trials(path: Path) -> None:
    names = {"enrollment": ["e"] * 20, "test": [f"t{n}" for n in range(20)]}
    columns = {**names, "score": PROBS[:, 0].tolist(), "label": [0, 1] * 10}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


NAMED = _table(
    ["red", "yellow", "a green"],
    [["red", "yellow", "a green"][label] for label in TARGET.tolist()],
).encode()
"""Predictions with names of classes, as csv."""


def _prediction_readers() -> dict[str, Reader]:
    arrays = {"preds": PROBS.numpy(), "target": TARGET.numpy()}
    npz = _saved(lambda path: np.savez_compressed(path, **arrays), ".npz")
    pt = _saved(lambda path: torch.save({"preds": PROBS, "target": TARGET}, path))
    of_arrays = {"p.npy": _npy(arrays["preds"]), "t.npy": _npy(arrays["target"])}
    return {
        "csv": Reader({"p.csv": NAMED}, _predictions("p.csv")),
        **_tables(NAMED),
        "parquet": Reader({"p.parquet": _saved(_parquet)}, _predictions("p.parquet")),
        "npy": Reader(of_arrays, _predictions("p.npy", "t.npy")),
        "npz": Reader({"p.npz": npz}, _predictions("p.npz")),
        "npz members": Reader({"p.npz": npz}, _predictions("p.npz"), damaged_member),
        "pt": Reader({"p.pt": pt}, _predictions("p.pt")),
        "pt pickle": Reader({"p.pt": pt}, _predictions("p.pt"), damaged_member),
    }


def _trial_readers() -> dict[str, Reader]:
    scores = PROBS[:, 0].tolist()
    text = "".join(f"{score!r} {n % 2}\n" for n, score in enumerate(scores))
    csv = "score,label\n" + text.replace(" ", ",")
    pairs = "".join(f"m{n} t{n} {score!r}\n" for n, score in enumerate(scores)).encode()
    kinds = ["nontarget", "target"]
    trials = "".join(f"m{n} t{n} {kinds[n % 2]}\n" for n in range(20)).encode()
    arrays = {
        "scores": PROBS[:, 0].numpy(),
        "labels": np.arange(20) % 2 == 0,
        "test": np.array([f"t{n}" for n in range(20)]),
        "enrollment": np.array(["é", "m"] * 10),
    }
    npz = {"s.npz": _saved(lambda path: np.savez_compressed(path, **arrays), ".npz")}
    parquet = {"s.parquet": _saved(_parquet_trials)}
    read_hdf5 = _trials("scores.h5", "key.h5")
    return {
        "trials csv": Reader({"s.csv": csv.encode()}, _trials("s.csv")),
        "trials npz": Reader(npz, _trials("s.npz", named=True)),
        "trials npz members": Reader(npz, _trials("s.npz", named=True), damaged_member),
        "trials HDF5": Reader(_hdf5("sidekit"), read_hdf5),
        "trials HDF5 of PyBOSARIS": Reader(_hdf5("pybosaris"), read_hdf5),
        "trials parquet": Reader(parquet, _trials("s.parquet", named=True)),
        "trials text": Reader({"s": text.encode()}, _trials("s")),
        "trials Kaldi": Reader({"s": pairs, "t": trials}, _trials("s", "t")),
        "rewritten trials": Reader({"s": pairs}, _rewritten("s")),
        "rewritten parquet": Reader(parquet, _rewritten("s.parquet")),
    }


def _data_readers() -> dict[str, Reader]:
    tsv = {f"UCR/S/S_{part}.tsv": _ucr(label_first=True) for part in ("TRAIN", "TEST")}
    ts = {f"UCR/S/S_{part}.ts": _ucr(label_first=False) for part in ("TRAIN", "TEST")}
    mnist = dict[str, bytes]()
    for part in ("train", "t10k"):
        mnist[f"MNIST/raw/{part}-images-idx3-ubyte"] = _idx((2, 28, 28))
        mnist[f"MNIST/raw/{part}-labels-idx1-ubyte"] = _idx((2,))
    add = {f"ADD/X_{part}.npy": _npy(np.zeros((3, 40, 2))) for part in ("train", "test")}
    add |= {f"ADD/Y_{part}.npy": _npy(np.arange(3)) for part in ("train", "test")}
    return {
        "UCR tsv": Reader(tsv, lambda folder: load_ucr(folder, set="S")),
        "UCR ts": Reader(ts, lambda folder: load_ucr(folder, set="S")),
        "MNIST": Reader(mnist, load_mnist),
        "ADD": Reader(add, load_add),
    }


def _readers_of_our_files() -> dict[str, Reader]:
    lights = ConcernSpec(
        ["red", "yellow", "green"], releases=[["red", "yellow"]], refer=0.5
    )
    fitted = DecisionRule(lights, calibration="vector").fit(PROBS.log(), TARGET)
    rule = {"rule": _saved(fitted.save)}
    vector = SavedCalibration("vector", new_calibration("vector", 3), ("a", "b", "c"))
    calibration = {"calibration": _saved(lambda path: save_calibration(vector, path))}

    def read_all_records(folder: Path) -> object:
        return read_records(folder / "records.csv")

    return {
        "calibration": Reader(calibration, _calibrate),
        "calibration pickle": Reader(calibration, _calibrate, damaged_member),
        "rule": Reader(rule, _decide),
        "rule pickle": Reader(rule, _decide, damaged_member),
        "concern": _one_of(
            "concern.yaml", _read_concern, *_configs("concerns"), OWN_CONCERN
        ),
        "config": _one_of(
            "config.yaml", _read_config, *_configs("experiments"), OWN_CONFIG
        ),
        "override": _one_of("overrides", _read_override, OVERRIDES),
        "manifest": _one_of("manifest.json", _read_manifest, MANIFEST.encode()),
        "records": _one_of("records.csv", read_all_records, RECORDS),
    }


def readers() -> dict[str, Reader]:
    """Return all readers by name."""
    return {
        **_prediction_readers(),
        **_trial_readers(),
        **_data_readers(),
        **_readers_of_our_files(),
    }
