"""One case for each public Metric: how to make it, how to feed it, and its value from an independent oracle."""

from torch import Tensor

from mpcs_torch.functional import ErrorRates
from mpcs_torch.monitoring import MonitorResult
from tests.metrics.concern.cases import CONCERN_CASES
from tests.metrics.detection.cases import DETECTION, MORE_DETECTION
from tests.metrics.probability.cases import MORE_PROBABILITY, PROBABILITY
from tests.metrics.quality.cases import QUALITY
from tests.metrics.soft.cases import SOFT_CASES
from tests.monitoring.cases import MONITORS

CASES = {**CONCERN_CASES, **QUALITY, **SOFT_CASES, **PROBABILITY, **DETECTION}
BY_NAME = {
    **{kind.__name__: case for kind, case in CASES.items()},
    **MORE_PROBABILITY,
    **MORE_DETECTION,
    **MONITORS,
}


def values_of(
    computed: Tensor | dict[str, Tensor] | ErrorRates | MonitorResult,
) -> dict[str, float]:
    if isinstance(computed, Tensor) and computed.ndim:
        return {
            str(index): value for index, value in enumerate(computed.flatten().tolist())
        }
    if isinstance(computed, ErrorRates | MonitorResult):
        return {
            k: v
            for name, part in computed._asdict().items()
            for k, v in enumerated(name, part.reshape(-1))
        }
    named = computed if isinstance(computed, dict) else {"": computed}
    return {name: value.item() for name, value in named.items()}


def enumerated(name: str, values: Tensor) -> list[tuple[str, float]]:
    return [(f"{name} {index}", value) for index, value in enumerate(values.tolist())]
