"""One law for every output, those of `test_power_failures.WHOLE_FILES`: modes, links, and special files."""

import os
import stat
from pathlib import Path

import pytest

from tests.test_power_failures import WHOLE_FILES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="needs links, modes and pipes of POSIX"),
]
NEW_FILE_ALONE = {"concern", "mark of a started run"}
"""Writers that replace no file."""
REPLACING = [name for name in WHOLE_FILES if name not in NEW_FILE_ALONE]


def outputs(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


@pytest.mark.parametrize("name", REPLACING)
def test_an_output_keeps_its_mode_and_is_written_through_a_link(name: str, tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    WHOLE_FILES[name](folder, 1)
    for path in outputs(folder):
        path.chmod(0o600)
        path.rename(elsewhere / path.name)
        path.symlink_to(elsewhere / path.name)
    before = {path.name: path.read_bytes() for path in outputs(folder)}
    WHOLE_FILES[name](folder, 2)
    after = {path.name: path.read_bytes() for path in outputs(folder)}
    assert after.keys() == before.keys()
    assert after != before
    for path in outputs(folder):
        assert path.is_symlink(), f"{path.name} was replaced"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", WHOLE_FILES)
def test_a_pipe_or_device_is_refused_and_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    WHOLE_FILES[name](tmp_path / "first", 1)
    for path in outputs(tmp_path / "first"):
        folder = tmp_path / path.name
        folder.mkdir()
        os.mkfifo(folder / path.name)
        with pytest.raises((AssertionError, ValueError, OSError)):  # a command returns 2, which is not the expected 0
            WHOLE_FILES[name](folder, 1)
        assert stat.S_ISFIFO((folder / path.name).lstat().st_mode), "the pipe was replaced"
