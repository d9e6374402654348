"""``mpcs data``: downloads, the list, and errors."""

import hashlib
from pathlib import Path

import pytest

from mpcs_torch.trainer.sources import published as sources
from tests.cli.test_cli import run
from tests.trainer.http_server import Server, serve


def test_get_puts_a_set_where_list_finds_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(Server({"/X_test.npy": b"array"})) as server:
        monkeypatch.setattr(sources, "ADD_URL", server.url)
        monkeypatch.setitem(sources.SHA256, "add", {"ADD/X_test.npy": hashlib.sha256(b"array").hexdigest()})
        assert run("data", "get", "add", "--data-root", tmp_path) == 0
    assert f"add: in {tmp_path}" in capsys.readouterr().out
    assert run("data", "list", "--data-root", tmp_path) == 0
    states = dict(line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:])
    assert {name.strip(): state.strip() for name, state in states.items()}["add"] == "there, checksums right"
