"""SumMetric: the base of all Metrics. Its states are sums over samples, or the samples, and change in one step."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import reduce, wraps
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities.distributed import gather_all_tensors
from torchmetrics.utilities.exceptions import TorchMetricsUserError

from mpcs_torch.functional.inputs.checks import widest_float
from mpcs_torch.functional.inputs.faults import Fault, count_faults, raise_first, raise_for_counts
from mpcs_torch.metrics.plottable import PlottableMetric

NO_SETTINGS = ("self", "__class__", "kwargs", "validate_args")
"""Local variables of a constructor that are not settings of the metric."""


class SumMetric(PlottableMetric):
    """A metric whose states are sums over samples, so that batches, merged metrics and processes are added up.

    `update`, `forward`, `reset`, `merge_state` and `load_state_dict` work on a copy and take over its states in one
    step, so a batch counts as a whole or not at all: after an error, after Ctrl-C, and for a signal handler that saves
    a checkpoint. What a subclass changes in place (``self.x += 1``) is changed at once. While several processes
    compute, states are those of all of them. As in torchmetrics, a metric is for one thread at a time.

    On the CPU, a batch with bad values is refused by its `update` and changes nothing. On other devices, looking at
    values would stall the device, so bad samples are counted, and `compute`, which waits anyway, raises the error.

    Sums are float64 (float32 on MPS) and stay so: `set_dtype` and the casts of modules do not change them, because
    half precision would lose counts; `dtype`, which torchmetrics uses for states of its own, says nothing about them.
    """

    full_state_update = False
    is_differentiable = False
    higher_is_better: bool | None = False
    __jit_unused_properties__: ClassVar[list[str]] = [*Metric.__jit_unused_properties__, "update_count"]
    """Of what `torch.jit.script` passes over in a module that holds a metric."""

    batch_count: Tensor
    """Scalar, int64: the number of batches."""
    faults: Tensor
    """(rules,), int64: the number of samples that break each rule."""
    settings: Tensor
    """(16,), int64: a fingerprint of the settings that the states depend on."""

    def __init__(
        self, arguments: Mapping[str, Any], *, value_rules: Sequence[str], state_settings: Sequence[str] | None = None
    ) -> None:
        """Store the settings of a metric, so that only the signature of its constructor lists them.

        Args:
            arguments: The ``locals()`` of the constructor: the settings, values derived from them, ``validate_args``,
                and in ``kwargs`` the arguments of `torchmetrics.Metric`. Each setting becomes an attribute; tensors
                move with the metric, but are no buffers, which DistributedDataParallel would send at each step.
            value_rules: The rules for the values of a batch, as error messages begin.
            state_settings: The names of the attributes that the states depend on. Default: all settings.
        """
        super().__init__(**arguments["kwargs"])
        self.validate_args: bool = arguments["validate_args"]
        self._kept: dict[str, tuple[tuple[int, ...], torch.dtype | None]] = {}
        """By state that keeps samples: the shape of one, and the dtype between processes, None for the widest float."""
        settings = {name: value for name, value in arguments.items() if name not in NO_SETTINGS}
        for name, value in settings.items():
            setattr(self, name, value)
        self._moving = [name for name, value in settings.items() if isinstance(value, Tensor)]
        self.value_rules = tuple(value_rules)
        self.add_sum("batch_count", dtype=torch.int64)
        self.add_sum("faults", shape=(len(self.value_rules),), dtype=torch.int64)
        # A MetricCollection shares states that are equal after the first batch; this one tells equal ones by chance.
        shaping = {name: getattr(self, name) for name in (settings if state_settings is None else state_settings)}
        self.add_state("settings", fingerprint(shaping), dist_reduce_fx="max")

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
            """Tell type checkers that the value of a batch is a tensor; torchmetrics says Any."""

        def __getattr__(self, name: str) -> Any:
            """Tell type checkers that settings have any type."""

    def add_sum(self, name: str, *, shape: tuple[int, ...] = (), dtype: torch.dtype = torch.float64) -> None:
        """Declare a state that starts at 0, and that is summed over batches, merged metrics and processes."""
        self.add_state(name, torch.zeros(shape, dtype=dtype), dist_reduce_fx="sum")

    def add_samples(self, name: str, *, shape: tuple[int, ...] = (), dtype: torch.dtype | None = None) -> None:
        """Declare a state that keeps a tensor (M, *shape) of each batch, which processes exchange in this dtype."""
        self.add_state(name, [], dist_reduce_fx="cat")
        self._kept[name] = shape, dtype

    def kept_samples(self, name: str) -> Tensor:
        """Return what such a state has kept as one tensor."""
        kept: list[Tensor] | Tensor = getattr(self, name)
        return torch.cat(kept) if isinstance(kept, list) else kept  # after a sync between processes it is a tensor

    def admit(self, find_faults: Callable[[], Sequence[Fault]]) -> None:
        """Count a batch. With ``validate_args``, find its bad values: raise on the CPU, count them elsewhere."""
        if self.validate_args:
            faults = find_faults()
            if self.batch_count.is_cpu and not torch.compiler.is_compiling():
                raise_first(faults)
            else:
                self.add(faults=count_faults(faults))
        self.__dict__["batch_count"] = self.batch_count + 1

    def add(self, **batch: Tensor) -> None:
        """Add the sums of a batch, and keep its samples, under the names of states."""
        states = self.__dict__  # not by setattr: the checks of names by torchmetrics and PyTorch take longer than a sum
        for name, value in batch.items():
            state = states[name]
            states[name] = _appended(state, value) if isinstance(state, list) else state + value

    @property
    def update_count(self) -> int:
        """Return the number of batches, with those of compiled updates and of merged and loaded states."""
        return max(self._update_count, int(self.batch_count))

    def check_computable(self) -> None:
        """Raise a ValueError if values were bad, or if there was no batch."""
        raise_for_counts(self.faults, self.value_rules)
        if not self.batch_count:
            raise ValueError(f"{type(self).__name__}.compute needs at least one batch: call update first.")

    def _shadow(self) -> Self:
        """Return a copy, whose ``__dict__`` can replace that of the metric in one step; it has lists of its own."""
        shadow = object.__new__(type(self))
        shadow.__dict__.update(self.__dict__)
        for name, default in self._defaults.items():
            if isinstance(default, list) and isinstance(kept := shadow.__dict__[name], list):
                shadow.__dict__[name] = list(kept)
        for name in ("update", "compute"):  # those of the class are for the copy itself
            shadow.__dict__.pop(name, None)
        return shadow

    def _wrap_update(self, update: Callable[..., None]) -> Callable[..., None]:
        """Run `update` on a copy, and take over what it did if it succeeds.

        That of torchmetrics counts refused batches, and compiled code is compiled anew each time that it counts.
        """

        @wraps(update)
        def run(*args: Any, **kwargs: Any) -> None:
            is_compiling = torch.compiler.is_compiling()
            shadow = self if is_compiling else self._shadow()
            with torch.no_grad():
                type(self).update(shadow, *args, **kwargs)
            if is_compiling:
                self._computed, self._update_count = None, 1
                return
            if self.compute_on_cpu:
                shadow._move_list_states_to_cpu()
            self.__dict__.update(shadow.__dict__, _computed=None, _update_count=self._update_count + 1)

        return run

    @torch.jit.unused
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Update with a batch and return its value; torchmetrics resets the metric first, which handlers would see."""
        if self._is_synced:
            raise TorchMetricsUserError(
                "The Metric shouldn't be synced when performing ``forward``. HINT: Did you forget to call ``unsync`` ?."
            )
        batch = self._shadow()
        batch.reset()
        batch._to_sync = self.dist_sync_on_step
        batch._wrap_update(type(self).update)(*args, **kwargs)
        value = batch._wrap_compute(type(self).compute.__get__(batch))()
        batch._update_count = self._update_count + 1
        batch._reduce_states(self.metric_state)
        self.__dict__.update(batch.__dict__, _to_sync=self._to_sync, _computed=None, _forward_cache=value)
        return value

    def reset(self) -> None:
        """Forget all batches; lists become new ones, because `torchmetrics.wrappers.Running` holds the old ones."""
        shadow = self._shadow()
        for name, default in self._defaults.items():
            shadow.__dict__[name] = [] if isinstance(default, list) else shadow.__dict__[name]
        super(SumMetric, shadow).reset()
        self.__dict__.update(shadow.__dict__)

    def merge_state(self, incoming_state: "dict[str, Any] | Metric") -> None:
        """Add the states of another metric with the same settings, or of its `metric_state`."""
        other = incoming_state.metric_state if isinstance(incoming_state, Metric) else incoming_state
        if isinstance(other, dict):
            self._check_settings(other.get("settings"))
        shadow = self._shadow()
        super(SumMetric, shadow).merge_state(incoming_state)
        # torchmetrics would return the value from before the merge, and warn that there was no update.
        self.__dict__.update(shadow.__dict__, _computed=None, _update_count=int(shadow.batch_count))

    def _reduce_states(self, incoming_state: dict[str, Any]) -> None:
        shadow = self._shadow()
        super(SumMetric, shadow)._reduce_states(incoming_state)
        for name in self._kept:
            nothing: list[Tensor] = []
            shadow.__dict__[name] = reduce(_appended, getattr(shadow, name), nothing)
        self.__dict__.update(shadow.__dict__)

    def _check_settings(self, settings: object) -> None:
        if not isinstance(settings, Tensor) or not torch.equal(settings.to(self.settings), self.settings):
            raise ValueError(f"the state must come from a {type(self).__name__} with the same settings, but does not.")

    @contextmanager
    def sync_context(self, *args: Any, should_unsync: bool = True, **kwargs: Any) -> Iterator[None]:
        """Sync meanwhile; that of torchmetrics leaves a metric synced whose `compute` raises an error."""
        self.sync(*args, **kwargs)
        try:
            yield
        finally:
            self.unsync(should_unsync=self._is_synced and should_unsync)

    def gathered(self) -> AbstractContextManager[None]:
        """Sync the states between processes for methods other than `compute`, which torchmetrics syncs itself."""
        if self._is_synced:
            return nullcontext()
        gathered: AbstractContextManager[None] = self.sync_context(
            dist_sync_fn=self.dist_sync_fn, should_sync=self._to_sync, should_unsync=self._should_unsync
        )
        return gathered

    def _sync_dist(self, dist_sync_fn: Any = gather_all_tensors, process_group: Any = None) -> None:
        """Let a process without batches send kept samples like the others': torchmetrics sends float32 (0,)."""
        for name, (shape, dtype) in self._kept.items():
            nothing = torch.zeros(0, *shape, dtype=dtype or widest_float(self.device), device=self.device)
            self.__dict__[name] = [torch.cat([nothing, *getattr(self, name)])]
        super()._sync_dist(dist_sync_fn, process_group)

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = "") -> torch.nn.Module:
        """Move states and settings, but do not cast them, as ``module.to(torch.bfloat16)`` would."""

        def move(tensor: Tensor) -> Tensor:
            device = fn(tensor.new_empty(0, dtype=torch.float32)).device
            if tensor.dtype == torch.float64:
                tensor = tensor.to(widest_float(device))
            moved = fn(tensor)
            return moved if moved.dtype == tensor.dtype else tensor.to(device)

        self.__dict__.update({name: move(getattr(self, name)) for name in self._moving})
        return super()._apply(move, exclude_state)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        """Load states of the same settings onto the device and into the dtype of the metric."""
        saved = {name: state_dict[prefix + name] for name in self._defaults if prefix + name in state_dict}
        if saved:
            self._check_settings(saved.get("settings"))
        for name, state in saved.items():
            now = getattr(self, name)
            state_dict[prefix + name] = (
                state.to(now) if isinstance(now, Tensor) else [kept.to(self.device) for kept in state]
            )
        shadow = self._shadow()
        super(SumMetric, shadow)._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        if saved:  # torchmetrics does not save the number of updates
            self.__dict__.update(shadow.__dict__, _computed=None, _update_count=int(shadow.batch_count))


def _appended(kept: list[Tensor], rows: Tensor) -> list[Tensor]:
    """Return a list with more rows in few tensors: one of a single row takes 1 kB."""
    kept = [*kept, rows]
    while len(kept) > 1 and len(kept[-2]) <= len(kept[-1]):
        kept[-2:] = [torch.cat(kept[-2:])]
    return kept


def fingerprint(settings: dict[str, Any]) -> Tensor:
    """Return 16 integers below 256 that differ between settings, even in a comparison with a tolerance."""
    plain = {key: _plain(value) for key, value in sorted(settings.items())}
    return torch.tensor(list(hashlib.sha256(repr(plain).encode()).digest()[:16]), dtype=torch.int64)


def _plain(setting: Any) -> Any:
    if not isinstance(setting, Tensor):
        return setting
    if setting.layout == torch.sparse_coo:
        return setting.indices().tolist(), setting.values().tolist()
    return setting.tolist()
