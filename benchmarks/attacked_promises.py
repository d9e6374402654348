"""Count again how often promises of intervals and gates hold in designs that once broke them.

Run: python -m benchmarks.attacked_promises [DRAWS]

A row fails where the exact binomial test rejects, at 0.001, that intervals hold the true value in 95 % of the draws
that give one, or that gates at the true value pass in at most 2.5 %; ``given`` is the share of draws with an interval.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from math import isnan
from typing import Any, NamedTuple

import torch
from scipy.stats import binomtest
from torch import Tensor
from torch.nn.functional import softplus

from mpcs_torch import Evaluation, evaluate, evaluate_detectors
from mpcs_torch.cli.console import counting_bar
from mpcs_torch.evaluation import Result
from mpcs_torch.tables import Table

REJECTED_BELOW = 0.001
"""The p-value below which a promise fails."""
NAMES = ["mcc", "accuracy", "macro_f1"]
"""The metrics of designs with weights."""


class Promise(NamedTuple):
    """A metric of a design, with its true value."""

    metric: str
    truth: float
    """NaN where no value is true, and no interval may be given."""
    before: str
    """The share of intervals that held it before, in percent."""


class Design(NamedTuple):
    """A way to draw rows, and what was promised of them."""

    name: str
    draw: Callable[[torch.Generator], Result]
    promises: list[Promise]


def decided(
    recalls: Tensor, counts: Tensor, alarms: Tensor
) -> Callable[[torch.Generator], Result]:
    """Draw decisions by the recall of each class; misses are decided as other classes by the weights of alarms."""
    target = torch.arange(len(counts)).repeat_interleave(counts)
    weights = alarms.repeat(len(counts), 1).fill_diagonal_(0)

    def draw(generator: torch.Generator) -> Result:
        others = torch.multinomial(weights[target], 1, generator=generator).squeeze(1)
        is_right = torch.rand(len(target), generator=generator) < recalls[target]
        metrics = ["balanced_error_rate", "macro_recall", "macro_f1", "macro_precision"]
        return evaluate(
            torch.where(is_right, target, others),
            target,
            metrics=metrics,
            class_names=len(counts),
        )

    return draw


def of_classes(recalls: Tensor, counts: Tensor, alarms: Tensor) -> dict[str, float]:
    """Return the true averages over classes of `decided`, where classes have these shares."""
    weights = alarms.repeat(len(counts), 1).fill_diagonal_(0)
    missed = (counts * (1 - recalls)).unsqueeze(1) * weights / weights.sum(1, keepdim=True)
    right, predicted = counts * recalls, missed.sum(0) + counts * recalls
    recall = recalls.mean().item()
    return {
        "balanced_error_rate": 1 - recall,
        "macro_recall": recall,
        "macro_precision": (right / predicted).mean().item(),
        "macro_f1": (2 * right / (counts + predicted)).mean().item(),
    }


def losses(saturated: float) -> Callable[[torch.Generator], Result]:
    """Draw 1000 rows of two classes, of which a share has saturated probabilities that are wrong."""

    def draw(generator: torch.Generator) -> Result:
        correct = torch.rand(1000, generator=generator, dtype=torch.float64) * 0.6 + 0.4
        correct[torch.rand(1000, generator=generator) < saturated] = 1e-12
        probs = torch.stack([correct, 1 - correct], dim=1)
        return evaluate(
            probs, torch.zeros(1000, dtype=torch.int64), metrics=["cross_entropy"]
        )

    return draw


def true_loss(saturated: float) -> float:
    """Return the expectation of the cross entropy of `losses`."""
    # Usual probabilities are uniform on [0.4, 1]: the integral of -log p there, by p log p - p, divided by 0.6.
    edges = torch.tensor([0.4, 1.0], dtype=torch.float64)
    usual = -((edges * edges.log() - edges).diff() / 0.6).item()
    wrong = -torch.tensor(1e-12, dtype=torch.float64).log().item()
    return (1 - saturated) * usual + saturated * wrong


def ratios(generator: torch.Generator) -> Result:
    """Draw 2000 log-likelihood ratios, of which 0.2 % are saturated on the wrong side."""
    labels = torch.arange(2000) % 4 == 0
    noise = torch.randn(2000, generator=generator, dtype=torch.float64)
    scores = noise * 2 + torch.where(labels, 2.0, -2.0)
    is_wrong = torch.rand(2000, generator=generator) < 0.002
    saturated = torch.where(labels, -40.0, 40.0)
    return evaluate_detectors(torch.where(is_wrong, saturated, scores), labels, llr=True)


def read_by_all(generator: torch.Generator) -> Result:
    """Draw 60 patients who are read by the same 15 readers."""
    patient, reader = torch.arange(60).repeat_interleave(15), torch.arange(15).repeat(60)
    shared = (
        torch.randn(60, generator=generator)[patient]
        + torch.randn(15, generator=generator)[reader]
    )
    right = (1 + shared + torch.randn(900, generator=generator)).sigmoid().double()
    target = (patient % 3 == 0).long()
    probs = torch.where(
        (target == 1).unsqueeze(1),
        torch.stack([1 - right, right], 1),
        torch.stack([right, 1 - right], 1),
    )
    clusters = {"patient": patient.tolist(), "reader": reader.tolist()}
    return evaluate(
        probs, target, clusters=clusters, metrics=["macro_recall", "cross_entropy"]
    )


def read_by_three(generator: torch.Generator) -> Result:
    """Draw 200 rows, each labelled by the same three annotators: pairs (row, annotator) are crossed clusters."""
    row = torch.arange(200).repeat_interleave(3)
    annotator = torch.arange(3).repeat(200)
    of_row = torch.randn(200, generator=generator)
    of_annotator = torch.randn(3, generator=generator)
    agrees = (1 + of_row[row] + of_annotator[annotator]).sigmoid()
    decided = torch.zeros(600, dtype=torch.int64)
    target = (torch.rand(600, generator=generator) >= agrees).long()
    clusters = {"row": row.tolist(), "annotator": annotator.tolist()}
    return evaluate(decided, target, clusters=clusters, metrics=["accuracy"], class_names=2)


def of_patients(patients: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Draw one to four scans of each patient; 3 % of the patients have the rare class, which raises their scores."""
    is_ill = torch.rand(patients, generator=generator) < 0.03
    scans = torch.randint(1, 5, (patients,), generator=generator)
    patient = torch.arange(patients).repeat_interleave(scans)
    of_patient = 2 * is_ill + torch.randn(patients, generator=generator)
    scores = of_patient[patient] + torch.randn(len(patient), generator=generator)
    positive = scores.double().sigmoid()
    return torch.stack([1 - positive, positive], dim=1), is_ill[patient].long(), patient


