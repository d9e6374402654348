"""Planted faults that make an evaluation misleading are warned of, with their codes, and clean evaluations are not."""

import copy
import pickle
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor

from mpcs_torch import ConcernSpec, Evaluation, evaluate
from mpcs_torch.evaluation import EvaluationWarning, cautions, evaluate_confusion
from mpcs_torch.evaluation.cautions import independence
from mpcs_torch.evaluation.classifier_files import open_models, score_models
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.functional.inputs.evaluation_warnings import (
    hash_rows,
    hashed,
    known_rows,
    rare_classes,
    warn_of_known,
)
from mpcs_torch.learning import DecisionRule, Limit
from mpcs_torch.learning.selection import warn_of_pick
from tests.cli.shell import run

SKIN = ConcernSpec(
    ["benign", "unclear", "malignant"],
    releases=[
        ["benign", "unclear"],
        ["unclear", "benign"],
        ["benign", "malignant"],
        ["unclear", "malignant"],
    ],
    factor=0.1,
)
"""Only malignant cases are dangerous to miss."""
METRICS = ["accuracy", "least_concern_cost", "calibration_slope"]
Rows = tuple[Tensor, Tensor]


def drawn(rows: int = 900, seed: int = 0, *, times: float = 1.0, classes: int = 3) -> Rows:
    """Draw probabilities, and labels by them; then multiply their logarithms."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(rows, classes, generator=generator, dtype=torch.float64)
    target = logits.softmax(1).multinomial(1, generator=generator).squeeze(1)
    return (times * logits).softmax(1), target


def votes(rows: int, seed: int, trees: int = 10) -> Rows:
    """Draw the shares of a forest's votes, which tie, and labels by them."""
    generator, (probs, _) = torch.Generator().manual_seed(seed), drawn(rows, seed)
    trees_votes = probs.multinomial(trees, replacement=True, generator=generator)
    shares = torch.nn.functional.one_hot(trees_votes, 3).double().mean(1)
    return shares, shares.multinomial(1, generator=generator).squeeze(1)


def cancelling() -> Rows:
    """Return probabilities of 0.6, of which 80 % are right, and of 0.9, of which 70 % are."""
    sure, place = torch.tensor([0.6, 0.9]).double().repeat(500), torch.arange(1000)
    is_wrong = place // 2 % 10 >= torch.where(place % 2 > 0, 7, 8)
    return torch.stack([sure, 1 - sure], dim=1), is_wrong.long()


def scored(rows: Any, **arguments: Any) -> list[EvaluationWarning]:
    return list(
        evaluate(*rows, **{"concern": SKIN, "metrics": METRICS, **arguments}).cautions
    )


def rare(count: int) -> Rows:
    """Draw rows with a number of malignant cases, which are the last."""
    probs, target = drawn(2000)
    keep = torch.cat([(target != 2).nonzero()[:, 0], (target == 2).nonzero()[:count, 0]])
    return probs[keep], target[keep]


def by_three(rows: Rows) -> torch.Tensor:
    """Return clusters of three rows each, from the last on."""
    return torch.arange(len(rows[1])).flip(0) // 3


def fitted_to_patients(malignant: int) -> list[EvaluationWarning]:
    preds, target = rare(malignant)
    rule = DecisionRule(SKIN, [Limit(0.2, "any")])
    fit = partial(rule.fit, clusters=by_three((preds, target)))
    return warned(fit, preds.log(), target)


def from_file(
    folder: Path,
    columns: dict[str, Sequence[object]],
    cluster: str | None = None,
    **options: object,
) -> list[EvaluationWarning]:
    """Score a csv file with further columns."""
    probs, target = drawn()
    rows = pd.DataFrame(probs.numpy(), columns=SKIN.classes)
    rows["target"] = [SKIN.classes[label] for label in target]
    path = folder / "predictions.csv"
    rows.assign(**columns).to_csv(path, index=False)
    opened = open_models([path], ReadOptions(cluster=cluster), SKIN)
    return list(score_models(opened, SKIN, **options).cautions)  # type: ignore[arg-type]


