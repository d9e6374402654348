"""Read columns of parquet files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from mpcs_torch.scoring.chunks import check_columns
from mpcs_torch.scoring.csv_file import Batch, import_pyarrow


def parquet_names(path: Path) -> list[str]:
    """Return the names of the columns.

    Raises:
        PredictionsError: If pyarrow is not installed, or there are too many columns.
    """
    import_pyarrow(path)
    from pyarrow import parquet

    names = list(parquet.read_schema(path).names)
    check_columns(path, len(names))
    return names


def parquet_rows(path: Path) -> int:
    """Return the number of rows."""
    from pyarrow import parquet

    return int(parquet.read_metadata(path).num_rows)


def parquet_batches(
    path: Path, step: int, columns: Sequence[str] | None = None, part: range | None = None
) -> Iterator[Batch]:
    """Yield all columns, or some, of all rows, or of a part, in batches of at most ``step`` rows."""
    from pyarrow import parquet

    file = parquet.ParquetFile(path)
    part = range(file.metadata.num_rows) if part is None else part
    groups, start, end = list[int](), 0, 0
    for number in range(file.num_row_groups):
        begin, end = end, end + file.metadata.row_group(number).num_rows
        if begin < part.stop and end > part.start:
            start = start if groups else begin
            groups.append(number)
    for read in file.iter_batches(step, row_groups=groups, columns=columns):
        low, high = max(start, part.start), min(start + len(read), part.stop)
        if low < high:
            kept = read.slice(low - start, high - low)
            yield Batch(low + 1, dict(zip(kept.schema.names, kept.columns, strict=True)))
        start += len(read)
