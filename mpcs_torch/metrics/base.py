"""SumMetric: the base of all Metrics, whose states are sums that keep their precision and know their settings."""

import hashlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities.distributed import gather_all_tensors

from mpcs_torch.functional.inputs.checks import widest_float
from mpcs_torch.functional.inputs.faults import Fault, count_faults, raise_first, raise_for_counts
from mpcs_torch.functional.inputs.parts import in_own_threads
from mpcs_torch.metrics.waiting import Batch, WaitingBatches, joined

ValidateArgs = bool | Literal["eager"]
"""Whether to check the values of batches; ``"eager"``: in each `SumMetric.update`, instead of many batches at once."""


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


def _apart(states: Mapping[str, Any]) -> dict[str, Any]:
    """Return states that can be added to without changing the given ones: no tensor is changed in place."""
    return {name: list(state) if isinstance(state, list) else state for name, state in states.items()}


FEW_VALUES = 3
"""The number of values that fit a title."""


@contextmanager
def drawing_on(ax: Any) -> Iterator[Any]:
    """Yield the axes, or an empty figure of pyplot, which is closed if drawing fails."""
    try:
        from matplotlib import pyplot  # notebooks show its figures
    except ModuleNotFoundError:
        raise ModuleNotFoundError("plot needs matplotlib: pip install 'mpcs_torch[plot]'") from None
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
    """Return the name and the value: one number, a few, or the mean of more."""
    if not isinstance(value, Tensor):
        return name
    if value.numel() > FEW_VALUES:
        return f"{name}, mean of {value.numel()} values {value.nanmean().item():.4g}"
    return f"{name} {', '.join(f'{number:.4g}' for number in value.flatten().tolist())}"


NO_SETTINGS = ("self", "__class__", "kwargs", "validate_args")
"""Local variables of a constructor that are not settings of the metric."""


