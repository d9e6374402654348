"""What all our metrics share: states that are sums, and that keep their precision, their settings and their honesty."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torchmetrics import Metric

from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.faults import Fault, count_faults, raise_first, raise_for_counts

NO_SETTINGS = ("self", "__class__", "kwargs", "validate_args")
"""Locals of a constructor that are no settings of the metric."""


class SumMetric(Metric):
    """A metric whose states are sums over samples, so that batches, merges and processes simply add.

    On the CPU, `update` refuses a batch with bad values at once and keeps what it held. Elsewhere looking would stop
    the device, so `update` counts the samples at fault and `compute`, which waits for the device anyway, refuses.
    """

    full_state_update = False
    is_differentiable = False
    higher_is_better: bool | None = False
    plot_lower_bound: float | None = 0.0

    batch_count: Tensor
    faults: Tensor
    settings: Tensor

    def __init__(
        self,
        arguments: Mapping[str, Any],
        *,
        value_rules: Sequence[str],
        state_settings: Sequence[str] | None = None,
    ) -> None:
        """Hold the settings of a metric, so that they are written in its constructor's signature alone.

        Args:
            arguments: The ``locals()`` of the constructor: the settings, ``validate_args``, and as ``kwargs`` the
                arguments of `torchmetrics.Metric`. A setting becomes an attribute, or a buffer if it is a tensor.
            value_rules: The rules that values of a batch may break.
            state_settings: The attributes that the states depend on. Default: all settings.
        """
        super().__init__(**arguments["kwargs"])
        self.validate_args = arguments["validate_args"]
        settings = {name: value for name, value in arguments.items() if name not in NO_SETTINGS}
        for name, value in settings.items():
            if isinstance(value, Tensor):
                self.register_buffer(name, value, persistent=False)
            else:
                setattr(self, name, value)
        self.value_rules = tuple(value_rules)
        self.add_sum("batch_count", dtype=torch.int64)
        self.add_sum("faults", shape=(len(self.value_rules),), dtype=torch.int64)
        # Compute groups of a MetricCollection share the states of metrics whose states are equal after a first
        # batch. The settings, held as a state, keep apart metrics that only happen to agree on it.
        shaping = {name: getattr(self, name) for name in (settings if state_settings is None else state_settings)}
        self.add_state("settings", _fingerprint(shaping), dist_reduce_fx="max")

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Tell type checkers that the settings are attributes."""

    def add_sum(self, name: str, *, shape: tuple[int, ...] = (), dtype: torch.dtype = torch.float64) -> None:
        """Declare a state that starts at 0, and that is summed over batches, merged metrics and processes."""
        self.add_state(name, torch.zeros(shape, dtype=dtype), dist_reduce_fx="sum")

    def add(self, **sums: Tensor) -> None:
        """Add the sums of a batch to the states of the same names."""
        for name, value in sums.items():
            setattr(self, name, getattr(self, name) + value)

    def admit(self, find_faults: Callable[[], Sequence[Fault]]) -> None:
        """Count a batch. With ``validate_args``, find its bad values: raise on the CPU, count them elsewhere."""
        if self.validate_args:
            faults = find_faults()
            counts = count_faults(faults)
            if counts.is_cpu:
                raise_first(faults)
            self.faults = self.faults + counts
        self.batch_count = self.batch_count + 1

    def check_computable(self) -> None:
        """Refuse to compute from bad values or from nothing."""
        raise_for_counts(self.faults, self.value_rules)
        if not self.batch_count:
            raise ValueError(f"{type(self).__name__}.compute needs at least one batch: call update first.")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Update with a batch and return its own value; a refused batch leaves the metric as it was."""
        # No update changes a tensor in its place: what held the states is enough to go back to.
        held = {name: list(state) if isinstance(state, list) else state for name, state in self.metric_state.items()}
        before = {**self.__dict__, **held}
        try:
            return super().forward(*args, **kwargs)
        except Exception:
            self.__dict__.update(before)  # torchmetrics resets the states before it looks at the batch
            raise

    def merge_state(self, incoming_state: "dict[str, Any] | Metric") -> None:
        """Add the sums of another metric, or of its `metric_state`, that has the same settings."""
        other = incoming_state.metric_state if isinstance(incoming_state, Metric) else incoming_state
        if isinstance(other, dict):
            self._check_settings(other.get("settings"))
        super().merge_state(incoming_state)
        self._computed = None  # torchmetrics would return the value from before the merge
        self._update_count = int(self.batch_count)

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot `val` (default: the value so far) on `ax` (default: a new figure); needs matplotlib."""
        return self._plot(val, ax)

    def _check_settings(self, settings: object) -> None:
        if not isinstance(settings, Tensor) or not torch.equal(settings.to(self.settings), self.settings):
            raise ValueError(f"the state must come from a {type(self).__name__} with the same settings, but does not.")

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = "") -> torch.nn.Module:
        def move(tensor: Tensor) -> Tensor:
            """Do as `fn` says but for its casts: sums and counts in half would lose what they hold."""
            device = fn(tensor.new_empty(0, dtype=torch.float32)).device
            if tensor.dtype == torch.float64:
                tensor = tensor.to(widest_float(device))
            moved = fn(tensor)
            return moved if moved.dtype == tensor.dtype else tensor.to(device)

        return super()._apply(move, exclude_state)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        saved = [name for name in self._defaults if prefix + name in state_dict]
        if saved:
            self._check_settings(state_dict.get(prefix + "settings"))
        before = {name: getattr(self, name) for name in saved}
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
        for name in saved:
            own, loaded = before[name], getattr(self, name)
            if isinstance(own, Tensor):
                setattr(self, name, loaded.to(device=own.device, dtype=own.dtype))
            else:  # what was kept of each batch
                setattr(self, name, [tensor.to(self.device) for tensor in loaded])
        if saved:
            self._computed = None
            self._update_count = int(self.batch_count)  # torchmetrics saves neither


def _fingerprint(settings: dict[str, Any]) -> Tensor:
    """16 numbers below 256 that differ where settings do: wide enough apart for a comparison with a tolerance."""
    plain = {key: value.tolist() if isinstance(value, Tensor) else value for key, value in sorted(settings.items())}
    return torch.tensor(list(hashlib.sha256(repr(plain).encode()).digest()[:16]), dtype=torch.int64)
