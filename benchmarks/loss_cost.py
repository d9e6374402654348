"""Time losses as a multiple of F.cross_entropy, forward and backward. Run: python -m benchmarks.loss_cost."""

from collections.abc import Callable

import torch
from torch.nn.functional import cross_entropy

from benchmarks import mpcs_cost
from mpcs_torch.learning import ConcernLoss, SoftmaxMarginLoss

LIMITS = {
    "margin": {(32, 10): 5.0, (256, 1000): 3.0},
    "concern": {(32, 10): 16.0, (256, 1000): 20.0},
}
"""The most multiples, by loss and shape. Of few numbers, most of the time goes to calls."""
CALLS = {(32, 10): 50, (256, 1000): 5}
"""In each turn."""


def ratio(name: str, shape: tuple[int, int], threads: int) -> float:
    """Return the cost in multiples of that of cross entropy, taken in turns, with a number of threads."""
    logits, target = mpcs_cost.drawn(*shape)
    concern = 0.1 + torch.rand(
        shape[1], shape[1], generator=torch.Generator().manual_seed(0)
    )
    loss = ConcernLoss(concern) if name == "concern" else SoftmaxMarginLoss(concern)
    logits.requires_grad_()

    def turn(function: Callable[..., torch.Tensor]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(CALLS[shape]):
                logits.grad = None
                function(logits, target).backward()

        return run

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return mpcs_cost.ratio(turn(loss), turn(cross_entropy), 100)
    finally:
        torch.set_num_threads(before)


if __name__ == "__main__":
    for name, limits in LIMITS.items():
        for shape, limit in limits.items():
            for threads in (1, 2):
                print(
                    f"{name} {shape}, {threads} threads: {ratio(name, shape, threads):.2f} (limit {limit})"
                )
