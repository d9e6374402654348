"""Outputs under attack: two writers, planted links, modes, devices and pipes."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from mpcs_torch.errors import InvalidValueError
from mpcs_torch.io import atomic_files
from mpcs_torch.io.atomic_files import (
    open_lines,
    replace_file,
    replace_files,
    replace_text,
)
from tests.processes.forked import forked, succeeded
from tests.refused import Refused

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="needs links, modes and pipes of POSIX"
)


def write_many(path: Path, letter: str, count: int) -> None:
    for _ in range(count):
        replace_file(
            path,
            lambda file: [file.write(letter.encode() * 1000) for _ in range(20)],
            flush=False,
        )


@pytest.mark.parametrize("races", [60, pytest.param(2000, marks=pytest.mark.exhaustive)])
def test_of_two_writers_the_last_complete_one_wins_and_both_succeed(
    tmp_path: Path, races: int
) -> None:
    path = tmp_path / "out.csv"
    writers = [
        forked(lambda letter=letter: write_many(path, letter, races)) for letter in "AB"
    ]
    contents = set()
    while len(contents) < 2:
        if path.exists():
            contents.add(path.read_bytes())
        if all(
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
            for pid in writers
        ):
            break
    assert succeeded(writers)
    assert contents <= {b"A" * 20_000, b"B" * 20_000}
    assert [each.name for each in tmp_path.iterdir()] == ["out.csv"]


def test_a_writer_in_the_middle_of_another_leaves_it_alone(tmp_path: Path) -> None:
    """The names of temporary files were the same once, so that one writer published the half of another."""
    path = tmp_path / "out.csv"

    def outer(file: object) -> None:
        file.write(b"A\n" * 20)  # type: ignore[attr-defined]
        replace_text(path, "B\n" * 5)
        assert path.read_text() == "B\n" * 5
        file.write(b"A\n" * 20)  # type: ignore[attr-defined]

    replace_file(path, outer)
    assert path.read_text() == "A\n" * 40


def test_a_planted_link_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    monkeypatch.setattr(atomic_files.secrets, "token_hex", lambda _: "guessed")
    (tmp_path / ".out.csv.guessed.tmp").symlink_to(victim)
    replace_text(tmp_path / "out.csv", "mine")
    assert victim.read_text() == "precious"
    assert not (tmp_path / "out.csv").is_symlink()
    (tmp_path / "records.csv").symlink_to(victim)
    with pytest.raises(FileExistsError), open_lines(tmp_path / "records.csv", append=False):
        pass
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_the_mode_of_an_existing_file_stays(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "out.csv"
    path.touch(mode)
    path.chmod(mode)
    replace_text(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    umask = os.umask(0o027)
    try:
        replace_text(tmp_path / "other.csv", "new")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "other.csv").stat().st_mode) == 0o640


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_written_through_to_its_target(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "data.csv", tmp_path / "out.csv"
    if exists:
        target.write_text("old")
        target.chmod(0o600)
    link.symlink_to(target)
    replace_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert not exists or stat.S_IMODE(target.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.symlink_to("/dev/null"), Path.mkdir]
)
def test_what_is_no_regular_file_is_refused_and_stays(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    path = tmp_path / "out"
    make(path)
    before = path.lstat()
    with Refused("caused_by", f"{path}: an output"):
        replace_text(path, "new")
    with pytest.raises(InvalidValueError):
        replace_files(
            {
                tmp_path / "first": lambda file: file.write(b"1"),
                path: lambda file: file.write(b"2"),
            }
        )
    assert os.path.samestat(before, path.lstat())
    assert {each.name for each in tmp_path.iterdir()} == {"out"}


def test_files_of_writers_that_were_killed_long_ago_are_deleted(tmp_path: Path) -> None:
    path = tmp_path / "out[1]*.csv"
    for name, age in (
        (".out[1]*.csv.0123abcd.tmp", 90_000),
        (".out[1]*.csv.89abcdef.tmp", 10),
        (".out2.0123abcd.tmp", 1e6),
    ):
        (tmp_path / name).touch()
        then = (tmp_path / name).stat().st_mtime - age
        os.utime(tmp_path / name, (then, then))
    replace_text(path, "new")
    assert {each.name for each in tmp_path.iterdir()} == {
        path.name,
        ".out[1]*.csv.89abcdef.tmp",
        ".out2.0123abcd.tmp",
    }


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("old")

    def fails(file: object) -> None:
        file.write(b"half")  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_files(
            {tmp_path / "first.csv": lambda file: file.write(b"whole"), path: fails}
        )
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["out.csv"]
