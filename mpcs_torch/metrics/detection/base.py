"""What the detection metrics share: they keep every score, and read their values from the errors at each threshold."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import nan
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import torch
from torch import Tensor

from mpcs_torch.functional.detection.curve import ErrorCounts, count_errors, warn_if_reversed
from mpcs_torch.functional.inputs.checks import check_num_classes
from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.trials import IGNORED, flatten_trials, trial_rules
from mpcs_torch.metrics.base import SumMetric

ClassAverage = Literal["macro", "pooled", "none"]
Result = TypeVar("Result")


class Problem(NamedTuple):
    """Targets against nontargets: one class against the rest, or all there is."""

    place: int
    name: str
    """As messages end: empty, or the class."""
    scores: Tensor
    """(M,), float64."""
    labels: Tensor
    """(M,), bool."""

    @property
    def lacks(self) -> str | None:
        """What does not occur."""
        if not self.labels.any():
            return "targets"
        return "nontargets" if self.labels.all() else None


class ScoreMetric(SumMetric):
    """Keeps scores in the type that they came in, and a byte for each label.

    The states depend on the scores alone: in a MetricCollection, metrics that read other values from the same scores
    share them.
    """

    scores: list[Tensor]
    labels: list[Tensor]

    def __init__(
        self,
        num_classes: int | None = None,
        *,
        average: ClassAverage = "macro",
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        if num_classes is not None:
            check_num_classes(num_classes)
        if average not in get_args(ClassAverage):
            raise ValueError(f"average must be 'macro', 'pooled' or 'none', but got {average!r}.")
        super().__init__(locals(), value_rules=trial_rules(num_classes), state_settings=("num_classes", "ignore_index"))
        self._of_one_batch = False
        self.add_state("scores", [], dist_reduce_fx="cat")
        self.add_state("labels", [], dist_reduce_fx="cat")

    @property
    def is_by_class(self) -> bool:
        """Whether each class is a problem of its own."""
        return self.problem_count > 1

    @property
    def problem_count(self) -> int:
        """How many problems there are."""
        return 1 if self.num_classes is None or self.average == "pooled" else self.num_classes

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch: preds and target of (N, ...); with classes preds (N, C, ...) and target (N, ...)."""
        trials = flatten_trials(preds.detach(), target, num_classes=self.num_classes, ignore_index=self.ignore_index)
        self.admit(trials.faults)
        self.scores.append(trials.scores.clone())  # may be the caller's own
        self.labels.append(trials.labels)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Update with a batch and return its own value: NaN if the batch lacks targets or nontargets."""
        self._of_one_batch = True
        try:
            return super().forward(*args, **kwargs)
        finally:
            self._of_one_batch = False

    def each_problem(self, value: Callable[[Problem], Result], missing: Callable[[Tensor], Result]) -> list[Result]:
        """A value of each problem, from the scores of all processes; one of NaN where a single batch lacks a class."""
        with self._gathered():
            self.check_computable()
            problems = self._problems()
        return [value(p) if self._is_whole(p) else missing(p.scores.new_tensor(nan)) for p in problems]

    def stacked(self, values: list[Tensor]) -> Tensor:
        """Values of problems, with classes that are not pooled in one more dimension."""
        return torch.stack(values, dim=-1) if self.is_by_class else values[0]

    def averaged(self, values: Tensor) -> Tensor:
        """Over the classes, where an average is wanted."""
        return values.mean(dim=-1) if self.is_by_class and self.average == "macro" else values

    def errors_of(self, problem: Problem) -> ErrorCounts:
        """The errors at each threshold; warns if scores seem to be reversed."""
        counts = count_errors(problem.scores, problem.labels)
        if not self._of_one_batch:
            warn_if_reversed(counts, problem.name)
        return counts

    def _is_whole(self, problem: Problem) -> bool:
        """Whether both targets and nontargets occur, as they must but in a single batch."""
        if problem.lacks is not None and not self._of_one_batch:
            kind = type(self).__name__
            raise ValueError(f"{kind} needs targets and nontargets, but has seen no {problem.lacks}{problem.name}.")
        return problem.lacks is None

    def _problems(self) -> list[Problem]:
        # After processes have shared them, the lists are tensors.
        scores, labels = (torch.cat(held) if isinstance(held, list) else held for held in (self.scores, self.labels))
        if widest_float(scores.device) != torch.float64:
            scores, labels = scores.cpu(), labels.cpu()
        counted = labels != IGNORED
        scores, labels = scores[counted].double(), labels[counted]
        if self.num_classes is None:
            return [Problem(0, "", scores, labels == 1)]
        is_class = labels.unsqueeze(1) == torch.arange(self.num_classes, device=labels.device)
        if not self.is_by_class:
            return [Problem(0, "", scores.flatten(), is_class.flatten())]
        return [Problem(c, f" of class {c}", scores[:, c], is_class[:, c]) for c in range(self.num_classes)]

    def _gathered(self) -> AbstractContextManager[None]:
        """What `compute` does by itself: the scores of all processes, for whatever else reads them."""
        if self._is_synced:
            return nullcontext()
        gathered: AbstractContextManager[None] = self.sync_context(
            dist_sync_fn=self.dist_sync_fn, should_sync=self._to_sync, should_unsync=self._should_unsync
        )
        return gathered

    def _sync_dist(self, *args: Any, **kwargs: Any) -> None:
        # A process without batches must send what the others do.
        scores = torch.zeros(0, *([] if self.num_classes is None else [self.num_classes]), device=self.device)
        labels = torch.zeros(0, dtype=torch.int8, device=self.device)
        self.scores = [torch.cat([scores, *self.scores]).to(widest_float(self.device))]
        self.labels = [torch.cat([labels, *self.labels]).to(torch.int32)]
        super()._sync_dist(*args, **kwargs)
