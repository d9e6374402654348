"""Comparison of a run with its published per-epoch record."""

from collections.abc import Sequence
from dataclasses import dataclass

from mpcs_torch.trainer.records import Record


@dataclass(frozen=True)
class Agreement:
    """The agreement of a replay with its published record."""

    epochs: int
    agreeing: int
    """Epochs that are equal in every published column at 4 decimals."""
    from_first: int
    """The agreeing epochs before the first difference."""
    first_difference: str | None
    """The first epoch that is not equal, and its columns."""

    def __str__(self) -> str:
        text = f"{self.agreeing} of {self.epochs} epochs agree with the published record in all columns at 4 decimals"
        if self.first_difference is None:
            return text
        return f"{text}, the first {self.from_first} without a break; first difference: {self.first_difference}"


def compare(records: Sequence[Record], published: Sequence[Record]) -> Agreement:
    """Compare at the 4 published decimals; the published ``mpcs`` follows the count rule, like our mpcs_count."""
    differences: dict[int, str] = {}
    for compared, (ours, theirs) in enumerate(zip(records, published, strict=False)):
        pairs = [(column, _printed(_ours(ours, column)), _printed(value)) for column, value in theirs.items()]
        unequal = [f"{column} {mine} for {printed}" for column, mine, printed in pairs if mine != printed]
        if unequal:
            differences[compared] = f"epoch {theirs['epoch']:.0f}, {', '.join(unequal)}"
    both = min(len(records), len(published))
    first = min(differences, default=both)
    return Agreement(len(published), both - len(differences), first, differences.get(first))


def _ours(record: Record, column: str) -> float:
    name = "mpcs_count" if column == "mpcs" else column
    if name not in record:
        raise ValueError(f"columns of published records must be among {', '.join(record)}, but got {column}.")
    return record[name]


def _printed(value: float) -> str:
    return f"{value:.4f}".replace("-0.0000", "0.0000")
