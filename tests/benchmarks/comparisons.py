"""Show on simulated systems how often intervals hold the true value, and tests reject a true hypothesis.

Run: python -m tests.benchmarks.comparisons
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import sqrt

import torch

from mpcs_torch.cli.progress import counting_bar
from mpcs_torch.functional import (
    Measure,
    OperatingPoint,
    Resamples,
    actual_cost_statistic,
    area_statistic,
    bootstrap_interval,
    cllr_statistic,
    compare_systems,
    equal_error_rate,
    equal_error_statistic,
    mean_statistic,
    meta_pattern_concern_score,
    rate_measure,
    stratified_bootstrap,
)
from mpcs_torch.tables import Table
from tests.benchmarks.cost_intervals import at_a_development_threshold, exact_coverage
from tests.benchmarks.simulated_systems import (
    SPEAKER_TRUTH,
    Predictions,
    Trials,
    llr_truth,
    predictions,
    share,
    speaker_trials,
    trials,
)

POINT = OperatingPoint(0.1)
TARGETS, NONTARGETS, SAMPLES = 100, 400, 400
CONCERN = torch.tensor([[0.0, 1, 1, 5], [1, 0, 1, 1], [1, 1, 0, 1], [9, 1, 1, 0]])
EQUAL, BETTER = (2.0, 2.0), (2.0, 2.6)
"""Separations of the scores of two systems: equal error rates of 15.9 %, and of 15.9 % and 9.7 %."""
EQUAL_STRENGTHS, BETTER_STRENGTHS = (3.0, 3.0), (3.0, 3.6)
"""Of the logits of two systems: error rates of about 4.5 %, and of 4.5 % and 1.9 %."""
SPEAKERS = (100, 50, 20, 10, 5)


def detection_measures(found: Trials) -> list[Measure]:
    """Return the metrics of detection scores."""
    return [
        Measure("equal error rate", [equal_error_statistic(each, found.labels) for each in found.scores]),
        Measure("area", [area_statistic(each, found.labels) for each in found.scores], lower_is_better=False),
        Measure("actual cost", [actual_cost_statistic(each, found.labels, point=POINT) for each in found.scores]),
        Measure("Cllr", [cllr_statistic(each, found.labels) for each in found.scores]),
    ]


def class_measures(found: Predictions) -> list[Measure]:
    """Return the metrics of probabilities; the error rate is tested by McNemar's test, and again by bootstrap."""
    classes = len(CONCERN)
    scores = [
        meta_pattern_concern_score(
            each, found.target, num_classes=classes, concern=CONCERN.clamp(min=1), from_logits=False, reduction="none"
        )
        for each in found.probs
    ]
    decisions = [each.argmax(1) for each in found.probs]
    wrong = [each != found.target for each in decisions]
    return [
        Measure("MPCS", [mean_statistic(each) for each in scores]),
        rate_measure("error rate (McNemar)", wrong),
        Measure("error rate (bootstrap)", [mean_statistic(each) for each in wrong]),
    ]


def rejections(pairs: int, resamples: int, *, is_null: bool, seed: int = 0) -> dict[str, float]:
    """Return how often two systems are found to differ at the level 0.05, by metric."""
    generator = torch.Generator().manual_seed(seed)
    names: list[str] = []

    def differ(number: int) -> list[bool]:
        tried = trials(generator, TARGETS, NONTARGETS, EQUAL if is_null else BETTER)
        classified = predictions(generator, SAMPLES, EQUAL_STRENGTHS if is_null else BETTER_STRENGTHS)
        drawn = [
            (
                detection_measures(tried),
                Resamples(len(tried.labels), number=resamples, strata=tried.labels, seed=number),
            ),
            (class_measures(classified), Resamples(SAMPLES, number=resamples, seed=number)),
        ]
        found = [each for measures, kept in drawn for each in compare_systems(["A", "B"], measures, kept)]
        names[:] = [each.measure for each in found]
        return [each.found.p_value <= 0.05 for each in found]

    with _bar("true null" if is_null else "true difference", pairs) as advance:
        shares = share(pairs, differ, advance)
    return dict(zip(names, shares.tolist(), strict=True))


def cluster_coverage(speakers: int, sets: int, resamples: int, seed: int = 0) -> dict[str, float]:
    """Return how often intervals of trials that share speakers hold the true value: by resampled unit and metric."""
    generator = torch.Generator().manual_seed(seed)

    def hold(number: int) -> list[bool]:
        found = speaker_trials(generator, speakers)
        [scores], labels, speaker = found
        statistics = equal_error_statistic(scores, labels), cllr_statistic(scores, labels)
        held = []
        for clusters in (None, speaker):
            drawn = Resamples(len(labels), number=resamples, strata=labels, clusters=clusters, seed=number)
            for statistic, truth in zip(statistics, (SPEAKER_TRUTH.equal_error, SPEAKER_TRUTH.cllr), strict=True):
                low, high = bootstrap_interval(statistic, drawn)
                held.append(low <= truth <= high)
        return held

    with _bar(f"{speakers} speakers", sets) as advance:
        shares = share(sets, hold, advance).tolist()
    names = [f"{metric}, {unit}" for unit in ("trials", "speakers") for metric in ("equal error rate", "Cllr")]
    return dict(zip(names, shares, strict=True))