def rare_class(generator: torch.Generator) -> Result:
    """Draw 1200 patients, and measure the area under the ROC of a rare class."""
    probs, target, patient = of_patients(1200, generator)
    return evaluate(probs, target, clusters=patient, metrics=["auroc"])


def statistics(generator: torch.Generator) -> Result:
    """Draw 500 rows, and measure what is not smooth in them."""
    target = torch.randint(2, (500,), generator=generator)
    score = torch.randn(500, generator=generator, dtype=torch.float64) + 1.5 * target
    positive = score.sigmoid()

    def sensitivity(rows: Any) -> Tensor:
        threshold = rows.probs[rows.target == 0, 1].quantile(0.95)
        return (rows.probs[rows.target == 1, 1] > threshold).double().mean()

    metrics: dict[str, Any] = {
        "sensitivity at 95 % specificity": sensitivity,
        "median": lambda rows: rows.probs[:, 1].median(),
        "maximum": lambda rows: rows.probs[:, 1].max(),
    }
    return evaluate(torch.stack([1 - positive, positive], dim=1), target, metrics=metrics)


def heavy(rare: int) -> Callable[[torch.Generator], Result]:
    """Draw decisions for 300 rows, of which some rare ones stand for 30 % of use."""

    def draw(generator: torch.Generator) -> Result:
        others = torch.randint(0, 2, (300 - rare,), generator=generator)
        target = torch.cat([torch.full((rare,), 2), others])
        return evaluate(
            of_recalls(target, generator),
            target,
            metrics=NAMES,
            class_names=3,
            prevalence=[0.35, 0.35, 0.3],
        )

    return draw


