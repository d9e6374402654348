"""Compare the widths of 95 % intervals with those of a bootstrap of the same rows or clusters.

Run: python -m benchmarks.widths [SAMPLES] [DESIGN ...]
"""

import sys
from math import sqrt
from statistics import median

import torch
from torch import Tensor

from benchmarks.attacked_promises import of_patients
from benchmarks.coverage import DESIGNS, RELEASED, Design, Sample, classes
from mpcs_torch import evaluate
from mpcs_torch.cli.console import counting_bar
from mpcs_torch.tables import Table

SAMPLES, RESAMPLES = 40, 200
METRICS = [
    "misclassification_rate",
    "dangerous_rate",
    "expected_concern",
    "mpcs",
    "macro_f1",
    "balanced_accuracy",
    "mcc",
    "auroc",
    "brier_score",
    "cross_entropy",
]


def with_rare_class(patients: int, generator: torch.Generator) -> Sample:
    """Draw the scans of patients, of whom 3 % have the rare class, and the scores of two models."""
    probs, target, patient = of_patients(patients, generator)
    noise = torch.randn(len(target), 1, generator=generator) * torch.tensor([0.0, 1.0])
    others = probs.logit() + noise
    return Sample({"A": probs, "B": others.softmax(dim=1)}, target, patient)


def of_unequal_patients(patients: int, generator: torch.Generator) -> Sample:
    """Draw patients of 1 to about 40 rows (log-normal sizes, median 5), whose rows share half of the noise."""
    spread = torch.randn(patients, generator=generator).mul(0.8).exp()
    sizes = spread.mul(5).round().clamp(min=1).long()
    patient = torch.arange(patients).repeat_interleave(sizes)
    rows = len(patient)
    target = torch.randint(4, (rows,), generator=generator)
    one_hot = torch.eye(4, dtype=torch.float64)[target]
    preds = dict[str, Tensor]()
    for name, skill in (("A", 2.0), ("B", 2.3)):
        shared = torch.randn(patients, 4, generator=generator)[patient]
        noise = torch.randn(rows, 4, generator=generator)
        scores = (shared + noise) / sqrt(2) + skill * one_hot
        preds[name] = scores.softmax(dim=1)
    return Sample(preds, target, patient)


NAMES = ["4 classes, 300 rows", "10 classes, 1000 rows", "50 clusters of 50"]
COMPARED = {
    **{name: DESIGNS[name] for name in NAMES},
    "377 patients of 4 rows": Design(classes(4, 2, size=4, shared=0.5), 1508, RELEASED),
    "1200 patients, 3 % of them positive": Design(with_rare_class, 1200),
    "80 patients of 1 to 40 rows": Design(of_unequal_patients, 80, RELEASED),
}


def resampled(clusters: Tensor, generator: torch.Generator) -> Tensor:
    """Return the places of the rows of as many clusters, drawn with replacement."""
    number = int(clusters.max()) + 1
    counts = torch.bincount(
        torch.randint(number, (number,), generator=generator), minlength=number
    )
    return torch.arange(len(clusters)).repeat_interleave(counts[clusters])


def values(design: Design, sample: Sample, rows: Tensor) -> dict[str, tuple[float, float]]:
    """Return each metric of the first model, and the difference to the second, on some rows."""
    result = evaluate(
        {name: preds[rows] for name, preds in sample.preds.items()},
        sample.target[rows],
        concern=design.concern,
        metrics=METRICS,
        intervals=False,
    )
    one, other = sample.preds
    return {
        name: (result.value(name, one), result.value(name, other) - result.value(name, one))
        for name in METRICS
    }


def percentile_width(numbers: list[float]) -> float:
    """Return the width of the middle 95 % of ``numbers``."""
    ends = torch.tensor([0.025, 0.975], dtype=torch.float64)
    low, high = torch.tensor(numbers, dtype=torch.float64).quantile(ends).tolist()
    return high - low


def widths(design: Design, seed: int) -> dict[str, list[float]]:
    """Return for each metric the widths of a value and of a difference, each ours and the bootstrap's."""
    generator = torch.Generator().manual_seed(seed)
    sample = design.draw(design.rows, generator)
    clusters = sample.clusters
    result = evaluate(
        sample.preds,
        sample.target,
        concern=design.concern,
        metrics=METRICS,
        clusters=clusters,
    )
    differences = {row.by.metric: row.paired for row in result.comparisons}
    units = torch.arange(len(sample.target)) if clusters is None else clusters
    drawn = [values(design, sample, resampled(units, generator)) for _ in range(RESAMPLES)]
    ours = dict[str, list[float]]()
    for name in METRICS:
        ends = result.interval(name, next(iter(sample.preds)))
        if name in differences and isinstance(ends, tuple):
            low, high = ends
            paired = differences[name]
            of_value = percentile_width(
                [value for value, _ in (row[name] for row in drawn)]
            )
            of_change = percentile_width(
                [change for _, change in (row[name] for row in drawn)]
            )
            ours[name] = [high - low, of_value, paired.high - paired.low, of_change]
    return ours


def main(samples: int = SAMPLES, *titles: str) -> None:
    """Print a row for each design and metric: medians of widths, and ours in multiples of the bootstrap's."""
    rows = list[list[str]]()
    compared = {title: COMPARED[title] for title in titles or COMPARED}
    with counting_bar("samples", samples * len(compared)) as advance:
        for title, design in compared.items():
            measured = list[dict[str, list[float]]]()
            for seed in range(samples):
                measured.append(widths(design, seed))
                advance(1)
            for name in METRICS:
                given = [found[name] for found in measured if name in found]
                if not given:  # such as dangerous errors without a concern
                    continue
                ours, bootstrap, change, of_change = map(median, zip(*given, strict=True))
                rows.append(
                    [
                        title,
                        name,
                        f"{ours:.3g}",
                        f"{ours / bootstrap:.2f}",
                        f"{change:.3g}",
                        f"{change / of_change:.2f}",
                    ]
                )
    header = ["design", "metric", "width of a value", "of the bootstrap's"]
    header += ["width of a difference", "of the bootstrap's"]
    print(Table(header, rows).markdown())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SAMPLES, *sys.argv[2:])
