"""Pick an epoch by the clinic for which the model is worst, for docs/how-to/pick-an-epoch.md.

The picture worst-group.png goes to the folder given as argument, by default runs/worst-group.
"""

import sys
from pathlib import Path

import torch
from torch import Tensor
from torchmetrics import MetricCollection

from mpcs_torch import WorstGroup
from mpcs_torch.learning import CheckpointSelector, SelectionRule
from mpcs_torch.metrics import WeightedErrorRate
from mpcs_torch.plots.trends import metric_trend

CLINICS = ("Ashby", "Brook", "Carlow", "Dunmore")
SHARES = torch.tensor([0.3, 0.3, 0.3, 0.1])


def simulated(rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Return features, labels and clinics. The second feature is the label, except in Dunmore, where it is reversed."""
    clinic = torch.multinomial(SHARES, rows, replacement=True, generator=generator)
    label = (torch.rand(rows, generator=generator) < 0.5).long()
    sign = 2.0 * label - 1
    lesion = sign + torch.randn(rows, generator=generator)
    camera = torch.where(clinic == 3, -sign, sign) + 0.5 * torch.randn(
        rows, generator=generator
    )
    return torch.stack([2 * lesion, 0.8 * camera], dim=1), label, clinic


def main() -> None:
    """Train a linear model, print the epochs that both metrics pick, and draw the wrong decisions in each clinic."""
    folder = Path(*sys.argv[1:2] or ["runs/worst-group"])
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(0)
    inputs, target, _ = simulated(4000, generator)
    features, labels, clinics = simulated(4000, generator)

    wrong = WeightedErrorRate(num_classes=2)
    metrics = MetricCollection(
        {"wrong": wrong, "worst": WorstGroup(wrong, groups=len(CLINICS), min_rows=50)}
    )
    rule = SelectionRule("worst", {"worst": metrics["worst"], "wrong": wrong})
    selector = CheckpointSelector(folder / "checkpoints", rule)
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    curves: dict[str, list[dict[str, float]]] = {name: [] for name in (*CLINICS, "all")}
    for epoch in range(120):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), target).backward()
        optimizer.step()
        metrics.reset()
        with torch.no_grad():
            for rows in torch.arange(len(labels)).split(500):
                metrics.update(model(features[rows]), labels[rows], groups=clinics[rows])
        values = metrics.compute()
        selector.update(model.state_dict, epoch=epoch, **values)
        rates = [*metrics["worst"].per_group().tolist(), values["wrong"].item()]
        for name, rate in zip(curves, rates, strict=True):
            curves[name].append({"epoch": epoch, "wrong decisions": rate})

    by_all, by_worst = rule.alone("wrong").ranking(selector.epochs)[0], selector.best
    assert by_worst is not None
    print("picked by      epoch   wrong  in the worst clinic")
    for name, epoch in (("all rows", by_all), ("worst clinic", by_worst)):
        print(
            f"{name:13} {epoch.number:6} {epoch.values['wrong']:7.3f} {epoch.values['worst']:20.3f}"
        )
    marked = {"Dunmore": {"by worst clinic": by_worst.number, "by all rows": by_all.number}}
    # In the first epochs, all clinics are bad.
    shown = {name: records[15:] for name, records in curves.items()}
    metric_trend(shown, "wrong decisions", marked).savefig(
        folder / "worst-group.png", dpi=100
    )


if __name__ == "__main__":
    main()