def of_recalls(target: Tensor, generator: torch.Generator) -> Tensor:
    """Draw decisions for three classes, of which the last is missed in 20 %, the others in 10 %."""
    recalls = torch.tensor([0.9, 0.9, 0.8])[target]
    is_right = torch.rand(len(target), generator=generator) < recalls
    others = (target + torch.randint(1, 3, (len(target),), generator=generator)) % 3
    return torch.where(is_right, target, others)


def two_heavy_rows(generator: torch.Generator) -> Result:
    """Draw decisions for 300 rows, two of which have 40 % of the weight."""
    target = torch.randint(0, 3, (300,), generator=generator)
    weights = torch.ones(300, dtype=torch.float64)
    weights[:2] = 0.2 * 298 / 0.6  # the other 298 rows have 60 % of the weight
    return evaluate(
        of_recalls(target, generator),
        target,
        metrics=NAMES,
        class_names=3,
        weights=weights,
    )


IN_USE = [0.95, 0.05]
"""The shares of the well and of the ill where models are used."""


def few_well(well: int, specificity: float) -> Callable[[torch.Generator], Result]:
    """Draw decisions for 300 ill, of whom 10 % are missed, and for few well, who are 95 % of those in use."""

    def draw(generator: torch.Generator) -> Result:
        target = torch.tensor([1] * 300 + [0] * well)
        chance = torch.tensor([specificity, 0.9])[target]
        is_right = torch.rand(len(target), generator=generator) < chance
        decided = torch.where(is_right, target, 1 - target)
        return evaluate(decided, target, metrics=["mcc"], class_names=2, prevalence=IN_USE)

    return draw


def absent_class(clusters: int | None) -> Callable[[torch.Generator], Result]:
    """Draw decisions for 60 rows of two classes, in which a third class is decided, too, but has no row."""

    def draw(generator: torch.Generator) -> Result:
        target = torch.randint(0, 2, (60,), generator=generator)
        codes = None if clusters is None else torch.arange(60) % clusters
        decided = of_recalls(target, generator)
        return evaluate(
            decided, target, metrics=["macro_f1"], class_names=3, clusters=codes
        )

    return draw


def true_recalls(shares: Tensor) -> Result:
    """Return the values of a million decisions of `of_recalls`, where classes have these shares."""
    generator = torch.Generator().manual_seed(10)
    target = torch.multinomial(shares, 10**6, replacement=True, generator=generator)
    decisions = of_recalls(target, generator)
    return evaluate(decisions, target, metrics=NAMES, class_names=3, intervals=False)


def of_weights() -> Iterator[Design]:
    """Yield designs in which a few rows stand for much of the use."""
    true = true_recalls(torch.tensor([0.35, 0.35, 0.3]))
    promises = [Promise(metric, true.value(metric), "75 to 78") for metric in NAMES]
    yield Design("8 severe rows stand for 30 % of use", heavy(8), promises)
    yield Design("15 severe rows", heavy(15), promises)
    true = true_recalls(torch.ones(3))
    promises = [Promise(metric, true.value(metric), "89; none") for metric in NAMES]
    yield Design("2 of 300 rows have 40 % of the weight", two_heavy_rows, promises)
    for well, specificity in ((30, 0.95), (100, 0.98)):
        hits = IN_USE[1] * 0.9
        alarms = IN_USE[0] * (1 - specificity)
        promise = Promise("precision[1]", hits / (hits + alarms), "78; 86")
        name = f"{well} well stand for 95 % of use"
        yield Design(name, few_well(well, specificity), [promise])


