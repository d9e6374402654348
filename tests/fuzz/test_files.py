"""Damaged files are read, or refused with our errors: a quick part of `tests.fuzz.files`."""

from pathlib import Path

import pytest

from tests.fuzz.files import READ, REFUSED, damaged, outcome
from tests.fuzz.readers import readers

READERS = readers()


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    for file, content in reader.files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(content)
    assert outcome(reader, tmp_path) == READ
    found = []
    for seed in range(200):
        damaged(reader, seed, tmp_path)
        found.append(outcome(reader, tmp_path))
    assert [
        (seed, other) for seed, other in enumerate(found) if other not in (READ, REFUSED)
    ] == []
    assert REFUSED in found
