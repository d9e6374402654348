"""Draw pictures of the pages: what calibration changes, how an epoch is picked, penalties of MPCS, a result, clusters.

Run: python examples/pictures.py [FOLDER], by default runs/pictures.
"""

import math
import sys
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from mpcs_torch import ConcernSpec, evaluate
from mpcs_torch.calibration import TemperatureScaling
from mpcs_torch.functional import accuracy, dangerous_errors, meta_pattern_concern_score
from mpcs_torch.learning import MPCSLR

LIGHT_BLUE, BLUE, ORANGE, GREY = "#56b4e9", "#0072b2", "#d55e00", "#8a8a8a"


def epochs_figure() -> Figure:
    """Train as README does, and draw the accuracy against the missed tumours of each epoch."""
    skin = ConcernSpec(
        ["benign", "malignant"], releases=[["benign", "malignant"]], factor=0.1
    )
    torch.manual_seed(1)
    inputs = torch.randn(2000, 4)
    target = (inputs[:, 0] + 0.6 * torch.randn(2000) > 1.5).long()
    train, valid = torch.arange(2000).chunk(2)
    model = torch.nn.Linear(4, 2)
    loss = torch.nn.CrossEntropyLoss(weight=torch.tensor([1.0, 4.0]))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    scheduler = MPCSLR(optimizer)
    missed, right = list[int](), list[float]()
    for _ in range(60):
        optimizer.zero_grad()
        loss(model(inputs[train]), target[train]).backward()
        optimizer.step()
        with torch.no_grad():
            logits = model(inputs[valid])
        labels = target[valid]
        scheduler.step(
            meta_pattern_concern_score(logits, labels, num_classes=2, concern=skin)
        )
        missed.append(int(dangerous_errors(logits, labels, num_classes=2, concern=skin)))
        right.append(float(accuracy(logits, labels, num_classes=2)))
    most_accurate = max(range(60), key=lambda epoch: right[epoch])
    near = [epoch for epoch in range(60) if right[epoch] >= right[most_accurate] - 0.01]
    picked = min(near, key=lambda epoch: missed[epoch])

    figure, axes = new_figure(3.4)
    late = slice(14, None)  # before, the model is bad
    axes.plot(
        missed[late], right[late], ".-", color=LIGHT_BLUE, linewidth=0.8, label="an epoch"
    )
    axes.axhline(
        right[most_accurate] - 0.01,
        color=GREY,
        linestyle="--",
        label="a point below the best accuracy",
    )
    for epoch, marker, colour, by in (
        (most_accurate, "s", BLUE, "accuracy"),
        (picked, "o", ORANGE, "the rule"),
    ):
        axes.plot(
            missed[epoch],
            right[epoch],
            marker,
            color=colour,
            markersize=10,
            label=f"picked by {by}",
            zorder=3,
        )
    axes.set(xlabel="missed tumours", ylabel="accuracy")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def calibration_figure() -> Figure:
    """Calibrate naive Bayes on digits, and draw the measured against the reported confidence."""
    images, labels = load_digits(return_X_y=True)
    train, rest, train_labels, rest_labels = train_test_split(
        images, labels, test_size=0.65, random_state=0
    )
    dev, test, dev_labels, test_labels = train_test_split(
        rest, rest_labels, test_size=0.65, random_state=0
    )
    model = GaussianNB(var_smoothing=1e-3).fit(train, train_labels)
    dev_logits = torch.from_numpy(model.predict_joint_log_proba(dev))
    logits = torch.from_numpy(model.predict_joint_log_proba(test))
    calibration = TemperatureScaling().fit(dev_logits, torch.from_numpy(dev_labels))
    figure, axes = new_figure(3.8)
    axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", label="calibrated")
    for name, of, colour, marker in (
        ("before", logits, BLUE, "s"),
        ("after", calibration(logits), ORANGE, "o"),
    ):
        confidence, decided = of.softmax(1).max(1)
        is_right = (decided == torch.from_numpy(test_labels)).double()
        bins = confidence.argsort().chunk(6)  # as many samples in each
        points = [
            (confidence[rows].mean().item(), is_right[rows].mean().item()) for rows in bins
        ]
        axes.plot(*zip(*points, strict=True), marker=marker, color=colour, label=name)
    axes.set(
        xlabel="how sure the model is",
        ylabel="how often it is right",
        xlim=(0.3, 1.02),
        ylim=(0.3, 1.02),
    )
    axes.legend(frameon=False)
    return figure