def stratified_coverage(targets: int, nontargets: int, sets: int, resamples: int, seed: int = 0) -> dict[str, float]:
    """Return how often intervals of independent trials hold the true value, by metric."""
    generator, separation = torch.Generator().manual_seed(seed), EQUAL[0]
    truth = llr_truth(separation)
    values = truth.equal_error, truth.area, truth.cost(POINT), truth.cllr

    def hold(number: int) -> list[bool]:
        found = trials(generator, targets, nontargets, (separation,))
        drawn = Resamples(len(found.labels), number=resamples, strata=found.labels, seed=number)
        ends = [bootstrap_interval(measure.statistics[0], drawn) for measure in detection_measures(found)]
        return [low <= value <= high for (low, high), value in zip(ends, values, strict=True)]

    with _bar(f"{targets} targets", sets) as advance:
        shares = share(sets, hold, advance).tolist()
    return dict(zip(["equal error rate", "area", "actual cost", "Cllr"], shares, strict=True))


def hull_coverage(targets: int, nontargets: int, sets: int, resamples: int, seed: int = 0) -> dict[str, float]:
    """Return how often the percentile interval of the equal error rate on the convex hull holds the true rate."""
    generator, separation = torch.Generator().manual_seed(seed), EQUAL[0]
    truth = llr_truth(separation).equal_error

    def hold(number: int) -> list[bool]:
        [scores], labels, _ = trials(generator, targets, nontargets, (separation,))
        low, high = stratified_bootstrap(equal_error_rate, scores, labels, resamples=resamples, seed=number)
        return [low.item() <= truth <= high.item()]

    with _bar(f"{targets} targets, hull", sets) as advance:
        return {"equal error rate on the hull": share(sets, hold, advance).item()}


@contextmanager
def _bar(name: str, total: int) -> Iterator[Callable[[], None]]:
    with counting_bar(name, total) as advance:
        yield advance


def _error(rate: float, repeats: int) -> str:
    return f"two standard errors of a share of {repeats}: {2 * sqrt(rate * (1 - rate) / repeats):.3f}"


def _shares(shares: Sequence[dict[str, float]], names: Sequence[str]) -> str:
    rows = [[key, *(f"{each[key]:.3f}" for each in shares)] for key in shares[0]]
    return Table(["metric", *names], rows).markdown()


def main() -> None:
    """Print the tables."""
    torch.set_num_threads(1)
    null, power = rejections(1000, 400, is_null=True), rejections(300, 400, is_null=False, seed=1)
    print(
        f"Pairs of systems called different at the level 0.05; trials: {TARGETS} targets and {NONTARGETS} non-targets,"
    )
    print(f"cost at {POINT.label()}; {SAMPLES} classified samples. Scores correlate ({_error(0.05, 1000)}):\n")
    print(_shares([null, power], ["equal systems", "15.9 against 9.7 % EER, about 4.5 against 1.9 % errors"]))
    clustered = [cluster_coverage(speakers, 600, 400) for speakers in SPEAKERS]
    print(f"\nIntervals (95 %) that hold the true value; 20 trials for each speaker ({_error(0.95, 600)}):\n")
    print(_shares(clustered, [f"{speakers} speakers" for speakers in SPEAKERS]))
    sizes = ((100, 400), (500, 2000))
    titles = [f"{size[0]} targets, {size[1]} non-targets" for size in sizes]
    print(f"\nIntervals (95 %) of independent trials that hold the true value ({_error(0.95, 1000)}):\n")
    print(_shares([stratified_coverage(*size, 1000, 400) for size in sizes], titles))
    print(f"\nThe same by stratified_bootstrap, on the convex hull ({_error(0.95, 200)}):\n")
    print(_shares([hull_coverage(*size, 200, 200) for size in sizes], titles))
    with _bar("exact coverage of the cost interval", 3000) as advance:
        print(f"\n{exact_coverage(3000, advance)}")
    sets = 200
    print(f"\nIntervals (95 %) of costs; 100 targets and 1000 non-targets ({_error(0.95, sets)}):\n")
    with _bar("minimum costs", sets) as advance:
        print(at_a_development_threshold(sets, 200, advance).markdown())


if __name__ == "__main__":
    main()
