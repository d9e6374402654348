"""From a fitted rule to an alarm: a scanner ages, and the labels of an audit show it.

A rule is fitted to validation images with a limit of missed malignant ones. In use, two images in five are labelled.
From week 9 on, a worn detector makes malignant images look benign. A `RiskMonitor` looks after every week, and a
`DriftMonitor` of the decisions, which sees nothing. The rule, the logs and the picture monitor.png are for ``mpcs
monitor`` and docs/how-to/monitor-a-deployment.md.
"""

import csv
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor

from mpcs_torch import ConcernSpec
from mpcs_torch.learning import DecisionRule, Limit
from mpcs_torch.monitoring import DriftMonitor, RiskMonitor

CLASSES = ["benign", "malignant"]
WEEKS, IMAGES, WORN_FROM, LABELLED = 16, 1000, 9, 0.4
LEVEL = 0.05
"""The chance that a monitor ever raises a false alarm."""


def draw(
    images: int, generator: torch.Generator, worn: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Draw logits (N, 2) and labels (N,), one in ten malignant; a share of these looks benign on a worn detector."""
    target = (torch.rand(images, generator=generator) < 0.1).long()
    looks = torch.where(torch.rand(images, generator=generator) < worn, 0, target)
    return 4 * torch.eye(2)[looks] + torch.randn(images, 2, generator=generator), target


def main() -> None:
    """Fit the rule, deploy it for 16 weeks, and print what the monitor knows after each."""
    generator = torch.Generator().manual_seed(0)
    concern = ConcernSpec(
        CLASSES, weights=[[0, 1], [20, 0]], dangerous=[["malignant", "benign"]], refer=0.5
    )
    limit = Limit(0.03, of="malignant")
    rule = DecisionRule(concern, limit).fit(*draw(8000, generator))
    rule.save("rule.pt", overwrite=True)
    print(f"validation: {rule.report.by_class['malignant'] if rule.report else ''}")
    validation = DriftMonitor(concern)
    validation.update(rule(draw(3000, generator)[0]))

    monitor, drift, weeks = (
        RiskMonitor(concern, limit),
        DriftMonitor(concern, reference=validation),
        [],
    )
    evidence = list[float]()
    for week in range(1, WEEKS + 1):
        logits, target = draw(IMAGES, generator, worn=0.15 if week >= WORN_FROM else 0.0)
        is_labelled = torch.rand(IMAGES, generator=generator) < LABELLED
        weeks.append((week, logits, target, is_labelled))
        monitor.update(rule(logits)[is_labelled], target[is_labelled])
        drift.update(rule(logits))
        reading = monitor.compute()
        evidence.append(float(reading.evidence))
        alarm = "ALARM" if reading.is_alarm else ""
        ends = f"{reading.low:.4f} to {reading.high:.4f}"
        print(
            f"week {week:2}: {reading.rate:.4f} of malignant missed [{ends}], evidence {reading.evidence:.3g} {alarm}"
        )
    print(
        f"decisions that differ from validation: {drift.compute().is_alarm.sum()} of {len(drift.names)}"
    )
    evidence_figure(evidence).savefig("monitor.png", dpi=110)
    write(Path("log.csv"), rule, weeks[: WORN_FROM - 1])
    write(Path("later.csv"), rule, weeks[WORN_FROM - 1 :])


def evidence_figure(evidence: list[float]) -> Figure:
    """Draw the evidence of each week that the rate is above its limit, and where it becomes an alarm."""
    figure = Figure((4.8, 3.2), layout="constrained")
    axes = figure.add_subplot(
        xlabel="week", ylabel="evidence of too many misses", yscale="log"
    )
    axes.spines[["top", "right"]].set_visible(False)
    weeks, needed = range(1, len(evidence) + 1), 1 / LEVEL
    axes.plot(weeks, evidence, ".-", color="#0072b2")
    axes.axhline(
        needed, color="#b00020", linestyle="--", label=f"alarm, above {needed:.0f}"
    )
    axes.axvline(WORN_FROM, color="#8a8a8a", linestyle=":", label="a detector is worn out")
    alarm = next(
        week for week, value in zip(weeks, evidence, strict=True) if value > needed
    )
    axes.plot(alarm, evidence[alarm - 1], "o", color="#b00020", markersize=9)
    axes.legend(frameon=False)
    return figure


def write(
    path: Path, rule: DecisionRule, weeks: list[tuple[int, Tensor, Tensor, Tensor]]
) -> None:
    """Write a log: time, decision, the estimated risk and cost, and the label where it is known."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["time", "decision", "risk", "cost", "target"])
        for week, logits, target, is_labelled in weeks:
            assessed = rule.assess(logits)
            columns = assessed.decision, assessed.risk, assessed.cost, target, is_labelled
            for decision, risk, cost, label, known in zip(
                *(column.tolist() for column in columns), strict=True
            ):
                name = "refer" if decision < 0 else CLASSES[decision]
                rows.writerow(
                    [
                        f"week {week}",
                        name,
                        f"{risk:.6g}",
                        f"{cost:.6g}",
                        CLASSES[label] if known else "",
                    ]
                )


if __name__ == "__main__":
    main()
