"""The tables that commands print to a pipe."""

from collections.abc import Iterator

from tests.report.page import PageTable


def printed_tables(out: str) -> Iterator[PageTable]:
    """Yield tables in Markdown, each under the paragraph before it."""
    title = ""
    for part in out.split("\n\n"):
        lines = [line for line in part.splitlines() if line.startswith("|")]
        if lines:
            cells = [
                [cell.strip() for cell in line.strip("|").split("|")] for line in lines
            ]
            # The second line separates the header from the rows.
            yield PageTable(title, cells[0], cells[2:])
        title = part.strip()
