"""Downloads from a local server: whole, broken off, taken up again, wrong, not there."""

import gzip
import hashlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from torchvision.datasets import MNIST

from mpcs_torch.errors import DataError
from mpcs_torch.io import untrusted_files
from mpcs_torch.trainer.data.ucr import load_ucr
from mpcs_torch.trainer.sources import download as download_module
from mpcs_torch.trainer.sources import published as sources
from mpcs_torch.trainer.sources.download import CHUNK_BYTES, download
from tests.trainer.http_server import Server, serve

BODY = bytes(range(256)) * 4000
SHA256 = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(Server({"/file": BODY})) as running:
        yield running


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download_module.time, "sleep", lambda seconds: None)


def get(server: Server, path: Path, known_hash: str | None = f"sha256:{SHA256}") -> list[tuple[str, int, int | None]]:
    told: list[tuple[str, int, int | None]] = []
    download(f"{server.url}/file", path, known_hash=known_hash, progress=lambda *told_now: told.append(told_now))
    return told


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_download_tells_its_progress_to_the_end(server: Server, tmp_path: Path) -> None:
    told = get(server, tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == BODY
    assert told[-1] == ("got", len(BODY), len(BODY))
    assert [here for _, here, _ in told] == sorted(here for _, here, _ in told)
    assert names(tmp_path) == ["got"]


def test_a_broken_connection_is_taken_up_where_it_broke(server: Server, tmp_path: Path) -> None:
    server.break_after = [4 * CHUNK_BYTES + 1, 3 * CHUNK_BYTES]
    get(server, tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == BODY
    assert server.requests == ["", f"bytes={4 * CHUNK_BYTES}-", f"bytes={7 * CHUNK_BYTES}-"]


def test_a_server_without_ranges_is_asked_for_the_whole_again(server: Server, tmp_path: Path) -> None:
    server.break_after, server.ranges = [300_000], False
    get(server, tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == BODY
    assert names(tmp_path) == ["got"]


def test_a_download_that_failed_goes_on_in_the_next_call(server: Server, tmp_path: Path) -> None:
    server.break_after = [CHUNK_BYTES] * 4
    with pytest.raises(DataError, match="cannot be downloaded"):
        get(server, tmp_path / "got")
    assert names(tmp_path) == ["got.part"]
    server.requests.clear()
    get(server, tmp_path / "got")
    assert server.requests == [f"bytes={4 * CHUNK_BYTES}-"]
    assert (tmp_path / "got").read_bytes() == BODY
    assert names(tmp_path) == ["got"]


def test_half_a_file_that_cannot_be_resumed_is_not_kept(server: Server, tmp_path: Path) -> None:
    server.break_after, server.ranges = [100_000] * 4, False
    with pytest.raises(DataError, match="cannot be downloaded"):
        get(server, tmp_path / "got")
    assert names(tmp_path) == []


def test_a_wrong_checksum_leaves_nothing(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"/file is not the published file: .* hash"):
        get(server, tmp_path / "got", known_hash="sha256:" + "0" * 64)
    assert names(tmp_path) == []


def test_the_part_of_another_file_is_thrown_away(server: Server, tmp_path: Path) -> None:
    (tmp_path / "got.part").write_bytes(BODY + b"more")
    get(server, tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == BODY


def test_a_missing_file_and_a_missing_network_are_named(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="404"):
        download(f"{server.url}/no", tmp_path / "got", known_hash=None, progress=lambda *told: None)
    with pytest.raises(DataError, match=r"http://127.0.0.1:9/file cannot be downloaded"):
        download("http://127.0.0.1:9/file", tmp_path / "got", known_hash=None, progress=lambda *told: None)
    assert names(tmp_path) == []


def test_mnist_is_unpacked_from_the_first_mirror_that_answers(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = gzip.compress(BODY)
    server.files["/t10k-labels-idx1-ubyte.gz"] = packed
    file = "MNIST/raw/t10k-labels-idx1-ubyte"
    monkeypatch.setattr(MNIST, "mirrors", ["http://127.0.0.1:9/", f"{server.url}/"])
    monkeypatch.setattr(MNIST, "resources", [("t10k-labels-idx1-ubyte.gz", hashlib.md5(packed).hexdigest())])
    monkeypatch.setitem(sources.SHA256, "mnist", {file: SHA256})
    sources.get("mnist", tmp_path, lambda *told: None)
    assert (tmp_path / file).read_bytes() == BODY
    server.requests.clear()
    sources.get("mnist", tmp_path, lambda *told: None)
    assert server.requests == []
    assert names(tmp_path) == [file]
    (tmp_path / file).write_bytes(b"mine")
    with pytest.raises(DataError, match=r"t10k-labels-idx1-ubyte is not the published file: move it away"):
        sources.get("mnist", tmp_path, lambda *told: None)
    assert (tmp_path / file).read_bytes() == b"mine"


def test_add_comes_from_the_authors_repository(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.files["/X_test.npy"] = BODY
    monkeypatch.setattr(sources, "ADD_URL", server.url)
    monkeypatch.setitem(sources.SHA256, "add", {"ADD/X_test.npy": SHA256})
    sources.get("add", tmp_path, lambda *told: None)
    assert names(tmp_path) == ["ADD/X_test.npy"]


def zipped(**members: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("_ts", ".ts"), text)
    return buffer.getvalue()


SERIES = "@univariate true\n@data\n1,2,3:a\n4,5,6:b\n"


def test_a_ucr_set_is_its_two_parts_of_the_zip(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "UCR_URL", server.url)
    server.files["/Toy.zip"] = zipped(Toy_TRAIN_ts=SERIES, Toy_TEST_ts=SERIES, readme="no series")
    sources.get("ucr/Toy", tmp_path, lambda *told: None)
    assert names(tmp_path) == ["UCR/Toy/Toy_TEST.ts", "UCR/Toy/Toy_TRAIN.ts"]
    assert load_ucr(tmp_path, set="Toy").train.inputs.shape == (2, 3, 1)
    sources.get("ucr/Toy", tmp_path, lambda *told: None)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"no zip", "is not a set of the archive: File is not a zip file"),
        (zipped(Toy_TRAIN_ts=SERIES), "it holds no Toy_TRAIN and Toy_TEST"),
        (zipped(Toy_TRAIN_ts=SERIES, Toy_TEST_ts="@data\n1,?,3:a\n"), "a value is missing"),
        (zipped(Toy_TRAIN_ts=SERIES, Toy_TEST_ts=SERIES).replace(b"1,2,3:a", b"9,2,3:a"), "Bad CRC-32"),
        (zipped(Toy_TRAIN_ts=SERIES, Toy_TEST_ts=SERIES), "it does not hold the values of the published set"),
    ],
    ids=["no zip", "no test part", "a missing value", "damaged", "other values"],  # a zip has the time of writing
)
def test_a_zip_that_is_not_the_set_leaves_nothing(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes, message: str
) -> None:
    monkeypatch.setattr(sources, "UCR_URL", server.url)
    monkeypatch.setitem(sources.UCR_SHA256, "Toy", "0" * 64)
    server.files["/Toy.zip"] = body
    with pytest.raises(DataError, match=message):
        sources.get("ucr/Toy", tmp_path, lambda *told: None)
    assert names(tmp_path) == []
    assert not (tmp_path / "UCR" / "Toy").exists()


def test_archives_and_parts_of_the_user_are_kept(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "UCR_URL", server.url)
    server.files["/Toy.zip"] = zipped(Toy_TRAIN_ts=SERIES, Toy_TEST_ts=SERIES)
    folder = tmp_path / "UCR" / "Toy"
    folder.mkdir(parents=True)
    (folder / "Toy.zip").write_text("mine")
    (folder / "Toy_TRAIN.ts").write_text("half a set")
    with pytest.raises(DataError, match=r"Toy_TRAIN.ts is in the way: move it away"):
        sources.get("ucr/Toy", tmp_path, lambda *told: None)
    assert (folder / "Toy_TRAIN.ts").read_text() == "half a set"
    (folder / "Toy_TRAIN.ts").unlink()
    sources.get("ucr/Toy", tmp_path, lambda *told: None)
    assert (folder / "Toy.zip").read_text() == "mine"
    assert load_ucr(tmp_path, set="Toy").train.inputs.shape == (2, 3, 1)


def hostile_zip(*members: tuple[zipfile.ZipInfo | str, str], compression: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for member, text in members:
            archive.writestr(member, text)
    return buffer.getvalue()


def link(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name)
    member.create_system, member.external_attr = 3, 0o120777 << 16
    return member


def test_a_zip_writes_nothing_outside_its_folder(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "UCR_URL", server.url)
    root = tmp_path / "root"
    (tmp_path / "secret").write_text(SERIES)
    outside = [(f"../../../{n}", "mine") for n in ("a", "Toy_TEST.ts/../b")] + [(f"{tmp_path}/c", "mine")]
    server.files["/Toy.zip"] = hostile_zip(
        *outside, ("../../Toy_TRAIN.ts", SERIES), (f"{tmp_path}/Toy_TEST.ts", SERIES), (link("Toy.ts"), "../../../d")
    )
    sources.get("ucr/Toy", root, lambda *told: None)
    assert names(tmp_path) == ["root/UCR/Toy/Toy_TEST.ts", "root/UCR/Toy/Toy_TRAIN.ts", "secret"]
    server.files["/Toy2.zip"] = hostile_zip((link("Toy2_TRAIN.ts"), "../../../secret"), (link("Toy2_TEST.ts"), "/x"))
    with pytest.raises(DataError, match=r"Toy2_TRAIN.ts: holds no series"):
        sources.get("ucr/Toy2", root, lambda *told: None)
    assert names(tmp_path) == ["root/UCR/Toy/Toy_TEST.ts", "root/UCR/Toy/Toy_TRAIN.ts", "secret"]


def test_a_zip_that_expands_far_is_refused(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "UCR_URL", server.url)
    monkeypatch.setattr(untrusted_files, "FREE_BYTES", 2**20)
    monkeypatch.setattr(sources, "MOST_DATA_BYTES", 2**21 - 1)
    bomb = [(f"Toy_{part}.ts", "\n" * 2**21) for part in ("TRAIN", "TEST")]
    for compression, message in (
        (zipfile.ZIP_DEFLATED, "must expand to at most 200 times its size or 1048576 bytes"),
        (zipfile.ZIP_LZMA, "must be stored or deflated"),
        (zipfile.ZIP_STORED, "must have at most 2097151 bytes, but has 2097152"),
    ):
        server.files["/Toy.zip"] = hostile_zip(*bomb, compression=compression)
        with pytest.raises(DataError, match=message):
            sources.get("ucr/Toy", tmp_path, lambda *told: None)
        assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["ucr/..", "ucr/a b"])
def test_a_set_is_named_by_letters(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="names of UCR sets have letters, digits"):
        sources.get(name, tmp_path, lambda *told: None)
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["Toy", "ucr/", "ucr/../Toy", "iris"])
def test_an_unknown_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"data sets to get are mnist, add and ucr/NAME"):
        sources.get(name, tmp_path, lambda *told: None)


def test_the_published_files_have_the_published_checksums(data_root: Path) -> None:
    states = {entry.name: entry.state for entry in sources.status(data_root)}
    for name in ("mnist", "add", "ucr/Chinatown", "ucr/SmoothSubspace"):
        assert "right" in states[name], states[name]


def test_what_is_wrong_in_a_data_root_is_listed(tmp_path: Path) -> None:
    (tmp_path / "ADD").mkdir()
    (tmp_path / "ADD" / "X_test.npy").write_bytes(b"mine")
    (tmp_path / "UCR" / "Toy").mkdir(parents=True)
    for part in ("TRAIN", "TEST"):
        (tmp_path / "UCR" / "Toy" / f"Toy_{part}.ts").write_text(SERIES)
    (tmp_path / "UCR" / "Half").mkdir()
    states = {entry.name: entry.state for entry in sources.status(tmp_path)}
    assert states["iris"] == "inside scikit-learn"
    assert states["mnist"] == states["ucr/Chinatown"] == "not there"
    assert "ADD/X_train.npy is missing" in states["add"]
    assert "ADD/X_test.npy is not the published file" in states["add"]
    assert states["ucr/Toy"] == "there, readable"
    assert "must hold Half_TRAIN.tsv" in states["ucr/Half"]
