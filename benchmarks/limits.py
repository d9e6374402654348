"""Count how often limits of a `DecisionRule` are exceeded, for each kind of limit on real and simulated predictions.

Run: MPCS_DATA_ROOT=data python -m benchmarks.limits [FITS] [CASE ...]

A case is named by the beginning of its line, such as "digits, any of decided". Each pool of predictions is taken as the
whole population, and the samples of a fit are drawn from it with replacement, so that the true rate of each limit is
known. A limit with confidence 0.95 may be exceeded by 5 % of the fits.

Where MAPIE is installed (pip install mapie), its `BinaryClassificationController` chooses a threshold by the same
samples for cases of two classes: the likelier class is decided, and what the threshold excludes is referred.
"""

import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from itertools import combinations
from math import sqrt
from pathlib import Path
from typing import Literal, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from scipy.special import rel_entr
from scipy.stats import binom
from torch import Tensor

from benchmarks.held_out import HeldOut, digits, mnist
from mpcs_torch import ConcernSpec
from mpcs_torch.evaluation.units import DecisionUnits
from mpcs_torch.learning import DecisionRule, Limit, UnattainableLimitError
from mpcs_torch.learning.guaranteed_limits import LimitedRate

FITS = 500
CONFIDENCE = 0.95
LEVELS = (0.005, 0.01, 0.05)
CLASS_LEVELS = (0.05, 0.1, 0.2)
HEADER = (
    "case",
    "limit",
    "above",
    "coverage",
    "above (MAPIE)",
    "coverage (MAPIE, or Hoeffding-Bentkus)",
    "fixed",
)
BINOMIAL = LimitedRate.p_values


class Pool(NamedTuple):
    """A population of predictions, with the number of clusters, or of samples without clusters, to draw for a fit."""

    predictions: HeldOut
    drawn: int
    clusters: Tensor | None = None
    """(N,), int64, rising."""
    sites: Tensor | None = None
    """(N,), int64."""

    def draw(self, seed: int) -> tuple[Tensor, Tensor]:
        """Draw with replacement: the places of samples, and the codes of their clusters, both (n,)."""
        generator = torch.Generator().manual_seed(seed)
        sizes = torch.ones(len(self.predictions.target)).long()
        if self.clusters is not None:
            sizes = self.clusters.bincount()
        chosen = torch.randint(len(sizes), (self.drawn,), generator=generator)
        codes = torch.arange(self.drawn).repeat_interleave(sizes[chosen])
        within = torch.arange(len(codes)) - starts(sizes[chosen])[codes]
        return starts(sizes)[chosen][codes] + within, codes

    def exceeds(self, limits: list[Limit], decisions: Tensor) -> bool:
        """Tell whether the rate of a limit, in a group of it, is above the limit in the population."""
        return any(
            rate > limit.at_most + 1e-9
            for limit in limits
            for rate in self._rates(limit, decisions)
        )

    def _rates(self, limit: Limit, decisions: Tensor) -> Iterator[float]:
        """Yield the rate of a limit in each of its groups, or in the whole population."""
        _, target, concern = self.predictions
        is_decided = decisions >= 0
        is_error = is_decided & (limit.losses(concern)[target, decisions.clamp(min=0)] > 0)
        counts = is_decided if limit.is_of_decided else torch.ones_like(is_decided)
        labels = limit.limited_classes(concern)
        if labels is not None:
            limited = decisions if limit.is_of_decided else target
            counts = counts & torch.isin(limited, torch.tensor(labels))
        sites = torch.zeros_like(target)
        if limit.by is not None and self.sites is not None:
            sites = self.sites
        for site in sites.unique():
            counted = counts & (sites == site)
            if limit.per == "cluster" and self.clusters is not None:
                yield mean_of_clusters(is_error[counted], self.clusters[counted])
            else:
                yield (is_error & counted).sum().item() / max(1, int(counted.sum()))


