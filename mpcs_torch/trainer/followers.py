"""Parts of a run that follow a metric of its epochs: scheduler, loss scale and selector."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from mpcs_torch.errors import quoted, shown
from mpcs_torch.metrics.by_name import Direction
from mpcs_torch.trainer.config.metrics import TEST


@dataclass(frozen=True)
class Follower:
    """One place of a config that names a column of the records."""

    place: str
    column: str
    needs: Literal["value", "direction", "lower_is_better"]


def follower_problems(
    followers: Collection[Follower], measured: Collection[str], directions: Mapping[str, Direction]
) -> Iterator[str]:
    """Give a message for each follower of a column that is not measured, is measured on test data, or does not fit.

    Args:
        followers: All places that name a column.
        measured: The metrics of the run.
        directions: For each metric that has one, which way is better.
    """
    for follower in followers:
        place, column = follower.place, follower.column
        if column.startswith(TEST):
            yield f"{place}: {refuse_test_column(column)}"
        elif column not in measured:
            names = ", ".join(islice(measured, 30))
            yield f"{place}: must be one of the run's metrics, {names}, but is {quoted(column)}"
        elif follower.needs != "value" and column not in directions:
            yield f"{place}: must be a metric with a direction (higher_is_better), but {quoted(column)} has none"
        elif follower.needs == "lower_is_better" and directions[column] == "max":
            yield f"{place}: must be a metric that is better when lower, but {quoted(column)} is better when higher"


def refuse_test_column(column: str) -> str:
    """Return the reason why nothing may be chosen by a column of test data."""
    return (
        f"{shown(column)} is measured on test data: whatever is chosen by it looks better there than on new data. "
        "Hold out validation samples (data.validation_fraction), measure the epochs on them (epochs.samples: "
        f"validation), and choose by {shown(column.removeprefix(TEST))}"
    )
