"""What one process measures alone says so under torchrun."""

from pathlib import Path

import pytest

from tests.cli.test_cli import one_line, run


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        ("detect", "one process measures detectors: start it without torchrun"),
        ("score", "one process scores files: start it without torchrun"),
    ],
)
def test_files_are_measured_by_one_process(
    verb: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.txt").write_text("1 1\n0 0\n")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert run(verb, tmp_path / "s.txt") == 2
    assert message in one_line(capsys.readouterr().err)