def of_rare_classes() -> Iterator[Design]:
    """Yield designs with classes of few rows, or of none."""
    for clusters in (None, 10):
        unknown = [Promise("macro_f1", float("nan"), "4 of 62; 5 of 31")]
        yield Design(
            f"a class without rows, clusters: {clusters}", absent_class(clusters), unknown
        )
    rare = torch.tensor([0.97, 0.9]), torch.tensor([990, 10]), torch.ones(2)
    before = {"balanced_error_rate": "61.5", "macro_recall": "61.5"}
    yield Design("1 % of 1000 rows positive", decided(*rare), promises_of(rare, before))
    counts = torch.tensor([300, 200, 150, 120, 100, 80, 47, 3])
    eight = torch.linspace(0.9, 0.7, 8), counts, counts.double() + 50
    before = {"macro_recall": "82", "macro_precision": "80", "macro_f1": "87"}
    yield Design(
        "8 classes, the rarest with 3 rows", decided(*eight), promises_of(eight, before)
    )


def promises_of(
    classes: tuple[Tensor, Tensor, Tensor], before: dict[str, str]
) -> list[Promise]:
    """Return the promises of averages over the classes of `decided`."""
    truth = of_classes(*classes)
    return [Promise(name, truth[name], share) for name, share in before.items()]


def expectation(
    value: Callable[[Tensor], Tensor], mean: float, deviation: float, seed: int
) -> float:
    """Return the mean of a function of a normal variable, over a million draws."""
    noise = torch.randn(10**6, generator=torch.Generator().manual_seed(seed)).double()
    return value(mean + deviation * noise).mean().item()


def of_losses() -> Iterator[Design]:
    """Yield designs with a few losses that are much larger than the others."""
    for share in (0.0005, 0.001, 0.003):
        promise = Promise("cross_entropy", true_loss(share), "67.5 to 89")
        yield Design(f"{100 * share:g} % saturated losses", losses(share), [promise])
    # In nats: a usual ratio of a target is normal, and a saturated one costs 40. Non-targets mirror targets.
    usual = expectation(lambda ratio: softplus(-ratio), 2, 2, seed=0)
    cllr = (0.998 * usual + 0.002 * 40) / torch.tensor(2.0).log().item()
    yield Design("0.2 % saturated ratios", ratios, [Promise("cllr", cllr, "67.5 to 89")])


def of_crossed_clusters() -> Iterator[Design]:
    """Yield designs in which each row is of two clusters, whose effects and noise have variance 1."""
    # The sum of two effects and noise has variance 3: the recall is the share of such sums above -1.
    recall = 0.5 * (1 + torch.erf(torch.tensor((1 / 3**0.5) / 2**0.5))).item()
    entropy = expectation(lambda right: softplus(-right), 1, 3**0.5, seed=1)
    promises = [
        Promise("macro_recall", recall, "55 to 89"),
        Promise("cross_entropy", entropy, "55 to 89"),
    ]
    yield Design("60 patients crossed with 15 readers", read_by_all, promises)
    agreed = expectation(torch.sigmoid, 1, 2**0.5, seed=2)
    yield Design(
        "the same 3 annotators label 200 rows, as crossed clusters",
        read_by_three,
        [Promise("accuracy", agreed, "55")],
    )


def designs() -> Iterator[Design]:
    """Yield all designs."""
    yield from of_weights()
    yield from of_rare_classes()
    yield from of_losses()
    yield from of_crossed_clusters()
    probs, target, _ = of_patients(10**6, torch.Generator().manual_seed(3))
    area = evaluate(probs, target, metrics=["auroc"], intervals=False).value("auroc")
    yield Design(
        "a rare class in 1 200 patients",
        rare_class,
        [Promise("auroc", area, "wide: 0.745 to 0.938")],
    )
    names = ("sensitivity at 95 % specificity", "median", "maximum")
    yield Design(
        "what is not smooth, 500 rows",
        statistics,
        [Promise(name, float("nan"), "1.5 to 65") for name in names],
    )