def warned(work: Callable[..., object], *arguments: object) -> list[EvaluationWarning]:
    """Return what is warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work(*arguments)
    return [each.message for each in caught if isinstance(each.message, EvaluationWarning)]


def shared(
    share: float, rows: int = 1000, fitted: Rows | None = None
) -> list[EvaluationWarning]:
    """Fit a rule, and evaluate it on rows of which a share was in the fit."""
    preds, target = drawn(rows, 1) if fitted is None else fitted
    rule = DecisionRule(SKIN, calibration=None).fit(preds.log().clamp(min=-30), target)
    new, _ = drawn(1000, 2) if fitted is None else votes(1000, 4)
    number = round(1000 * share)
    new[:number] = preds[:number]
    return warned(rule.warn_of_fitted, new.log().clamp(min=-30).float())


def underconfident(rows: int) -> tuple[Tensor, Tensor]:
    """Draw right classes with so little confidence that decisions by cost avoid them."""
    target = torch.arange(rows) % 3
    probs = torch.full((rows, 3), 0.3, dtype=torch.float64)
    return probs.scatter(1, target.unsqueeze(1), 0.4), target


def test_rows_are_known_by_their_numbers_however_small_and_whatever_the_sign_of_0() -> None:
    rows = torch.tensor([[1e-9, 0.5], [2e-9, 0.5], [0.0, 1.0], [-0.0, 1.0]])
    small, twice, zero, minus_zero = hash_rows(rows).tolist()
    assert small != twice
    assert zero == minus_zero


SPLIT_MIX = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
"""The first numbers of SplitMix64 from the seed 0, as Vigna's splitmix64.c prints them."""


def test_rows_that_a_saved_rule_knows_are_known_by_the_same_hashes_for_ever() -> None:
    assert hashed(torch.tensor([1, 2, 3])).tolist() == [number >> 2 for number in SPLIT_MIX]
    # The bits of 1.0 as float32, in column 0; and those of 0.0, in column 1.
    of_columns = hashed(torch.tensor([0x3F800000, 1 << 32]))
    expected = hashed(of_columns.sum(dim=0, keepdim=True))
    assert hash_rows(torch.tensor([[1.0, 0.0]], dtype=torch.float64)).equal(expected)
    assert not hash_rows(torch.tensor([[0.0, 1.0]])).equal(expected)


def test_the_smallest_hashes_are_known_unless_more_than_1_percent_are_repeated() -> None:
    assert known_rows(torch.arange(5000).flip(0)).equal(torch.arange(4096))
    few = torch.arange(200)
    few[199] = 0  # two of 200 rows are equal
    assert known_rows(few).equal(torch.arange(199))
    few[198] = 0
    assert known_rows(few).tolist() == []
    assert known_rows(few[:0]).tolist() == []


