"""``mpcs data``: downloads, the list, and errors."""

from pathlib import Path

import pytest

from mpcs_torch.paper import downloads
from tests.cli.printed import printed_tables
from tests.cli.shell import Shell
from tests.paper.http_server import Server, serve
from tests.paper.test_download import published, serve_add


def test_get_puts_a_set_where_list_finds_it(
    mpcs: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(Server({})) as server:
        serve_add(server, Path(), monkeypatch)
        published(Path(), "add", monkeypatch)
        monkeypatch.setattr(downloads, "ADD_URL", server.url)
        printed = mpcs("data get add --data-root mine").out
    assert "add: downloading what is missing to mine" in printed
    [table] = printed_tables(mpcs("data list --data-root mine").out)
    assert ["add", "there, checksum right"] in table.rows