def starts(sizes: Tensor) -> Tensor:
    """Return the place of the first sample of each cluster, (K,), by the sizes of clusters."""
    return sizes.cumsum(0) - sizes


def mean_of_clusters(is_error: Tensor, clusters: Tensor) -> float:
    """Return the mean over clusters of the share of their samples (N,) that are errors."""
    samples = clusters.bincount()
    errors = clusters[is_error].bincount(minlength=len(samples))
    # A code between those of the clusters may have no sample.
    rates = errors[samples > 0] / samples[samples > 0]
    return (rates.sum() / len(rates)).item()


def simulated(
    frequencies: Tensor,
    samples: int,
    drawn: int,
    *,
    noise: float,
    largest: int = 1,
    shared: float = 0.0,
) -> Pool:
    """Simulate overconfident logits of clusters of 1 to ``largest`` samples of one class, which share some noise."""
    generator, classes = torch.Generator().manual_seed(0), len(frequencies)
    sizes = torch.randint(
        1, largest + 1, (2 * samples // (largest + 1),), generator=generator
    )
    clusters = torch.arange(len(sizes)).repeat_interleave(sizes)
    target = frequencies.multinomial(len(sizes), replacement=True, generator=generator)[
        clusters
    ]
    of_clusters = torch.randn(len(sizes), classes, generator=generator)[clusters]
    of_samples = torch.randn(len(target), classes, generator=generator)
    mixed = of_clusters * shared**0.5 + of_samples * (1 - shared) ** 0.5
    logits = 1.5 * (noise * mixed + 3 * torch.eye(classes)[target] + frequencies.log() / 3)
    names = ["common", "rare"] if classes == 2 else [str(label) for label in range(classes)]
    return Pool(
        HeldOut(logits, target, ConcernSpec(names)),
        drawn,
        None if largest == 1 else clusters,
    )


def with_ties(pool: Pool, distinct: int) -> Pool:
    """Replace logits by some of them, those of samples of the same class."""
    logits, target, concern = pool.predictions
    places = torch.arange(len(target)) % distinct
    for label in target.unique():
        of_class = (target == label).nonzero().squeeze(1)
        places[of_class] = of_class[
            torch.arange(len(of_class)) % (distinct // len(concern.classes))
        ]
    # Every 17th sample has the logits of its neighbour: otherwise, all ties would be of one class.
    mixed = torch.where(torch.arange(len(target)) % 17 == 0, places.roll(1), places)
    return pool._replace(predictions=HeldOut(logits[mixed], target, concern))


def with_sites(pool: Pool) -> Pool:
    """Divide samples among ten sites, the last of which has three times the noise."""
    logits, target, concern = pool.predictions
    sites = torch.arange(len(target)) % 10
    noise = torch.randn(logits.shape, generator=torch.Generator().manual_seed(1)) * 3
    return pool._replace(
        predictions=HeldOut(
            torch.where((sites == 9)[:, None], logits + noise, logits), target, concern
        ),
        sites=sites,
    )


GRADES = ConcernSpec(
    ["none", "moderate", "severe"], class_groups={"referable": ["moderate", "severe"]}
)


def patients(*, informative: bool, ill: float, drawn: int) -> Pool:
    """Simulate images of patients, 1 to 60 of each; more of those that are harder, or not, and some patients are ill.

    Half of the images of an ill patient show it. Errors are more frequent in harder patients, and shared by images.
    """
    generator, number = torch.Generator().manual_seed(0), 4000
    hard, shared = (
        torch.rand(number, generator=generator),
        torch.randn(number, 3, generator=generator),
    )
    other = hard if informative else torch.rand(number, generator=generator)
    clusters = torch.arange(number).repeat_interleave(
        1 + (60 * other**3).long().clamp(max=59)
    )
    grade = torch.where(
        torch.rand(number, generator=generator) < ill, 1 + (torch.arange(number) % 2), 0
    )
    target = grade[clusters] * (torch.rand(len(clusters), generator=generator) < 0.5)
    noise = 0.6 * shared[clusters] + 0.8 * torch.randn(
        len(clusters), 3, generator=generator
    )
    logits = 3 * torch.eye(3)[target] + (0.3 + 1.2 * hard[clusters])[:, None] * noise
    return Pool(HeldOut(2 * logits, target, GRADES), drawn, clusters)


def of_units(pool: Pool) -> Pool:
    """Combine the samples of each cluster by their worst one."""
    assert pool.clusters is not None
    logits, target, concern = pool.predictions
    units = DecisionUnits.of(
        pool.clusters, "worst", concern, len(concern.classes), len(target)
    )
    worst = units.probabilities(logits.double().softmax(1)).clamp(min=1e-12).log()
    return Pool(
        HeldOut(worst, units.classes(target, len(concern.classes)), concern), pool.drawn
    )


class Case(NamedTuple):
    """Limits for samples of a pool."""

    name: str
    pool: Pool
    limits: list[Limit]
    kept: int | None = None
    """The most samples that are kept of a cluster, at random."""
    is_weighted: bool = False
    """Whether those that are kept are weighted by their number in the cluster, divided by the number kept."""
    has_mapie: bool = False
    """Whether the controller of MAPIE, which is for two classes, decides, too."""


def patient_cases() -> Iterator[Case]:
    """Yield cases of patients with 1 to 60 images."""
    few = patients(informative=True, ill=0.15, drawn=800)
    for informative in (False, True):
        name = f"patients, {'more images of harder ones' if informative else 'any sizes'}"
        pool = few if informative else patients(informative=False, ill=0.15, drawn=800)
        for per, any_of, ill_of in (("sample", 0.05, 0.15), ("cluster", 0.03, 0.1)):
            yield Case(name, pool, [Limit(any_of, "any", per=per)])
            yield Case(name, pool, [Limit(any_of, "any", "decided", per=per)])
            yield Case(
                f"{name}, few ill", pool, [Limit(ill_of, "any", "referable", per=per)]
            )
        yield Case(f"{name}, as units", of_units(pool), [Limit(0.05, "any")])
        yield Case(
            f"{name}, as units, few ill", of_units(pool), [Limit(0.15, "any", "referable")]
        )
    kept = Case("at most 4 images", few, [Limit(0.05, "any")], kept=4)
    yield kept._replace(name="at most 4 images, without weights")
    yield kept._replace(name="at most 4 images, with weights", is_weighted=True)
    yield kept._replace(
        name="at most 4 images, per patient", limits=[Limit(0.03, "any", per="cluster")]
    )


def cases() -> Iterator[Case]:
    """Yield all cases, in the order of the table."""
    real = {
        "MNIST": (mnist(Path(os.environ.get("MPCS_DATA_ROOT", "data"))), 2000),
        "digits": (digits(), 1000),
    }
    for name, (predictions, drawn) in real.items():
        pool = Pool(predictions, drawn)
        for kind, of, errors in (
            ("dangerous", "samples", "dangerous"),
            ("any", "samples", "any"),
            ("any of decided", "decided", "any"),
            ("any of decided as 4", "decided 4", "any"),
        ):
            yield from (
                Case(f"{name}, {kind}", pool, [Limit(level, errors, of)])
                for level in LEVELS
            )
        yield from (
            Case(f"{name}, any of class 4", pool, [Limit(level, "any", "4")])
            for level in CLASS_LEVELS
        )
        yield Case(
            f"{name}, several",
            pool,
            [Limit(0.05, "any"), Limit(0.1, "any", "4"), Limit(0.05, "any", "decided")],
        )
    for name, (predictions, drawn) in real.items():
        digits_of = predictions.concern.classes
        coarse = {
            " or ".join(some): 0.2 * len(some) - 0.1
            for size in (2, 3)
            for some in combinations(digits_of, size)
        }
        for kind, answers in (("no answers", {}), ("either of two or three", coarse)):
            concern = replace(predictions.concern, refer=1.0, answers=answers)
            pool = Pool(predictions._replace(concern=concern), drawn)
            for errors in ("any", "dangerous"):
                yield Case(f"coarse {name}, {kind}", pool, [Limit(0.005, errors)])
    even, rare = torch.ones(3) / 3, torch.tensor([50 / 51, 1 / 51])
    imbalanced = simulated(rare, 30_000, 8000, noise=1)
    for level in CLASS_LEVELS:
        yield Case(
            "1:50, any of rare", imbalanced, [Limit(level, "any", "rare")], has_mapie=True
        )
        yield Case(
            "1:50, any of decided as rare",
            imbalanced,
            [Limit(level, "any", "decided rare")],
            has_mapie=True,
        )
    many = simulated(torch.ones(50) / 50, 20_000, 2000, noise=1)
    yield from (
        Case("50 classes", many, [limit])
        for limit in (Limit(0.05, "any"), Limit(0.05, "any", "decided"))
    )
    ties = with_ties(simulated(even, 20_000, 1500, noise=1), 18)
    yield from (
        Case("18 distinct rows", ties, [limit])
        for limit in (Limit(0.02, "any"), Limit(0.035, "any", "decided"))
    )
    for shared in (0.0, 0.5, 0.9, 1.0):
        clusters = simulated(even, 20_000, 800, noise=1.3, largest=20, shared=shared)
        yield Case(
            f"clusters of 1 to 20, {shared:g} shared", clusters, [Limit(0.05, "any")]
        )
    yield from patient_cases()
    sites = with_sites(simulated(even, 20_000, 4000, noise=1))
    yield Case("10 sites, one hard", sites, [Limit(0.1, "any", by="site")])


def decisions_of_rule(case: Case, seed: int) -> Tensor:
    """Return the decisions for the whole pool, by a rule that is fitted to drawn samples."""
    logits, target, concern = case.pool.predictions
    places, clusters = case.pool.draw(seed)
    weights = None
    if case.kept is not None:
        sizes = clusters.bincount()
        kept = some_of_each(clusters, case.kept, seed)
        places, clusters = places[kept], clusters[kept]
        if case.is_weighted:
            weights = (sizes / sizes.clamp(max=case.kept))[clusters]
    rule = DecisionRule(concern, case.limits, seed=seed)
    rule.fit(
        logits[places],
        target[places],
        clusters=None if case.pool.clusters is None else clusters,
        groups=None if case.pool.sites is None else {"site": case.pool.sites[places]},
        weights=weights,
    )
    return rule(logits)


def some_of_each(clusters: Tensor, number: int, seed: int) -> Tensor:
    """Return the places of at most so many samples of each cluster, at random; clusters are numbered without gaps."""
    shuffled = torch.randperm(len(clusters), generator=torch.Generator().manual_seed(seed))
    order = shuffled[clusters[shuffled].argsort(stable=True)]
    within = torch.arange(len(order)) - starts(clusters.bincount())[clusters[order]]
    return order[within < number]


def hoeffding_bentkus(
    rate: LimitedRate, decided_at: Tensor, steps: int, *, times: float | None = None
) -> Tensor:
    """Return the p-values of limits of clusters that the package had before: each counts like the largest."""
    if rate.clusters is None:
        return BINOMIAL(rate, decided_at, steps, times=times)
    excess = rate._over_clusters(
        decided_at, steps, lambda errors, of: errors - rate.at_most * of
    ).numpy()
    units = rate._over_clusters(
        decided_at, steps, lambda errors, of: (of > 0).double()
    ).numpy()
    units = units * (times or 1.0)
    mean = rate.at_most + (excess * (times or 1.0) + (times is not None)) / np.maximum(
        units * rate.largest, 1
    )
    low, errors = mean.clip(0, rate.at_most), np.ceil(units * mean - 1e-9)
    divergence = rel_entr(low, rate.at_most) + rel_entr(1 - low, 1 - rate.at_most)
    return torch.from_numpy(
        np.minimum(
            np.exp(-units * divergence), np.e * binom.cdf(errors, units, rate.at_most)
        )
    )


def decisions_of_mapie(
    case: Case, seed: int, method: Literal["bonferroni_holm", "fixed_sequence"]
) -> Tensor:
    """Return the decisions for the whole pool, by MAPIE's threshold on the probability of the rare class."""
    from mapie.risk_control import BinaryClassificationController  # type: ignore[import-not-found]

    logits, target, _ = case.pool.predictions
    [limit], (places, _) = case.limits, case.pool.draw(seed)
    controller = BinaryClassificationController(
        lambda rows: np.stack([1 - rows, rows], axis=1),
        "precision" if limit.is_of_decided else "recall",
        target_level=1 - limit.at_most,
        confidence_level=CONFIDENCE,
        fwer_method=method,
    )
    rare = logits.double().softmax(dim=1)[:, 1]
    controller.calibrate(rare[places].numpy(), target[places].numpy())
    if controller.best_predict_param is None:
        return torch.full_like(target, -1)
    is_above, likely = rare >= float(controller.best_predict_param), (rare >= 0.5).long()
    is_excluded = (
        ~is_above & (likely == 1) if limit.is_of_decided else is_above & (likely == 0)
    )
    return torch.where(is_excluded, -1, likely)


def shares(case: Case, decisions: list[Tensor]) -> tuple[str, str]:
    """Return the share of fits that exceed a limit, with its standard error, and the mean coverage."""
    above = np.mean([case.pool.exceeds(case.limits, each) for each in decisions])
    coverage = np.mean([(each >= 0).double().mean().item() for each in decisions])
    return (
        f"{above:.3f} ± {sqrt(above * (1 - above) / len(decisions)):.3f}",
        f"{coverage:.3f}",
    )


def in_words(limits: list[Limit]) -> str:
    """Return limits as text, without the confidence that all of them have."""
    sure = f" with confidence {CONFIDENCE:g}"
    return "; ".join(str(limit).removesuffix(sure) for limit in limits)


def cells(case: Case, fits: int) -> list[str]:
    """Return the row of a case; a fit that is refused refers all."""
    row = [case.name, in_words(case.limits)]
    refusals = list[str]()

    def decisions_of(seed: int) -> Tensor:
        try:
            return decisions_of_rule(case, seed)
        except UnattainableLimitError as error:
            refusals.append(f"takes {error.needed} {error.unit}")
            return torch.full_like(case.pool.predictions.target, -1)

    with warnings.catch_warnings():
        # Classes without a limit are rare, and some fits refer all samples.
        warnings.simplefilter("ignore")
        decisions = [decisions_of(seed) for seed in range(fits)]
        if len(refusals) == fits:
            return [*row, f"refused: {refusals[0]}"]
        above, coverage = shares(case, decisions)
        if refusals:
            coverage += f" ({len(refusals)} refused: {refusals[0]})"
        row += [above, coverage]
        if case.pool.clusters is not None:
            with patch.object(LimitedRate, "p_values", hoeffding_bentkus):
                decisions = [decisions_of(seed) for seed in range(min(fits, 100))]
            _, coverage = shares(case, decisions)
            row += ["", coverage]
        if case.has_mapie and find_spec("mapie"):
            for method in ("bonferroni_holm", "fixed_sequence"):
                decisions = [decisions_of_mapie(case, seed, method) for seed in range(fits)]
                row += shares(case, decisions)
    return row


def main() -> None:
    """Print a row for each case as it finishes."""
    torch.set_num_threads(1)
    arguments = sys.argv[1:]
    fits = int(arguments.pop(0)) if arguments and arguments[0].isdigit() else FITS
    print(" | ".join(HEADER), flush=True)
    for case in cases():
        if not arguments or case.name.startswith(tuple(arguments)):
            print(" | ".join(cells(case, fits)), flush=True)


if __name__ == "__main__":
    main()
