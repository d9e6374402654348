"""``mpcs data``: downloads, the list, and errors."""

import hashlib
from pathlib import Path

import pytest

from mpcs_torch.paper import downloads
from tests.cli.printed import printed_tables
from tests.cli.shell import Shell
from tests.paper.http_server import Server, serve
from tests.paper.test_download import published
from tests.trainer.test_data import write_add


def test_get_puts_a_set_where_list_finds_it(
    mpcs: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_add(Path()).parent
    published(Path(), "add", monkeypatch)
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    hashes = {
        name: hashlib.sha256(content).hexdigest() for name, content in contents.items()
    }
    monkeypatch.setattr(downloads, "ADD_FILES", hashes)
    files = {f"/{name}": content for name, content in contents.items()}
    with serve(Server(files)) as server:
        monkeypatch.setattr(downloads, "ADD_URL", server.url)
        printed = mpcs("data get add --data-root mine").out
    assert "add: downloading what is missing to mine" in printed
    [table] = printed_tables(mpcs("data list --data-root mine").out)
    assert ["add", "there, checksum right"] in table.rows
