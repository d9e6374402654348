"""SumMetric, the base of all metrics: its states are sums over samples or lists of samples, and change atomically."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities.distributed import gather_all_tensors
from torchmetrics.utilities.exceptions import TorchMetricsUserError

from mpcs_torch.errors import InvalidValueError, Rule
from mpcs_torch.functional.inputs.checks import widest_float
from mpcs_torch.functional.inputs.faults import (
    Fault,
    count_faults,
    raise_first,
    raise_for_counts,
)
from mpcs_torch.functional.measure import Measure, fingerprint

NO_SETTINGS = ("self", "__class__", "kwargs", "validate_args")
"""The names of local variables in a constructor that are not settings of the metric."""


class KeptSamples(NamedTuple):
    """The shape and the dtype of the tensors in a list state."""

    shape: tuple[int, ...]
    """The shape of a sample."""
    dtype: torch.dtype | None
    """The dtype for gathering; None for float64 (float32 on MPS)."""


class SumMetric(Metric):
    """A metric whose states are sums over samples, so states of batches, other metrics and processes can be added.

    `update`, `forward`, `reset`, `merge_state` and `load_state_dict` work on a shallow copy, and then replace the
    states of the metric in one step. So a batch is counted completely or not at all, even after an error or Ctrl-C, or
    if a signal handler saves a checkpoint. A subclass that changes states in place (``self.x += 1``) is not atomic.
    During a distributed `compute`, states are those of all processes. As in torchmetrics, a metric is not thread-safe.

    On the CPU, `update` raises an error for invalid values, and changes nothing. On other devices, this would force
    a synchronization. So `update` only counts the invalid values, and `compute`, which synchronizes, raises the error.

    Sums are always float64 (float32 on MPS). `set_dtype` and module casts do not change them, because half precision
    would lose counts. The attribute `dtype` of torchmetrics does not apply to them.
    """

    full_state_update = False
    is_differentiable = False
    higher_is_better: bool | None = False
    plot_lower_bound: float | None = 0.0
    __jit_unused_properties__: ClassVar[list[str]] = [
        *Metric.__jit_unused_properties__,
        "update_count",
    ]
    """The attributes that `torch.jit.script` skips in a module that has a metric."""

    batch_count: Tensor
    """Scalar, int64: the number of batches."""
    faults: Tensor
    """(rules,), int64: the number of violations of each rule in ``value_rules``."""
    settings: Tensor
    """(16,), int64: a fingerprint of the settings that the states depend on."""

    def __init__(
        self,
        arguments: Mapping[str, Any],
        *,
        value_rules: Sequence[Rule],
        state_settings: Sequence[str] | Mapping[str, Any],
    ) -> None:
        """Store the settings of a metric as attributes, and declare the states that all metrics have.

        ``arguments`` are the ``locals()`` of the subclass's constructor, with the arguments of `torchmetrics.Metric` in
        ``kwargs``. Settings that are tensors or measures move with the metric to other devices. They are not buffers,
        because DistributedDataParallel would broadcast buffers at each step. ``value_rules`` are the beginnings of the
        error messages about invalid values. ``state_settings`` are the settings that change states, or their
        names.
        """
        super().__init__(**arguments["kwargs"])
        self.validate_args: bool = arguments["validate_args"]
        self._kept = dict[str, KeptSamples]()
        """The list states, by name."""
        settings = {
            name: value for name, value in arguments.items() if name not in NO_SETTINGS
        }
        for name, value in settings.items():
            setattr(self, name, value)
        self._moving = [
            name for name, value in settings.items() if isinstance(value, Tensor | Measure)
        ]
        self.value_rules = tuple(value_rules)
        self.add_sum("batch_count", dtype=torch.int64)
        self.add_sum("faults", shape=(len(self.value_rules),), dtype=torch.int64)
        # A MetricCollection shares states that are equal after one batch; the fingerprint prevents accidental sharing.
        if not isinstance(state_settings, Mapping):
            state_settings = {name: getattr(self, name) for name in state_settings}
        self.add_state("settings", fingerprint(state_settings), dist_reduce_fx="max")

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
            """Narrow the return type for type checkers; in torchmetrics, it is Any."""

        def __getattr__(self, name: str) -> Any:
            """Declare to type checkers that settings are attributes."""

    def add_sum(
        self, name: str, *, shape: tuple[int, ...] = (), dtype: torch.dtype = torch.float64
    ) -> None:
        """Declare a state that starts at 0, and is summed over batches, merged metrics and processes."""
        self.add_state(name, torch.zeros(shape, dtype=dtype), dist_reduce_fx="sum")

    def add_samples(
        self, name: str, *, shape: tuple[int, ...] = (), dtype: torch.dtype | None = None
    ) -> None:
        """Declare a list state, to which each batch adds a tensor (M, *shape).

        To gather the states of processes, the tensors are converted to ``dtype``; None is float64 (float32 on MPS).
        """
        self.add_state(name, [], dist_reduce_fx="cat")
        self._kept[name] = KeptSamples(shape, dtype)

    def kept_samples(self, name: str) -> Tensor:
        """Return the list state ``name``, concatenated to a tensor (M, *shape) of the M samples so far."""
        kept: list[Tensor] | Tensor = getattr(self, name)
        if isinstance(kept, Tensor):  # after a sync
            return kept
        return torch.cat(kept)

    def admit(self, find_faults: Callable[[], Sequence[Fault]]) -> None:
        """Count a batch; with ``validate_args``, raise an error for invalid values, or count them if not on the CPU."""
        if self.validate_args:
            faults = find_faults()
            if self.batch_count.is_cpu and not torch.compiler.is_compiling():
                raise_first(faults)
            else:
                self.add(faults=count_faults(faults))
        self.__dict__["batch_count"] = self.batch_count + 1

    def add(self, **batch: Tensor) -> None:
        """Add each keyword argument to the state of the same name: add to a sum state, or append to a list state."""
        # The setattr of torchmetrics and PyTorch takes longer than a sum.
        states = self.__dict__
        for name, value in batch.items():
            state = states[name]
            if isinstance(state, list):
                states[name] = _appended(state, value)
            else:
                states[name] = state + value

    @property
    def update_count(self) -> int:
        """Return the number of batches, including those in merged and loaded states, and in compiled updates."""
        return max(self._update_count, int(self.batch_count))

    def check_computable(self) -> None:
        """Raise a ValueError if `admit` counted invalid values, or if there was no batch."""
        raise_for_counts(self.faults, self.value_rules)
        if not self.batch_count:
            raise InvalidValueError("not_updated", f"{type(self).__name__}.compute")

    def _shallow_copy(self) -> Self:
        """Return a copy with the same tensors, but new lists; its ``__dict__`` can replace that of the metric."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        for name, default in self._defaults.items():
            kept = copy.__dict__[name]
            if isinstance(default, list) and isinstance(kept, list):
                copy.__dict__[name] = list(kept)
        for name in ("update", "compute"):  # these wrappers are bound to the original
            copy.__dict__.pop(name, None)
        return copy

    def _wrap_update(self, update: Callable[..., None]) -> Callable[..., None]:
        """Wrap `update` to run on a shallow copy, whose states replace those of the metric if there is no error.

        Unlike this wrapper, that of torchmetrics counts rejected batches, and makes torch.compile recompile every time.
        """

        @wraps(update)
        def run(*args: Any, **kwargs: Any) -> None:
            is_compiling = torch.compiler.is_compiling()
            if not is_compiling:
                self._check_weights(len(args), kwargs)
            copy = self if is_compiling else self._shallow_copy()
            with torch.no_grad():
                type(self).update(copy, *args, **kwargs)
            if is_compiling:
                self._computed = None
                self._update_count = 1
                return
            if self.compute_on_cpu:
                copy._move_list_states_to_cpu()
            self.__dict__.update(
                copy.__dict__, _computed=None, _update_count=self._update_count + 1
            )

        return run

    def _check_weights(self, positional: int, named: Mapping[str, Any]) -> None:
        """Refuse weights, by name or as one positional argument too many, for an `update` that takes none."""
        is_named = "sample_weight" in named
        # Two arguments are predictions and labels, which need no look at the signature.
        if positional <= 2 and not is_named:
            return
        names = _arguments_of_update(type(self))
        if "sample_weight" in names:
            return
        if is_named or positional > len(names):
            raise InvalidValueError(
                "takes_no_weights", "sample_weight", metric=type(self).__name__
            )

    @torch.jit.unused
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch to the states, and return the value of the batch; the states are not reset in between."""
        if self._is_synced:
            raise TorchMetricsUserError(
                "The Metric shouldn't be synced when performing ``forward``. HINT: Did you forget to call ``unsync`` ?."
            )
        batch = self._shallow_copy()
        batch.reset()
        batch._to_sync = self.dist_sync_on_step
        # A shallow copy has no wrappers, because those of torchmetrics are bound to the original.
        batch._wrap_update(type(self).update)(*args, **kwargs)
        compute = type(self).compute.__get__(batch)
        value = batch._wrap_compute(compute)()
        batch._update_count = self._update_count + 1
        batch._reduce_states(self.metric_state)
        self.__dict__.update(
            batch.__dict__, _to_sync=self._to_sync, _computed=None, _forward_cache=value
        )
        return value

    def reset(self) -> None:
        """Reset all states; lists are replaced, not emptied, because `torchmetrics.wrappers.Running` keeps them."""
        copy = self._shallow_copy()
        for name, default in self._defaults.items():
            if isinstance(default, list):
                copy.__dict__[name] = []
        super(SumMetric, copy).reset()
        self.__dict__.update(copy.__dict__)

    def merge_state(self, incoming_state: "dict[str, Any] | Metric") -> None:
        """Add the states of another metric with the same settings, or its `metric_state`, to this metric."""
        states = incoming_state
        if isinstance(incoming_state, Metric):
            states = incoming_state.metric_state
        if isinstance(states, dict):
            self._check_settings(states.get("settings"))
        copy = self._shallow_copy()
        super(SumMetric, copy).merge_state(incoming_state)
        # torchmetrics would keep the cached value and the number of updates from before the merge.
        self.__dict__.update(
            copy.__dict__, _computed=None, _update_count=int(copy.batch_count)
        )

    def _reduce_states(self, incoming_state: dict[str, Any]) -> None:
        copy = self._shallow_copy()
        super(SumMetric, copy)._reduce_states(incoming_state)
        for name in self._kept:
            kept: list[Tensor] = []
            for rows in getattr(copy, name):
                kept = _appended(kept, rows)
            copy.__dict__[name] = kept
        self.__dict__.update(copy.__dict__)

    def _check_settings(self, settings: object) -> None:
        is_equal = isinstance(settings, Tensor) and torch.equal(
            settings.to(self.settings), self.settings
        )
        if not is_equal:
            raise InvalidValueError("other_settings", "the state", type=type(self).__name__)

    @contextmanager
    def sync_context(
        self, *args: Any, should_unsync: bool = True, **kwargs: Any
    ) -> Iterator[None]:
        """Sync the states at the start of the context, and unsync them at its end, even after an error."""
        self.sync(*args, **kwargs)
        try:
            yield
        finally:
            self.unsync(should_unsync=self._is_synced and should_unsync)

    def gathered(self) -> AbstractContextManager[None]:
        """Return a context in which states are those of all processes, for methods other than `compute`."""
        if self._is_synced:
            return nullcontext()
        gathered: AbstractContextManager[None] = self.sync_context(
            dist_sync_fn=self.dist_sync_fn,
            should_sync=self._to_sync,
            should_unsync=self._should_unsync,
        )
        return gathered

    def _sync_dist(
        self, dist_sync_fn: Any = gather_all_tensors, process_group: Any = None
    ) -> None:
        """Gather the states; for a process without batches, gather empty tensors of the right shape and dtype."""
        for name, samples in self._kept.items():
            dtype = samples.dtype or widest_float(self.device)
            empty = torch.zeros(0, *samples.shape, dtype=dtype, device=self.device)
            self.__dict__[name] = [torch.cat([empty, *getattr(self, name)])]
        super()._sync_dist(dist_sync_fn, process_group)

    def _apply(
        self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = ""
    ) -> torch.nn.Module:
        """Move states and settings between devices, but ignore dtype casts such as ``module.to(torch.bfloat16)``."""

        def move(tensor: Tensor) -> Tensor:
            device = fn(tensor.new_empty(0, dtype=torch.float32)).device
            if tensor.dtype == torch.float64:
                tensor = tensor.to(widest_float(device))
            moved = fn(tensor)
            return moved if moved.dtype == tensor.dtype else tensor.to(device)

        for name in self._moving:
            setting = getattr(self, name)
            if isinstance(setting, Measure):
                self.__dict__[name] = setting.moved(move)
            else:
                self.__dict__[name] = move(setting)
        return super()._apply(move, exclude_state)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        """Load the states of a metric with the same settings, and move them to the device and dtypes of this metric.

        Tensors in lists keep their dtype.
        """
        saved = {
            name: state_dict[prefix + name]
            for name in self._defaults
            if prefix + name in state_dict
        }
        if saved:
            self._check_settings(saved.get("settings"))
        for name, state in saved.items():
            current = getattr(self, name)
            if isinstance(current, Tensor):
                state_dict[prefix + name] = state.to(current)
            else:
                state_dict[prefix + name] = [kept.to(self.device) for kept in state]
        copy = self._shallow_copy()
        super(SumMetric, copy)._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        if saved:  # torchmetrics does not save the number of updates
            self.__dict__.update(
                copy.__dict__, _computed=None, _update_count=int(copy.batch_count)
            )

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw the figure of all samples so far or, with ``val``, of given values.

        In a distributed run, call this method in every process, because it gathers the states of all processes.

        Args:
            val: A value that `compute` or `forward` returned, or a list of such values, one for each step. Default: the
                figure of the samples, such as a curve or a confusion matrix.
            ax: Axes to draw on; other axes of the same figure are unchanged. Default: a new figure of pyplot.

        Returns:
            The figure and the axes.

        Raises:
            ModuleNotFoundError: If matplotlib is missing.
            ValueError: In the same cases as `compute`.
        """
        if val is not None:
            return self._plot(val, ax)
        value = self.compute()
        with self.gathered(), drawing_on(ax) as on:
            figure = self._draw(titled(type(self).__name__, value), value, on)
        return figure, figure.axes[0] if ax is None else ax

    def _draw(self, title: str, value: Any, on: Any) -> Any:
        """Draw the samples so far, and ``value``, into axes or an empty figure, ``on``; return the figure."""
        from mpcs_torch.plots.bars import value_scale

        better = "0 is best"
        if self.higher_is_better is not None:
            better = "higher is better" if self.higher_is_better else "lower is better"
        return value_scale(value.item(), self._references(), title, xlabel=better, on=on)

    def _references(self) -> dict[str, float]:
        """Return the values that the figure shows for comparison, by name."""
        return {"perfect": 1.0 if self.higher_is_better else 0.0}