@pytest.mark.parametrize(
    ("fitted", "rows", "overlap"),
    [
        (torch.arange(100), torch.arange(100), "100 % of the 100 rows"),
        (torch.arange(100), torch.arange(95, 195), "5 % of the 100 rows"),
        (torch.arange(100), torch.arange(96, 196), None),
        (torch.arange(100), torch.arange(200, 300), None),
        (torch.arange(0), torch.arange(100), None),
        (torch.arange(100), torch.arange(0), None),
        # Rows that repeat themselves may match by chance.
        (torch.arange(100), torch.arange(100) // 2, None),
        (torch.arange(100) // 2, torch.arange(100), None),
        # Of 4096 and more rows, only the smallest hashes are comparable: up to 8190.
        (2 * torch.arange(4096), torch.arange(8191), "about 50 % of the 8191 rows"),
        (2 * torch.arange(9000), torch.arange(16_384), "about 50 % of the 16384 rows"),
        (2 * torch.arange(9000), torch.arange(8191, 16_384), None),
        (2 * torch.arange(4095), torch.arange(16_380), "25 % of the 16380 rows"),
    ],
)
def test_the_share_of_known_rows_is_that_of_the_rows_that_can_be_compared(
    fitted: Tensor, rows: Tensor, overlap: str | None
) -> None:
    warned_of = warn_of_known(known_rows(fitted), rows, "the fit")
    assert [warning.code for warning in warned_of] == ["E1"] * (overlap is not None)
    for warning in warned_of:
        assert warning.sentence.startswith(f"{overlap} are also in the fit: ")


def test_classes_of_which_few_are_seen_are_named_if_no_limit_holds_for_them() -> None:
    names = [f"c{number}" for number in range(8)]
    dangerous = torch.eye(8, dtype=torch.bool).roll(1, dims=1)
    dangerous[1] = False

    def named(counts: Sequence[int], limited: Sequence[str] = ()) -> str:
        rare = rare_classes(names, torch.tensor(counts), dangerous, limited, "rows")
        assert [warning.code for warning in rare] == ["E4"] * len(rare)
        return "; ".join(warning.sentence.split(": ")[0] for warning in rare)

    begin = "few rows of classes that are dangerous to miss, "
    assert named([59, 0, 60, 59, 59, 59, 59, 99]) == ""
    assert named([58, 0, 60, 59, 59, 59, 59, 0]) == f"{begin}c0 (58), c7 (0)"
    assert named([58, 0, 60, 59, 59, 59, 59, 0], ["c7"]) == f"{begin}c0 (58)"
    five = "c0 (1), c2 (2), c3 (3), c4 (4), c5 (5)"
    assert named([1, 0, 2, 3, 4, 5, 59, 59]) == f"{begin}{five}"
    assert named([1, 0, 2, 3, 4, 5, 6, 7]) == f"{begin}{five} and others"


def test_the_note_on_clusters_names_an_unused_column(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(
        "no,yes,target,my patient\n"
        + "".join(f"0.{6 - n % 3},0.{4 + n % 3},{n % 2},p{n // 3}\n" for n in range(60))
    )
    result = score_models(open_models([tmp_path / "p.csv"], ReadOptions()), None)
    assert independence("rows", "my patient") in result.notes
    assert "--cluster 'my patient'" in independence("rows", "my patient")


PATIENTS = torch.arange(900) // 6
DECISIONS = torch.arange(900) % 3
SHARED_IDS: dict[str, dict[str, Sequence[object]]] = {
    "patient": {"patient": [f"p{n}" for n in PATIENTS]},
    "whole numbers": {"subject_id": PATIENTS.tolist()},
    "id": {"id": PATIENTS.tolist()},
    "codes without a telling name": {"who": [f"x{n}" for n in PATIENTS]},
    "shuffled, two rows each": {"case": [f"c{n * 7 % 450}" for n in range(900)]},
}
CERTAIN = torch.eye(3).double()[(DECISIONS + (torch.arange(900) % 10 == 0)) % 3]
PLANTED: dict[str, tuple[str, Callable[[], list[EvaluationWarning]]]] = {
    "5 % of the rows were in the fit": ("E1", lambda: shared(0.05)),
    "all rows were in the fit": ("E1", lambda: shared(1.0)),
    "a third of the rows were in a large fit": ("E1", lambda: shared(0.33, 20_000)),
    "groups": ("E2", lambda: scored(drawn(), groups={"speaker": torch.arange(900) // 100})),
    "very overconfident": ("E3", lambda: scored(drawn(300, times=6.0))),
    "underconfident": ("E3", lambda: scored(drawn(times=0.4))),
    "certain, but 10 % wrong": ("E3", lambda: scored((CERTAIN, DECISIONS))),
    "decisions by cost that cost more": ("E3", lambda: scored(underconfident(400))),
    "too sure and too unsure, which cancel, without costs": (
        "E3",
        lambda: scored(cancelling(), concern=None, metrics=None),
    ),
    "overconfident, of patients": (
        "E3",
        lambda: scored(drawn(3000, times=3.0), clusters=torch.arange(3000) // 5),
    ),
    "no malignant case": ("E4", lambda: scored(rare(0))),
    "58 malignant cases": ("E4", lambda: scored(rare(58))),
    "10 malignant cases of decisions": (
        "E4",
        lambda: scored((rare(10)[0].argmax(1), rare(10)[1]), metrics=["dangerous_rate"]),
    ),
    "174 malignant cases of 58 patients": (
        "E4",
        lambda: scored(rare(174), clusters=by_three(rare(174))),
    ),
    "80 rows of each of 40 classes, but of 40 patients": (
        "E4",
        lambda: scored(
            (drawn(3200, classes=40)[0], torch.arange(3200) % 40),
            concern=ConcernSpec(40),
            metrics=["macro_f1"],
            clusters=torch.arange(3200) % 1600 // 40,
        ),
    ),
    "a fit to 58 patients with malignant cases": ("E4", lambda: fitted_to_patients(174)),
    "the best of 20 epochs": ("E5", lambda: warn_of_pick(20, "mpcs", "validation data")),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_warned_of(fault: str) -> None:
    code, found = PLANTED[fault]
    assert [warning.code for warning in found()] == [code]


@pytest.mark.parametrize("name", SHARED_IDS)
def test_a_column_of_a_file_that_several_rows_share_is_warned_of(
    name: str, tmp_path: Path
) -> None:
    assert [warning.code for warning in from_file(tmp_path, SHARED_IDS[name])] == ["E2"]


def test_a_rule_from_its_file_knows_its_rows(tmp_path: Path) -> None:
    preds, target = drawn()
    DecisionRule(SKIN).fit(preds.log(), target).save(tmp_path / "rule.pt")
    loaded = DecisionRule.load(tmp_path / "rule.pt")
    for rule in (loaded, copy.deepcopy(loaded)):
        [caution] = warned(rule.warn_of_fitted, preds.log())
        assert caution.sentence.startswith("100 % of the 900 rows are also in the fit")


PLACES: dict[str, Sequence[object]] = {
    "site": ["abcdefgh"[n % 8] for n in range(900)],
    "sex": ["f", "m"] * 450,
    "age": [n % 60 for n in range(900)],
}
FILES: dict[str, tuple[dict[str, Sequence[object]], dict[str, Any]]] = {
    "patients as clusters": ({"patient": PATIENTS.tolist()}, {"cluster": "patient"}),
    "no intervals": ({"patient": PATIENTS.tolist()}, {"intervals": False}),
    "one row for each id": (
        {"id": range(900), "file": [f"{n}.png" for n in range(900)]},
        {},
    ),
    "thirty regions": ({"region": [f"region {n % 30}" for n in range(900)]}, {}),
    "sites, sex and ages": (PLACES, {}),
}
CLEAN: dict[str, Callable[[], Sequence[EvaluationWarning]]] = {
    "calibrated": lambda: scored(drawn()),
    "calibrated, many rows": lambda: scored(drawn(50_000, 3)),
    "calibrated, two classes": lambda: scored(
        drawn(classes=2), concern=ConcernSpec(2, weights=[[0, 1], [9, 0]])
    ),
    "calibrated, ten classes": lambda: scored(
        drawn(3000, classes=10), concern=ConcernSpec(10, releases=[[0, 1]])
    ),
    "a forest with ties": lambda: scored(votes(2000, 0)),
    "a forest of five trees": lambda: scored(votes(2000, 1, 5)),
    "30 rows": lambda: scored(drawn(30), concern=None),
    "every metric": lambda: scored(drawn(), metrics=None),
    "no concern, overconfident": lambda: scored(drawn(times=3.0), concern=None),
    "equal costs, overconfident": lambda: scored(drawn(times=3.0), concern=ConcernSpec(3)),
    "a rare class that is not dangerous to miss": lambda: scored(
        (rare(10)[0].flip(1), 2 - rare(10)[1]), metrics=["accuracy"]
    ),
    "several models": lambda: scored(({"A": drawn()[0], "B": drawn()[0]}, drawn()[1])),
    "soft labels": lambda: scored(
        (drawn()[0], drawn(seed=1)[0]), concern=None, metrics=["soft_f1_micro"]
    ),
    "decisions": lambda: scored(
        (drawn()[0].argmax(1), drawn()[1]), metrics=["dangerous_rate"]
    ),
    "59 patients with malignant cases": lambda: scored(
        rare(177), clusters=by_three(rare(177))
    ),
    "a fit to 59 patients with malignant cases": lambda: fitted_to_patients(177),
    "small numbers": lambda: cautions.shared(
        cautions.units_among({"risk": ([f"{n}e-7" for n in range(300)], 900)})
    ),
    "groups": lambda: scored(
        drawn(), groups={"site": torch.arange(900) % 4, "month": torch.arange(900) % 12}
    ),
    "other rows than those of the fit": lambda: shared(0.0),
    "other rows than those of a large fit": lambda: shared(0.0, 20_000),
    "a rule for a forest with ties": lambda: shared(0.0, fitted=votes(1000, 3)),
}


@pytest.mark.parametrize("kind", CLEAN)
def test_a_clean_evaluation_has_no_warning(kind: str) -> None:
    assert not CLEAN[kind]()


@pytest.mark.parametrize("kind", FILES)
def test_a_clean_file_has_no_warning(kind: str, tmp_path: Path) -> None:
    columns, options = FILES[kind]
    assert not from_file(tmp_path, columns, **options)


def test_a_result_prints_its_warnings_which_can_be_muted() -> None:
    probs, target = rare(10)
    patients = {"patient": torch.arange(len(target)) // 200}
    result = evaluate(probs, target, concern=SKIN, metrics=METRICS, groups=patients)
    first, caution = result.cautions
    assert (first.code, caution.code) == ("E2", "E4")
    few = "few samples of classes that are dangerous to miss, malignant (10): it takes 59 without a miss"
    assert f"warning: E4: {few}" in str(result)
    plain = result.to_dict()["warnings"][-1]
    page = "docs/how-to/misleading-evaluations.md#e4"
    assert (plain["code"], plain["page"]) == ("E4", page)
    muted = result.muted("E4")
    assert "E4" not in str(muted)
    assert [*muted.cautions] == [first]
    assert str(pickle.loads(pickle.dumps(caution))) == str(caution)


def test_a_warning_of_a_fit_is_muted_by_its_code() -> None:
    told = EvaluationWarning("E4", "few")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "E4")
        warnings.warn(told, stacklevel=1)
        with pytest.raises(EvaluationWarning, match="E1: many"):
            warnings.warn(EvaluationWarning("E1", "many"), stacklevel=1)


def test_parts_that_are_merged_and_a_confusion_matrix_have_the_warnings_of_the_whole() -> (
    None
):
    probs, target = rare(10)
    halves = [Evaluation(SKIN.classes, concern=SKIN, metrics=METRICS) for _ in range(2)]
    for half, rows in zip(halves, (slice(0, 700), slice(700, None)), strict=True):
        half.update(probs[rows], target[rows])
    halves[0].merge(halves[1])
    whole = evaluate(probs, target, concern=SKIN, metrics=METRICS)
    assert halves[0].result().warnings() == whole.warnings()
    counts = whole.first.confusion
    assert counts is not None
    counted = evaluate_confusion(counts, [*SKIN.classes], concern=SKIN)
    assert counted.warnings() == whole.warnings()


@pytest.mark.parametrize("copies", [2, 4])
@pytest.mark.parametrize("count", [50, 1000, 30_000])
def test_copies_of_rows_are_reported(copies: int, count: int) -> None:
    number = torch.arange(count).repeat(copies)
    rows = [each[number] for each in drawn(count)]
    [caution] = scored(rows, metrics=["accuracy"], concern=None)
    assert caution.code == "E2"
    assert "about 100 % of the rows" in caution.sentence
    assert not scored(rows, metrics=["accuracy"], concern=None, clusters=number)


def rounded(probs: Tensor) -> Tensor:
    """Return shares of few votes, the first of which sums up the rounding."""
    few = (10 * probs).round().clamp(min=1)
    few = (few / few.sum(1, keepdim=True)).round(decimals=2)
    few[:, 0] = 1 - few[:, 1:].sum(1)
    return few


EQUAL: dict[str, Callable[[Tensor], Tensor]] = {
    "votes": rounded,
    "certain": lambda probs: torch.eye(3).double()[probs.argmax(1)],
    "a tree": lambda probs: probs[torch.arange(3000) % 20],
    "decisions": lambda probs: probs.argmax(1),
}
"""Predictions many of which are equal, though no row is the copy of another."""


@pytest.mark.parametrize("kind", EQUAL)
def test_rows_that_are_equal_for_other_reasons_are_not(kind: str) -> None:
    target = torch.randint(3, (3000,), generator=torch.Generator().manual_seed(1))
    preds = EQUAL[kind](drawn(3000)[0])
    assert not evaluate(preds, target, metrics=["accuracy"], class_names=3).cautions


def test_copies_are_counted_over_batches_and_parts() -> None:
    parts = [Evaluation(3, metrics=["accuracy"]) for _ in range(2)]
    for part in parts:
        part.update(*drawn(500))
    assert not parts[0].result().cautions
    parts[0].merge(parts[1])
    assert [caution.code for caution in parts[0].result().cautions] == ["E2"]


@pytest.mark.parametrize(
    ("copies", "options", "is_said"),
    [(1, ["--frequency", "n"], False), (1, [], False), (2, [], True)],
)
def test_frequencies_are_no_copies_and_files_are_searched(
    copies: int,
    options: list[str],
    is_said: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    probs, target = drawn(200)
    assert not evaluate(probs, target, metrics=["accuracy"], frequencies=[2] * 200).cautions
    rows = pd.DataFrame(probs.numpy(), columns=["prob_0", "prob_1", "prob_2"])
    rows = rows.assign(target=target.numpy(), n=2)
    pd.concat([rows] * copies).to_csv(tmp_path / "p.csv", index=False)
    assert run("score", tmp_path / "p.csv", "--metrics", "accuracy", *options) == 0
    copied = "have the scores and the label of another row"
    assert (copied in capsys.readouterr().err) == is_said
