"""Downloads from a local server: whole, wrong, not there; and the list of what is in a data root."""

import gzip
import hashlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from torchvision.datasets import MNIST

from mpcs_torch.errors import DataError
from mpcs_torch.paper import downloads
from mpcs_torch.paper.downloads import checksum, get, status
from mpcs_torch.trainer.data import DATASETS, load_ucr
from tests.paper.http_server import Server, serve
from tests.refused import Refused
from tests.trainer.test_data import MNIST_FILES, write_add, write_mnist


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serve(Server({})) as running:
        monkeypatch.setattr(downloads, "ADD_URL", running.url)
        monkeypatch.setattr(downloads, "UCR_URL", running.url)
        monkeypatch.setattr(MNIST, "mirrors", [running.url])
        monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
        yield running


def names(folder: Path) -> list[str]:
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    )


def published(root: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take what a data root holds for what is published."""
    monkeypatch.setitem(downloads.CHECKSUMS, name, checksum(DATASETS[name](root)))


def test_mnist_is_downloaded_once_and_unpacked(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_mnist(tmp_path / "theirs")
    published(tmp_path / "theirs", "mnist", monkeypatch)
    packed = {
        file: gzip.compress((tmp_path / "theirs" / file).read_bytes())
        for file in MNIST_FILES
    }
    archives = {f"{Path(file).name}.gz": content for file, content in packed.items()}
    server.files.update({f"/{name}": content for name, content in archives.items()})
    hashes = [
        (name, hashlib.md5(content).hexdigest()) for name, content in archives.items()
    ]
    monkeypatch.setattr(MNIST, "resources", hashes)
    get("mnist", tmp_path / "mine")
    assert {*server.requests} == {*server.files}
    requests = [*server.requests]
    get("mnist", tmp_path / "mine")
    for file in MNIST_FILES:
        assert (tmp_path / "mine" / file).read_bytes() == (
            tmp_path / "theirs" / file
        ).read_bytes()
    write_mnist(tmp_path / "mine", labels=(0, 9, 2))
    mine = tmp_path / "mine"
    with Refused("published_values", f"{mine / 'MNIST'}", raises=DataError):
        get("mnist", mine)
    assert server.requests == requests


def test_add_comes_from_the_authors_repository_and_files_that_are_there_are_kept(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = write_add(tmp_path).parent.rename(tmp_path / "theirs")
    contents = {path.name: path.read_bytes() for path in theirs.iterdir()}
    server.files.update({f"/{name}": content for name, content in contents.items()})
    hashes = {
        name: hashlib.sha256(content).hexdigest() for name, content in contents.items()
    }
    monkeypatch.setattr(downloads, "ADD_FILES", hashes)
    with Refused("published_values", f"{tmp_path / 'ADD'}", raises=DataError):
        get("add", tmp_path)
    published(tmp_path, "add", monkeypatch)
    get("add", tmp_path)
    assert sorted(server.requests) == sorted(server.files), "each is downloaded once"
    mine = tmp_path / "ADD" / "X_test.npy"
    mine.write_bytes(b"mine")
    with Refused("cannot_download", raises=DataError):
        get("add", tmp_path)
    assert mine.read_bytes() == b"mine"


def test_a_wrong_hash_a_missing_file_and_a_missing_network_are_named(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "ADD_FILES", {"X_test.npy": "0" * 64})
    with Refused("cannot_download", "X_test.npy", raises=DataError):
        get("add", tmp_path)
    server.files["/X_test.npy"] = b"array"
    with Refused("cannot_download", "X_test.npy", raises=DataError):
        get("add", tmp_path)
    monkeypatch.setattr(downloads, "ADD_URL", "http://127.0.0.1:9/")
    with Refused("cannot_download", raises=DataError, address="http://127.0.0.1:9/"):
        get("add", tmp_path)
    monkeypatch.setattr(MNIST, "mirrors", ["http://127.0.0.1:9/"])
    with Refused(
        "cannot_download", "MNIST", address="http://127.0.0.1:9/", raises=DataError
    ):
        get("mnist", tmp_path)
    assert names(tmp_path) == []


SERIES = "@univariate true\n@data\n1,2,3:a\n4,5,6:b\n"


def zipped(**members: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("_ts", ".ts"), text)
    return buffer.getvalue()


def test_a_ucr_set_is_its_two_parts_of_the_zip(server: Server, tmp_path: Path) -> None:
    server.files["/Toy.zip"] = zipped(
        Toy_TRAIN_ts=SERIES, Toy_TEST_ts=SERIES, readme="no series"
    )
    for _ in range(2):
        get("ucr/Toy", tmp_path)
        assert names(tmp_path) == ["UCR/Toy/Toy_TEST.ts", "UCR/Toy/Toy_TRAIN.ts"]
        assert len(server.requests) == 1
    assert np.array_equal(
        load_ucr(tmp_path, set="Toy").train.inputs.squeeze(-1), [[1, 2, 3], [4, 5, 6]]
    )


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"no zip", "cannot_download"),
        (zipped(Toy_TRAIN_ts=SERIES), "ucr_file"),
        (zipped(Toy_TRAIN_ts=SERIES, Toy_TEST_ts="@data\n1,?,3:a\n"), "caused_by"),
        (
            zipped(Toy_TRAIN_ts=SERIES, Toy_TEST_ts=SERIES).replace(b"1,2,3:a", b"9,2,3:a"),
            "cannot_download",
        ),
        (zipped(Toy_TRAIN_ts=SERIES, Toy_TEST_ts=SERIES), "published_values"),
    ],
    ids=[
        "no zip",
        "no test part",
        "a missing value",
        "damaged",
        "other values",
    ],  # a zip has the time of writing
)
def test_a_zip_that_is_not_the_set_leaves_nothing(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    body: bytes,
    code: str,
) -> None:
    monkeypatch.setitem(downloads.CHECKSUMS, "ucr/Toy", "0" * 64)
    server.files["/Toy.zip"] = body
    with Refused(code, raises=DataError):
        get("ucr/Toy", tmp_path)
    assert names(tmp_path) == []
    assert not (tmp_path / "UCR" / "Toy").exists()


def test_a_set_of_the_user_is_never_replaced(server: Server, tmp_path: Path) -> None:
    server.files["/Toy.zip"] = zipped(Toy_TRAIN_ts=SERIES, Toy_TEST_ts=SERIES)
    (tmp_path / "UCR" / "Toy").mkdir(parents=True)
    (tmp_path / "UCR" / "Toy" / "Toy_TRAIN.ts").write_text(SERIES)
    with Refused("ucr_file", raises=DataError, stem="Toy_TEST"):
        get("ucr/Toy", tmp_path)
    assert names(tmp_path) == ["UCR/Toy/Toy_TRAIN.ts"]
    assert server.requests == []


@pytest.mark.parametrize(
    "name", ["Toy", "ucr/", "ucr/..", "ucr/a b", "ucr/../Toy", "iris", "ucr/a\n"]
)
def test_an_unknown_name_is_refused(tmp_path: Path, name: str) -> None:
    with Refused("data_set", raises=DataError, name=name):
        get(name, tmp_path)
    assert names(tmp_path) == []


def test_the_published_files_have_the_published_checksums(data_root: Path) -> None:
    states = dict(status(data_root))
    for name in ("mnist", "add", "ucr/Chinatown", "ucr/SmoothSubspace"):
        assert states[name] == "there, checksum right"


def test_what_is_wrong_in_a_data_root_is_listed(tmp_path: Path) -> None:
    write_add(tmp_path)
    for name, parts in {"Toy": ("TRAIN", "TEST"), "Half": ()}.items():
        (tmp_path / "UCR" / name).mkdir(parents=True)
        for part in parts:
            (tmp_path / "UCR" / name / f"{name}_{part}.ts").write_text(SERIES)
    states = dict(status(tmp_path))
    assert states["iris"] == "inside scikit-learn"
    assert states["mnist"] == states["ucr/Chinatown"] == "not there"
    assert "ADD does not have the published values" in states["add"]
    assert states["ucr/Toy"] == "there, readable"
    assert "must hold Half_TRAIN.tsv" in states["ucr/Half"]