@cache
def _arguments_of_update(kind: type[SumMetric]) -> tuple[str, ...]:
    """Return the names of the arguments of ``update``; kept, because reading a signature takes longer than a sum."""
    _, *names = signature(kind.update).parameters
    return tuple(names)


def _appended(kept: list[Tensor], rows: Tensor) -> list[Tensor]:
    """Return a list with ``rows`` appended and small tensors merged, because each tensor takes about 1 kB."""
    kept = [*kept, rows]
    # A tensor is merged with one of at most its length, so lengths fall, and each row is copied only a few times.
    while len(kept) > 1 and len(kept[-2]) <= len(kept[-1]):
        kept[-2:] = [torch.cat(kept[-2:])]
    return kept


@contextmanager
def drawing_on(ax: Any) -> Iterator[Any]:
    """Yield ``ax``, or, if ``ax`` is None, a new figure of pyplot, which is closed if drawing fails."""
    try:
        from matplotlib import pyplot  # notebooks show the figures of pyplot
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "plot needs matplotlib: pip install 'mpcs_torch[plot]'"
        ) from None
    if ax is not None:
        yield ax
        return
    figure = pyplot.figure(layout="constrained")
    try:
        yield figure
    except BaseException:
        pyplot.close(figure)
        raise


def titled(name: str, value: Any) -> str:
    """Return a title: ``name``, and the numbers in the tensor ``value``, or the mean of more than three numbers."""
    if not isinstance(value, Tensor):
        return name
    if value.numel() > 3:  # they do not fit in a title
        return f"{name}, mean of {value.numel()} values {value.nanmean().item():.4g}"
    numbers = ", ".join(f"{number:.4g}" for number in value.flatten().tolist())
    return f"{name} {numbers}"