class SumMetric(Metric):
    """A metric whose states are sums over samples, so that batches, merged metrics and processes are added up.

    Small batches wait until there are many of them, or until a state is read, as by `compute`, `forward`, `state_dict`,
    pickling, `merge_state`, a sync or `reset`: then one call of the kernel serves all of them.

    On the CPU, a batch with bad values is refused and leaves the states as they were: at once, if it is large, if it
    differs from the last one in more than its number of rows, or with ``validate_args="eager"``; otherwise when
    its turn comes, by an error that names the update. On other devices looking at values would stall the device, so bad
    samples are counted, and `compute`, which waits for the device anyway, raises the error.
    """

    full_state_update = False
    is_differentiable = False
    higher_is_better: bool | None = False
    plot_lower_bound: float | None = 0.0
    lets_wait = True
    """Whether small batches may wait: not where a batch means more than its rows.

    Those of a subclass with an `update` of its own never do.
    """

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
                and in ``kwargs`` the arguments of `torchmetrics.Metric`. Each setting becomes an attribute, or a buffer
                if it is a tensor.
            value_rules: The rules for the values of a batch, as error messages begin.
            state_settings: The names of the attributes that the states depend on. Default: all settings.
        """
        super().__init__(**arguments["kwargs"])
        self._lock, self._waiting = RLock(), WaitingBatches()
        self._settled: dict[str, Any] = {}
        """The states without the batches that wait. While there are some, they are not attributes of the metric."""
        self.validate_args: ValidateArgs = arguments["validate_args"]
        self._lost: dict[str, tuple[Tensor, Tensor]] = {}
        """By state in float32: its sum, and by how much rounding has made that too large."""
        self._kept: dict[str, tuple[tuple[int, ...], torch.dtype | None]] = {}
        """By state that keeps samples: the shape of a sample, and the dtype between processes."""
        settings = {name: value for name, value in arguments.items() if name not in NO_SETTINGS}
        for name, value in settings.items():
            if isinstance(value, Tensor):
                self.register_buffer(name, value, persistent=False)
            else:
                setattr(self, name, value)
        self.value_rules = tuple(value_rules)
        self.add_sum("batch_count", dtype=torch.int64)
        self.add_sum("faults", shape=(len(self.value_rules),), dtype=torch.int64)
        # A MetricCollection shares the states of metrics whose states are equal after the first batch. A fingerprint
        # of the settings, held as a state, separates metrics whose other states are equal by chance.
        shaping = {name: getattr(self, name) for name in (settings if state_settings is None else state_settings)}
        self.add_state("settings", fingerprint(shaping), dist_reduce_fx="max")

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
            """Tell type checkers that the value of a batch is a tensor; torchmetrics says Any."""

    def __getattr__(self, name: str) -> Any:
        """Add the batches that wait before a state is read."""
        if name in self.__dict__.get("_settled", ()):
            with self._lock:
                self.settle()
                return self.__dict__[name]
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Add the batches that wait before a state is replaced."""
        if name in self.__dict__.get("_settled", ()):
            self.settle()
        super().__setattr__(name, value)

    def __hash__(self) -> int:
        """Return the hash of the object, as modules have it: loops ask for it at each step, and it reads no state."""
        return id(self)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled or copied, with the batches that wait added to the states."""
        self.settle()
        return {name: value for name, value in super().__getstate__().items() if name not in ("_lock", "_waiting")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over what was pickled or copied."""
        self.__dict__.update(_lock=RLock(), _waiting=WaitingBatches())
        super().__setstate__(state)

    def _wrap_update(self, update: Callable[..., None]) -> Callable[..., None]:
        """Let small batches wait."""
        update = in_own_threads(update) if self._is_ours() else update

        @wraps(update)
        def settle_and_update(*args: Any, **kwargs: Any) -> None:
            self.settle()
            update(*args, **kwargs)

        counted = super()._wrap_update(settle_and_update)

        @wraps(update)
        def run(*args: Any, **kwargs: Any) -> None:
            if torch.compiler.is_compiling():
                self.settle()
                self._computed = None
                self._update_count = self._update_count or 1  # a number that grows would be compiled anew each time
                with torch.no_grad():
                    update(*args, **kwargs)
                return
            with self._lock:
                if not self._holds(args, kwargs):
                    try:
                        counted(*args, **kwargs)
                    except BaseException:
                        self._waiting.forget_kind()  # the next batch like it must not wait
                        raise
                    return
                # Not by setattr: the checks of names by torchmetrics and PyTorch take half as long as the rest.
                self.__dict__.update(_computed=None, _update_count=self._update_count + 1)
                if self._waiting.is_full:
                    self.settle()

        return run

    def _wrap_compute(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        """Tell bad values of batches that waited after the sync, because other processes wait for this one."""
        wrapped = super()._wrap_compute(compute)

        @wraps(compute)
        def run(*args: Any, **kwargs: Any) -> Any:
            refused: Exception | None = None
            try:
                self.settle()
            except Exception as error:
                refused = error
            try:
                return wrapped(*args, **kwargs)
            finally:
                if refused is not None:
                    raise refused

        return run

    def _holds(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Let a batch wait if it can, and tell whether it does."""
        if self.validate_args == "eager" or self.compute_on_cpu or not self.lets_wait or not self._is_ours():
            return False
        if not self._waiting.hold((*args, *kwargs.values()), tuple(kwargs), self._update_count + 1):
            return False
        if not self._settled:
            self._settled = {name: self.__dict__[name] for name in self._defaults}
            self._hide_states()
        return True

    def _hide_states(self) -> None:
        for name in self._settled:
            self.__dict__.pop(name, None)

    def _is_ours(self) -> bool:
        """Tell whether `update` is of this package: another may do what is not for batches together, or in a thread."""
        return type(self).update.__module__.startswith(f"{__package__.partition('.')[0]}.")

    def settle(self) -> None:
        """Add the batches that wait to the states.

        Raises:
            ValueError: If values of a batch break a rule; the other batches have been added.
        """
        with nullcontext() if torch.compiler.is_compiling() else self._lock:
            if self._settled:
                self._settle()

    def _settle(self) -> None:
        states, batches = self._settled, self._waiting.take()
        self.__dict__.update(_apart(states))  # first, for other threads that read
        self._settled = {}
        try:
            with torch.no_grad():
                self._add_batch(joined(batches))
            self.__dict__["batch_count"] = self.batch_count + (len(batches) - 1)
        except Exception:  # the batch with the fault raises it again
            self.__dict__.update(_apart(states))
            self._add_each(batches)
        except BaseException:  # Ctrl-C: they wait on
            self._wait_again(states, batches)
            raise

    def _wait_again(self, states: dict[str, Any], batches: Sequence[Batch]) -> None:
        self._waiting.put_back(batches)
        self._settled = states
        self._hide_states()

    def _add_batch(self, values: tuple[Any, ...]) -> None:
        """Add a batch that has waited."""
        names = self._waiting.names
        by_place = len(values) - len(names)
        update: Callable[..., None] = type(self).update
        if not torch.compiler.is_compiling():
            update = in_own_threads(update)
        update(self, *values[:by_place], **dict(zip(names, values[by_place:], strict=True)))

    def _add_each(self, batches: Sequence[Batch]) -> None:
        """Add batches one by one, and then raise the first error, if there is one."""
        errors: list[tuple[Batch, Exception]] = []
        for place, batch in enumerate(batches):
            before = _apart({name: self.__dict__[name] for name in self._defaults})
            try:
                with torch.no_grad():
                    self._add_batch(batch.values)
            except Exception as error:
                errors.append((batch, error))
            except BaseException:
                self._wait_again(before, [*(refused for refused, _ in errors), *batches[place:]])
                raise
        if not errors:
            return
        (batch, first), *others = errors
        if isinstance(first, ValueError):
            numbers = ", ".join(str(other.number) for other, _ in others)
            also = f" Updates {numbers} were refused, too." if others else ""
            first.args = (f"update {batch.number}: {first}{also}",)
        raise first

    def add_sum(self, name: str, *, shape: tuple[int, ...] = (), dtype: torch.dtype = torch.float64) -> None:
        """Declare a state that starts at 0, and that is summed over batches, merged metrics and processes."""
        self.add_state(name, torch.zeros(shape, dtype=dtype), dist_reduce_fx="sum")

    def add_samples(self, name: str, *, shape: tuple[int, ...] = (), dtype: torch.dtype | None = None) -> None:
        """Declare a state that keeps a tensor (M, *shape) for each batch.

        Processes exchange it in this dtype, by default in the widest float.
        """
        self.add_state(name, [], dist_reduce_fx="cat")
        self._kept[name] = shape, dtype

    def kept_samples(self, name: str) -> Tensor:
        """Return what such a state has kept as one tensor."""
        kept: list[Tensor] | Tensor = getattr(self, name)
        return torch.cat(kept) if isinstance(kept, list) else kept  # after a sync between processes it is a tensor

    def _sync_dist(self, dist_sync_fn: Any = gather_all_tensors, process_group: Any = None) -> None:
        """Gather the states of all processes: those of a fixed size in one message, and each kept one in another."""
        group = process_group or self.process_group
        fixed = {name: state for name, state in self.metric_state.items() if isinstance(state, Tensor)}
        packed = torch.cat([state.reshape(-1).view(torch.uint8) for state in fixed.values()])
        sizes = [state.nbytes for state in fixed.values()]
        by_process = [torch.split(each, sizes) for each in dist_sync_fn(packed, group=group)]
        for (name, state), parts in zip(fixed.items(), zip(*by_process, strict=True), strict=True):
            # A clone begins where a number may begin.
            states = [part.clone().view(state.dtype).reshape(state.shape) for part in parts]
            reduction: Any = self._reductions[name]
            stacked = torch.stack(states)
            setattr(self, name, stacked if reduction is None else reduction(stacked))
        for name in (
            name for name in self._defaults if name not in fixed
        ):  # a process without batches must send tensors like the others'
            shape, dtype = self._kept.get(name, ((), None))
            nothing = torch.zeros(0, *shape, dtype=dtype or widest_float(self.device), device=self.device)
            kept = torch.cat([nothing, *getattr(self, name)])
            setattr(self, name, torch.cat(dist_sync_fn(kept, group=group)))

    def add(self, **sums: Tensor) -> None:
        """Add the sums of a batch to the states of the same names."""
        for name, value in sums.items():
            state = self.__dict__[name]
            # Not by setattr: the checks of names by torchmetrics and PyTorch take longer than the sum.
            self.__dict__[name] = state + value if state.dtype != torch.float32 else self._compensated(name, value)

    def _compensated(self, name: str, value: Tensor) -> Tensor:
        """Add to a float32 state, as devices without float64 have, what rounding has lost before too (Kahan)."""
        state: Tensor = self.__dict__[name]
        sum_of_last, lost = self._lost.get(name, (None, None))
        if lost is not None and sum_of_last is state:  # otherwise it was reset, loaded, merged or moved since
            value = value - lost
        total = state + value
        self._lost[name] = total, (total - state) - value
        return total

    def admit(self, find_faults: Callable[[], Sequence[Fault]]) -> None:
        """Count a batch. With ``validate_args``, find its bad values: raise on the CPU, count them elsewhere."""
        if self.validate_args:
            faults = find_faults()
            if self.batch_count.is_cpu and not torch.compiler.is_compiling():
                raise_first(faults)
            else:
                self.add(faults=count_faults(faults))
        self.__dict__["batch_count"] = self.batch_count + 1

    def check_computable(self) -> None:
        """Raise a ValueError if values were bad, or if there was no batch."""
        raise_for_counts(self.faults, self.value_rules)
        if not self.batch_count:
            raise ValueError(f"{type(self).__name__}.compute needs at least one batch: call update first.")

    def gathered(self) -> AbstractContextManager[None]:
        """Sync the states between processes for methods other than `compute`, which torchmetrics syncs itself."""
        if self._is_synced:
            return nullcontext()
        gathered: AbstractContextManager[None] = self.sync_context(
            dist_sync_fn=self.dist_sync_fn, should_sync=self._to_sync, should_unsync=self._should_unsync
        )
        return gathered

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Update with a batch and return the value of this batch; a refused batch leaves the metric as it was."""
        self.settle()
        # No update changes a tensor in place, so references to the states are enough to restore them.
        before = {**self.__dict__, **_apart(self.metric_state)}
        try:
            return super().forward(*args, **kwargs)
        except BaseException:
            self.__dict__.update(before)  # torchmetrics resets the states before it updates
            raise

    def reset(self) -> None:
        """Forget all batches; warn of bad values of those that waited, so that a collection is reset as a whole."""
        try:
            self.settle()
        except Exception as error:
            warnings.warn(f"batches that were forgotten had bad values: {error}", UserWarning, stacklevel=2)
        finally:
            super().reset()
            self._waiting.forget_kind()  # so that each epoch adds up in the same order, also in a resumed run

    def merge_state(self, incoming_state: "dict[str, Any] | Metric") -> None:
        """Add the sums of another metric with the same settings, or of its `metric_state`."""
        other = incoming_state.metric_state if isinstance(incoming_state, Metric) else incoming_state
        if isinstance(other, dict):
            self._check_settings(other.get("settings"))
        super().merge_state(incoming_state)
        self._computed = None  # otherwise torchmetrics returns the value from before the merge
        self._update_count = int(self.batch_count)

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw the metric's figure of all samples so far, or given values.

        Call it in all processes, because it gathers their states.

        Args:
            val: A value that `compute` or `forward` returned, or a list of them, one for each step. Default: the
                figure of the samples, such as a curve or a confusion matrix.
            ax: Axes to draw on; the rest of their figure stays as it is. Default: a new figure of pyplot.

        Returns:
            The figure and the axes.

        Raises:
            ModuleNotFoundError: If matplotlib is missing.
            ValueError: As `compute`.
        """
        if val is not None:
            return self._plot(val, ax)
        value = self.compute()
        with self.gathered(), drawing_on(ax) as on:
            figure = self._draw(titled(type(self).__name__, value), value, on)
        return figure, figure.axes[0] if ax is None else ax

    def _draw(self, title: str, value: Any, on: Any) -> Any:
        """Draw the figure of the samples so far, whose value this is, on axes or an empty figure; return the figure."""
        from mpcs_torch.plots.bars import value_scale

        better = "higher is better" if self.higher_is_better else "lower is better"
        return value_scale(value.item(), self._references(), title, xlabel=better, on=on)

    def _references(self) -> dict[str, float]:
        """Return values to compare with, by name."""
        return {"perfect": 1.0 if self.higher_is_better else 0.0}

    def _check_settings(self, settings: object) -> None:
        if not isinstance(settings, Tensor) or not torch.equal(settings.to(self.settings), self.settings):
            raise ValueError(f"the state must come from a {type(self).__name__} with the same settings, but does not.")

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = "") -> torch.nn.Module:
        def move(tensor: Tensor) -> Tensor:
            """Apply `fn` except for its casts: sums and counts in half precision would lose their values."""
            device = fn(tensor.new_empty(0, dtype=torch.float32)).device
            if tensor.dtype == torch.float64:
                tensor = tensor.to(widest_float(device))
            moved = fn(tensor)
            return moved if moved.dtype == tensor.dtype else tensor.to(device)

        with self._lock:
            states, self._settled = self._settled, {}
            self.__dict__.update(states)  # frameworks move metrics at each step: batches that wait move, and wait on
            try:
                module = super()._apply(move, exclude_state)
                self._waiting.apply(move)
            finally:
                self._settled = {name: self.__dict__[name] for name in states}
                self._hide_states()
        return module

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        saved = [name for name in self._defaults if prefix + name in state_dict]
        if saved:
            self._check_settings(state_dict.get(prefix + "settings"))
        before = {name: getattr(self, name) for name in saved}
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        for name in saved:
            state, loaded = before[name], getattr(self, name)
            if isinstance(state, Tensor):
                setattr(self, name, loaded.to(device=state.device, dtype=state.dtype))
            else:  # a list with one tensor for each batch
                setattr(self, name, [tensor.to(self.device) for tensor in loaded])
        if saved:
            self._computed = None
            self._update_count = int(self.batch_count)  # torchmetrics does not save it