def result_figure() -> Figure:
    """Evaluate two models of two sites, and draw the result."""
    lights = ConcernSpec(
        ["red", "yellow", "green"],
        releases=[["red", "yellow"], ["yellow", "red"]],
        factor=0.5,
    )
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(3, (600,), generator=generator)
    logits = torch.randn(600, 3, generator=generator) + 2 * torch.eye(3)[target]
    preds = {
        "small": logits.softmax(1),
        "large": (logits + torch.eye(3)[target]).softmax(1),
    }
    sites = ["north" if row < 200 else "south" for row in range(600)]
    result = evaluate(preds, target, concern=lights, groups={"site": sites})
    figure, _ = result.plot(names=["dangerous_rate"])
    return figure


def penalties_figure() -> Figure:
    """Draw the penalty of MPCS for each interval of a confidence, with t = 10."""
    t = 10
    ends = torch.arange(t + 1) / t
    figure, axes = new_figure(3.4)
    for name, levels, colour, style in (
        ("of the true class", torch.arange(t), BLUE, "-"),
        ("of another class", torch.arange(t).flip(0), ORANGE, "--"),
    ):
        penalties = -(levels.clamp(min=1e-7) / (t - 1)).log()
        axes.stairs(
            penalties,
            ends,
            baseline=None,
            color=colour,
            linestyle=style,
            linewidth=2,
            label=name,
        )
    highest = -math.log(1e-7 / (t - 1))
    axes.text(0.06, 2.62, f"{highest:.0f}", color=BLUE, ha="left")
    axes.text(0.94, 2.62, f"{highest:.0f}", color=ORANGE, ha="right")
    axes.set(xlabel="confidence", ylabel="penalty", xticks=ends, xlim=(0, 1), ylim=(0, 2.6))
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def clusters_figure() -> Figure:
    """Draw images of patients at two sites."""
    figure, axes = new_figure(2.5)
    images = [[3, 2, 4], [2, 4, 3]]
    for site, (name, of_patients) in enumerate(
        zip(("north", "south"), images, strict=True)
    ):
        left = 5.4 * site
        add_box(axes, (left, 0), (5, 4.4), GREY, f"site {name}")
        for patient, count in enumerate(of_patients):
            bottom = 2.5 - 1.15 * patient
            add_box(axes, (left + 0.25, bottom), (4.5, 0.95), ORANGE, "")
            axes.text(
                left + 0.4, bottom + 0.47, f"patient {3 * site + patient + 1}", va="center"
            )
            places = [left + 2.5 + 0.6 * number for number in range(count)]
            axes.plot(places, [bottom + 0.47] * count, "s", color=BLUE, markersize=9)
    for look, colour, text in (
        ("s", BLUE, "row: an image"),
        ("_", ORANGE, "cluster: a patient"),
        ("_", GREY, "group: a site"),
    ):
        axes.plot([], [], look, color=colour, markersize=9, markeredgewidth=2, label=text)
    axes.set(xlim=(-0.1, 10.5), ylim=(-0.1, 4.5))
    axes.set_axis_off()
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def add_box(
    axes: Axes,
    corner: tuple[float, float],
    size: tuple[float, float],
    colour: str,
    title: str,
) -> None:
    """Add a frame with a title above its content."""
    axes.add_patch(Rectangle(corner, *size, fill=False, edgecolor=colour, linewidth=1.5))
    axes.text(corner[0] + 0.25, corner[1] + size[1] - 0.2, title, va="top")


def new_figure(height: float) -> tuple[Figure, Axes]:
    """Return a figure that can be read on a phone, and its axes."""
    figure = Figure((4.8, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def main(folder: Path = Path("runs/pictures")) -> None:
    """Write the pictures to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        "calibration.png": calibration_figure(),
        "clusters.png": clusters_figure(),
        "epochs.png": epochs_figure(),
        "penalties.png": penalties_figure(),
        "result.png": result_figure(),
    }
    for name, figure in figures.items():
        figure.savefig(folder / name, dpi=110)
    print(f"wrote {', '.join(figures)} to {folder}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
