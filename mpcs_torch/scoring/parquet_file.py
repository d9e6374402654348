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


def parquet_batches(path: Path, step: int, columns: Sequence[str] | None = None) -> Iterator[Batch]:
    """Yield all columns, or some, in batches of at most ``step`` rows."""
    from pyarrow import parquet

    first = 1
    for read in parquet.ParquetFile(path).iter_batches(step, columns=columns):
        yield Batch(first, dict(zip(read.schema.names, read.columns, strict=True)))
        first += len(read)
