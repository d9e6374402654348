"""Intervals of soft labels are those of a bootstrap of rows, and hold the true value."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from mpcs_torch import functional
from mpcs_torch.metrics.by_name import BY_NAME
from mpcs_torch.scoring import Predictions, chunks, score
from mpcs_torch.scoring.own_intervals import own_intervals, without_interval
from mpcs_torch.scoring.poisson_draws import poisson_draws
from mpcs_torch.scoring.row_means import RowMeans
from mpcs_torch.scoring.scores import Scores
from tests.benchmarks.group_intervals import all_metrics, coverage, hard, soft

PROBS, TARGET = soft(150, torch.Generator().manual_seed(0))
METRICS = {
    "soft_precision_micro": (functional.soft_precision, {"average": "micro"}),
    "soft_recall_weighted": (functional.soft_recall, {"average": "weighted"}),
    "soft_f1_macro": (functional.soft_f1, {"average": "macro"}),
    "hard_f1_micro": (functional.hard_f1, {"average": "micro"}),
}


def measured(folder: Path, probs: Tensor, target: Tensor, resamples: int, development: bool = False) -> Scores:
    path = folder / "soft.npz"
    np.savez(path, preds=probs, target=target)
    means = RowMeans(resamples)
    learned = Predictions(path, from_logits=False) if development else None
    found = score(Predictions(path, from_logits=False), None, lambda _: None, development=learned, listeners=[means])
    return own_intervals(found, None, means, resamples)


def test_intervals_are_those_of_drawing_rows_with_numpy(tmp_path: Path) -> None:
    """Student's t with the deviation of the values of resamples, longer by their bias on its side."""
    found = measured(tmp_path, PROBS, TARGET, 2000)
    generator, drawn = np.random.default_rng(1), {name: list[float]() for name in METRICS}
    for _ in range(1500):
        rows = torch.from_numpy(generator.integers(150, size=150))
        for name, (metric, settings) in METRICS.items():
            drawn[name].append(metric(PROBS[rows], TARGET[rows], num_classes=4, **settings).item())
    for name, values in drawn.items():
        value, (low, high) = found.values[name], found.intervals[name]
        bias, half = np.mean(values) - value, 1.976 * np.std(values) * np.sqrt(150 / 149)
        expected = value - max(bias, 0) - half, value - min(bias, 0) + half
        assert (low, high) == pytest.approx(expected, abs=0.12 * half), name


def test_values_of_resamples_are_those_of_their_rows(tmp_path: Path) -> None:
    """An interval from two resamples, with the weights that the rows have in them."""
    found = measured(tmp_path, PROBS, TARGET, 2)
    weights = poisson_draws(torch.arange(150), 2)
    values = [functional.soft_kl_divergence(PROBS, TARGET, own, epsilon=1e-7).item() for own in weights]
    value, (low, high) = found.values["soft_kl_divergence"], found.intervals["soft_kl_divergence"]
    bias = np.mean(values) - value
    half = 1.976 * abs(values[0] - values[1]) / 2 * np.sqrt(150 / 149)
    assert (low, high) == pytest.approx((max(0, value - max(bias, 0) - half), value - min(bias, 0) + half), rel=1e-4)


def test_intervals_do_not_depend_on_how_the_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = measured(tmp_path, PROBS, TARGET, 50)
    monkeypatch.setattr(chunks, "VALUES", 28)
    for name, interval in measured(tmp_path, PROBS, TARGET, 50).intervals.items():
        assert interval == pytest.approx(whole.intervals[name], rel=1e-9), name


def test_every_number_of_soft_labels_has_an_interval(tmp_path: Path) -> None:
    found = measured(tmp_path, *soft(400, torch.Generator().manual_seed(1)), 50, development=True)
    assert {"hard_f1_micro_tuned", "hard_f1_macro_tuned"} < set(found.values)
    assert list(found.intervals) == list(found.values)


def test_a_label_that_resamples_often_lack_leaves_its_mean_without_interval(tmp_path: Path) -> None:
    target = TARGET.clone()
    target[1:, 3] = 0
    target[0, 3] = 1
    found = measured(tmp_path, PROBS, target, 50)
    reasons = without_interval(found)
    assert set(reasons) == {name for name in found.values if name.endswith("_macro")}
    assert set(reasons.values()) == {"not enough rows, errors or samples of a class to judge by, or none is known"}


def test_certain_predictions_promise_nothing(tmp_path: Path) -> None:
    assert not measured(tmp_path, TARGET.round(), TARGET.round(), 50).intervals
    assert not measured(tmp_path, PROBS[:1], TARGET[:1], 50).intervals


def test_draws_are_of_poisson_and_of_the_unit_alone() -> None:
    drawn = poisson_draws(torch.arange(20_000), 50)
    assert drawn.shape == (50, 20_000)
    for number, probability in enumerate([0.3679, 0.3679, 0.1839, 0.0613, 0.0153]):
        assert (drawn == number).double().mean().item() == pytest.approx(probability, abs=0.002)
    assert torch.corrcoef(drawn).fill_diagonal_(0).abs().max() < 0.04
    assert torch.corrcoef(drawn[:, :50].T).fill_diagonal_(0).abs().mean() < 0.15
    assert torch.equal(poisson_draws(torch.tensor([70, 3, 70]), 50), drawn[:, [70, 3, 70]])


@pytest.mark.parametrize(("draw", "rows"), [(hard, 50), (soft, 100)])
def test_nineteen_of_twenty_intervals_of_groups_hold_the_true_value(draw: object, rows: int) -> None:
    """Without robustness, whose values are skewed (85 % of 50 rows), and hard F of a label that is rarely given."""
    chosen = all_metrics(is_soft=draw is soft)
    found = coverage(hard if draw is hard else soft, rows, 200, chosen)
    left_out = {"robustness", "hard_f1_macro"}
    shares = {name: held / given for name, (held, given) in found.items() if name not in left_out}
    assert min(shares.values()) > 0.9, shares
    assert 0.93 < sum(shares.values()) / len(shares) < 0.98
    assert set(found) <= set(BY_NAME)