def measured(design: Design, draws: int) -> Iterator[list[str]]:
    """Yield a row for each promise of a design."""
    results = [design.draw(torch.Generator().manual_seed(seed)) for seed in range(draws)]
    for promise in design.promises:
        intervals = [result.interval(promise.metric) for result in results]
        cells = judged(promise.truth, intervals)
        yield [design.name, promise.metric, promise.before, *cells]


def judged(truth: float, intervals: Sequence[tuple[float, float] | None]) -> list[str]:
    """Return which share of the intervals hold the truth and are given, which share of gates pass, and the verdict.

    Where no value is true, NaN, no interval may be given.
    """
    draws = len(intervals)
    ends = [interval for interval in intervals if interval is not None]
    given = f"{100 * len(ends) / draws:.0f}"
    if isnan(truth):
        if ends:
            return ["?", given, "", "fails"]
        return ["none is given", given, "", "holds"]
    if not ends:
        return ["none is given", given, "0.0", "holds"]
    hits = sum(low <= truth <= high for low, high in ends)
    is_below = sum(truth < low for low, _ in ends)
    is_above = sum(high < truth for _, high in ends)
    # A gate at the true value, in the worse direction.
    passed = max(is_below, is_above)
    hit_too_few = binomtest(hits, len(ends), 0.95, "less").pvalue < REJECTED_BELOW
    passed_too_many = binomtest(passed, draws, 0.025, "greater").pvalue < REJECTED_BELOW
    return [
        f"{100 * hits / len(ends):.1f}",
        given,
        f"{100 * passed / draws:.1f}",
        "fails" if hit_too_few or passed_too_many else "holds",
    ]


def said() -> Iterator[list[str]]:
    """Yield what is reported or refused now, of one draw each."""
    generator = torch.Generator().manual_seed(0)
    probs = torch.randn(500, 3, generator=generator).softmax(1)
    target = torch.randint(3, (500,), generator=generator)
    for times, before in ((2, "84"), (4, "73.5")):
        result = evaluate(
            probs.repeat(times, 1), target.repeat(times), metrics=["accuracy"]
        )
        yield [f"every row {times} times", "accuracy", before, str(result.warnings()[:1])]
    sites = torch.arange(500) % 20
    by_site = evaluate(probs, target, metrics=["accuracy"], groups={"site": sites})
    worst = by_site.groups[0].table().rows[0][0]
    yield ["worst of 20 equal sites", "accuracy", "68.7", f"its row says: {worst}"]
    # Of A, the even rows come first; of B, the odd rows.
    a = merged_halves("A", probs, target, (0, 1))
    b = merged_halves("B", probs, target, (1, 0))
    try:
        a.merge(b)
    except ValueError as error:
        yield [
            "models merged in another order",
            "accuracy",
            "p = 0.58 for 0.016",
            str(error),
        ]


def merged_halves(
    name: str, probs: Tensor, target: Tensor, order: tuple[int, int]
) -> Evaluation:
    """Return the evaluation of a model from two parts, each of every second row."""
    parts = []
    for place in order:
        part = Evaluation(3, metrics=["accuracy"])
        part.update({name: probs[place::2]}, target[place::2])
        parts.append(part)
    parts[0].merge(parts[1])
    return parts[0]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("draws", nargs="?", type=int, default=300)
    draws, rows = parser.parse_args().draws, list[list[str]]()
    every = list(designs())
    with counting_bar("designs", len(every)) as advance:
        for design in every:
            rows += measured(design, draws)
            advance(1)
    header = [
        "design",
        "metric",
        "held before, %",
        "held, %",
        "given, %",
        "gates that pass, %",
        "verdict",
    ]
    print(Table(header, rows).markdown())
    print(Table(["design", "metric", "held before, %", "now"], list(said())).markdown())


if __name__ == "__main__":
    main()
