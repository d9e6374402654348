"""Downloads from a local server: whole, wrong, not there; and the list of what is in a data root."""

import gzip
import hashlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

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
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    write_mnist(theirs)
    published(theirs, "mnist", monkeypatch)
    hashes = []
    for file in MNIST_FILES:
        name, packed = f"{Path(file).name}.gz", gzip.compress((theirs / file).read_bytes())
        server.files[f"/{name}"] = packed
        hashes.append((name, hashlib.md5(packed).hexdigest()))
    monkeypatch.setattr(MNIST, "resources", hashes)
    get("mnist", mine)
    requests = [*server.requests]
    assert {*requests} == {*server.files}
    get("mnist", mine)
    for file in MNIST_FILES:
        assert (mine / file).read_bytes() == (theirs / file).read_bytes()
    write_mnist(mine, labels=(0, 9, 2))
    with Refused("published_values", f"{mine / 'MNIST'}", raises=DataError):
        get("mnist", mine)
    assert server.requests == requests


def test_add_comes_from_the_authors_repository_and_files_that_are_there_are_kept(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_add(server, tmp_path, monkeypatch)
    mine = tmp_path / "mine"
    with Refused("published_values", f"{mine / 'ADD'}", raises=DataError):
        get("add", mine)
    published(tmp_path, "add", monkeypatch)
    get("add", mine)
    assert sorted(server.requests) == sorted(server.files), "each is downloaded once"
    (mine / "ADD" / "X_test.npy").write_bytes(b"mine")
    with Refused("cannot_download", raises=DataError):
        get("add", mine)
    assert (mine / "ADD" / "X_test.npy").read_bytes() == b"mine"


def serve_add(server: Server, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offer the files of a data root for download."""
    hashes = {}
    for path in write_add(root).parent.iterdir():
        server.files[f"/{path.name}"] = path.read_bytes()
        hashes[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(downloads, "ADD_FILES", hashes)


def test_a_wrong_hash_a_missing_file_and_a_missing_network_are_named(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "ADD_FILES", {"X_test.npy": "0" * 64})
    for server.files in ({}, {"/X_test.npy": b"array"}):
        with Refused("cannot_download", "X_test.npy", raises=DataError):
            get("add", tmp_path)
    nowhere = "http://127.0.0.1:9/"
    monkeypatch.setattr(downloads, "ADD_URL", nowhere)
    monkeypatch.setattr(MNIST, "mirrors", [nowhere])
    for name in ("add", "mnist"):
        with Refused("cannot_download", raises=DataError, address=nowhere):
            get(name, tmp_path)
    assert names(tmp_path) == []


SERIES = "@univariate true\n@data\n1,2,3:a\n4,5,6:b\n"


def zipped(train: str, test: str | None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("readme", "no series")
        archive.writestr("Toy_TRAIN.ts", train)
        if test is not None:
            archive.writestr("Toy_TEST.ts", test)
    return buffer.getvalue()


WHOLE = zipped(SERIES, SERIES)


def test_a_ucr_set_is_its_two_parts_of_the_zip(server: Server, tmp_path: Path) -> None:
    server.files["/Toy.zip"] = WHOLE
    for _ in range(2):
        get("ucr/Toy", tmp_path)
        assert names(tmp_path) == ["UCR/Toy/Toy_TEST.ts", "UCR/Toy/Toy_TRAIN.ts"]
        assert len(server.requests) == 1
    series = load_ucr(tmp_path, set="Toy").train.inputs.squeeze(-1)
    assert series.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"no zip", "cannot_download"),
        (zipped(SERIES, None), "ucr_file"),
        (zipped(SERIES, "@data\n1,?,3:a\n"), "caused_by"),
        (WHOLE.replace(b"1,2,3:a", b"9,2,3:a"), "cannot_download"),
        (WHOLE, "published_values"),
    ],
    ids=["no zip", "no test part", "a missing value", "damaged", "other values"],
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


def write_part(root: Path, name: str, part: str) -> None:
    path = root / "UCR" / name / f"{name}_{part}.ts"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SERIES)


def test_a_set_of_the_user_is_never_replaced(server: Server, tmp_path: Path) -> None:
    server.files["/Toy.zip"] = WHOLE
    write_part(tmp_path, "Toy", "TRAIN")
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
    for part in ("TRAIN", "TEST"):
        write_part(tmp_path, "Toy", part)
    (tmp_path / "UCR" / "Half").mkdir()
    states = dict(status(tmp_path))
    assert states["iris"] == "inside scikit-learn"
    assert states["mnist"] == states["ucr/Chinatown"] == "not there"
    assert "ADD does not have the published values" in states["add"]
    assert states["ucr/Toy"] == "there, readable"
    assert "must hold Half_TRAIN.tsv" in states["ucr/Half"]
