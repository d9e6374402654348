"""Count how often E3 warns: python -m benchmarks.calibration_warnings.

Probabilities are the softmax of 2 times normal noise, and labels are drawn by them; then logarithms are multiplied.
"""

from collections.abc import Callable

from torch import Tensor

from mpcs_torch.evaluation.cautions import uncalibrated
from mpcs_torch.metrics import ProbabilityAccuracy
from tests.evaluation.test_cautions import drawn, votes

SAMPLES = 200
KINDS: dict[str, Callable[[int], tuple[Tensor, Tensor]]] = {
    "calibrated, 300 rows": lambda seed: drawn(300, seed),
    "calibrated, 900 rows": lambda seed: drawn(900, seed),
    "calibrated, 5000 rows": lambda seed: drawn(5000, seed),
    "calibrated, 2 classes, 300 rows": lambda seed: drawn(300, seed, classes=2),
    "calibrated, 10 classes, 1000 rows": lambda seed: drawn(1000, seed, classes=10),
    "votes of 10 trees, 1000 rows": lambda seed: votes(1000, seed),
    "times 2, 900 rows": lambda seed: drawn(900, seed, times=2.0),
    "times 2, 3000 rows": lambda seed: drawn(3000, seed, times=2.0),
    "times 3, 900 rows": lambda seed: drawn(900, seed, times=3.0),
    "times 0.4, 900 rows": lambda seed: drawn(900, seed, times=0.4),
}


def is_warned_of(probs: Tensor, target: Tensor) -> bool:
    """Return whether E3 is given."""
    accuracy = ProbabilityAccuracy(probs.shape[1], from_logits=False)
    accuracy.update(probs, target)
    return bool(uncalibrated(accuracy.bins(), 1.0, ""))


if __name__ == "__main__":
    for kind, draw in KINDS.items():
        print(
            f"{kind}: {sum(is_warned_of(*draw(seed)) for seed in range(SAMPLES))} of {SAMPLES}"
        )
