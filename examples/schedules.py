"""Compare learning-rate schedules on scikit-learn's digits, for docs/how-to/schedule-the-learning-rate.md.

Run: python examples/schedules.py [SEEDS], by default 4; 40 seeds take about four minutes.
"""

import math
import sys
from collections.abc import Callable

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, ReduceLROnPlateau

from mpcs_torch import ConcernSpec, DangerousErrors, MetaPatternConcernScore
from mpcs_torch.functional import jackknife_interval
from mpcs_torch.learning import MPCSLR

CONCERN = ConcernSpec(
    classes=10, releases=[[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]], factor=0.5
)
EPOCHS, BATCH, RATE = 30, 32, 0.01
SCHEDULES: dict[str, Callable[[torch.optim.Optimizer], LRScheduler | ReduceLROnPlateau]] = {
    "cosine": lambda optimizer: LambdaLR(
        optimizer, lambda n: min((n + 1) / 2, 0.5 + 0.5 * math.cos(math.pi * n / EPOCHS))
    ),
    "constant": lambda optimizer: LambdaLR(optimizer, lambda _: 1.0),
    "plateau of the validation loss": lambda optimizer: ReduceLROnPlateau(
        optimizer, factor=0.5, patience=2
    ),
    "MPCSLR": MPCSLR,
    "MPCSLR, power 0.5, smoothed": lambda optimizer: MPCSLR(
        optimizer, power=0.5, smoothing=0.5
    ),
}


def dangerous_errors(name: str, seed: int) -> float:
    """Train with a schedule, and return the dangerous errors of 450 test samples after the last epoch."""
    digits = load_digits()
    order = torch.randperm(
        len(digits.target), generator=torch.Generator().manual_seed(seed)
    )
    inputs = torch.tensor(digits.data, dtype=torch.float32)[order] / 16
    labels = torch.tensor(digits.target)[order]
    train, valid, test = torch.arange(len(labels)).split([1047, 300, 450])
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    scheduler, mpcs = (
        SCHEDULES[name](optimizer),
        MetaPatternConcernScore(10, concern=CONCERN),
    )
    for _ in range(EPOCHS):
        for batch in train[torch.randperm(len(train))].split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs[batch]), labels[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            logits = model(inputs[valid])
        if isinstance(scheduler, MPCSLR):
            scheduler.step(mpcs(logits, labels[valid]))
        elif isinstance(scheduler, ReduceLROnPlateau):
            scheduler.step(nn.functional.cross_entropy(logits, labels[valid]))
        else:
            scheduler.step()
    with torch.no_grad():
        return float(
            DangerousErrors(10, concern=CONCERN)(model(inputs[test]), labels[test])
        )


def main(seeds: int = 4) -> None:
    """Print the dangerous errors of each schedule, and the difference from the cosine over seeds, in percent."""
    torch.set_num_threads(1)
    counts = {
        name: torch.tensor([dangerous_errors(name, seed) for seed in range(seeds)])
        for name in SCHEDULES
    }
    best = counts["cosine"]
    print(
        f"dangerous errors of 450 test samples, {seeds} seeds   mean   against cosine [95 %]"
    )
    for name, values in counts.items():
        more = jackknife_interval(
            lambda kept, values=values: 100 * (values[kept].sum() / best[kept].sum() - 1),
            torch.arange(seeds),
        )
        change = (
            ""
            if name == "cosine"
            else f"{more.estimate:+.1f} % [{more.low:+.1f}, {more.high:+.1f}]"
        )
        print(f"{name:52}{values.mean():6.2f}   {change}".rstrip())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
