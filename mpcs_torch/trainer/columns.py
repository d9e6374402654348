"""What each turn measures: the names of the values, and which way is better."""

from typing import Literal, get_args

from mpcs_torch.learning.selection import Direction

RecordColumn = Literal[
    "accuracy",
    "f1_macro",
    "mcc",
    "mean_squared_error",
    "cross_entropy",
    "mpcs",
    "mpcs_count",
    "dangerous",
    "test_accuracy",
]
HIGHER_IS_BETTER = {name: name in ("accuracy", "f1_macro", "mcc", "test_accuracy") for name in get_args(RecordColumn)}
DIRECTIONS: dict[str, Direction] = {name: "max" if higher else "min" for name, higher in HIGHER_IS_BETTER.items()}
COLUMNS = ("turn", *HIGHER_IS_BETTER)
