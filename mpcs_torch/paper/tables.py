"""Tables of the paper beside ours."""

from collections.abc import Sequence

import torch
from torchmetrics.functional import spearman_corrcoef

from mpcs_torch.paper.published import BENCHMARKS, TABLE_2
from mpcs_torch.trainer.records import Record


def spearman(records: Sequence[Record], column: str, other: str) -> float:
    """Rank correlation of two columns over the turns of a run, ties ranked in the middle."""
    values = torch.tensor([[record[column], record[other]] for record in records], dtype=torch.float64)
    return float(spearman_corrcoef(values[:, 0], values[:, 1]))


def table_2(name: str, records: Sequence[Record]) -> str:
    """The row of Table II: correlation of MPCS with each benchmark, ours under both concern rules and the paper's."""
    rows = []
    published = TABLE_2.get(name)
    for i, benchmark in enumerate(BENCHMARKS):
        as_published = spearman(records, "mpcs_count", benchmark)
        row = [benchmark, f"{spearman(records, 'mpcs', benchmark):.4f}", f"{as_published:.4f}"]
        if published is not None:
            row += [f"{published[i]:.4f}", f"{as_published - published[i]:+.4f}"]
        rows.append(row)
    header = ["Spearman with", "mpcs", "mpcs_count"]
    return markdown([*header, "paper", "difference"] if published is not None else header, rows)


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table whose source lines up too."""
    cells = [list(map(str, row)) for row in (header, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])
