"""A pool without processes, where a test is not about them: each would import torchmetrics, for seconds."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_this_process(
    function: Callable[[Task], Result], tasks: Sequence[Task]
) -> Iterator[tuple[Task, Result]]:
    return ((task, function(task)) for task in tasks)
