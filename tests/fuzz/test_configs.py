"""Damaged concern files, configs, manifests and records are read or refused; `tests.fuzz.configs` tries more."""

import pytest

from tests.fuzz.configs import TARGETS, counted


@pytest.mark.parametrize("name", TARGETS)
def test_a_damaged_file_is_read_or_refused(name: str) -> None:
    counts, others = counted(name, 300)
    assert others == {}
    assert counts["refused"] > 50
    assert counts["read"] > 0
