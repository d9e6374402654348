"""``mpcs data``: downloads, the list, and errors."""

import hashlib
from pathlib import Path

import pytest

from mpcs_torch.paper import downloads
from tests.cli.shell import run
from tests.paper.http_server import Server, serve
from tests.paper.test_download import published
from tests.trainer.test_data import write_add


def test_get_puts_a_set_where_list_finds_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_add(tmp_path).parent
    published(tmp_path, "add", monkeypatch)
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    hashes = {
        name: hashlib.sha256(content).hexdigest() for name, content in contents.items()
    }
    monkeypatch.setattr(downloads, "ADD_FILES", hashes)
    with serve(
        Server({f"/{name}": content for name, content in contents.items()})
    ) as server:
        monkeypatch.setattr(downloads, "ADD_URL", server.url)
        assert run("data", "get", "add", "--data-root", tmp_path / "mine") == 0
    assert (
        f"add: downloading what is missing to {tmp_path / 'mine'}"
        in capsys.readouterr().out
    )
    assert run("data", "list", "--data-root", tmp_path / "mine") == 0
    states = dict(
        line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]
    )
    assert {name.strip(): state.strip() for name, state in states.items()}[
        "add"
    ] == "there, checksum right"
