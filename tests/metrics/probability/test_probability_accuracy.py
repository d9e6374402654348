"""Counted probabilities lie in the bins that count them, and without a batch there are none."""

import pytest
import torch

from mpcs_torch.metrics import ProbabilityAccuracy
from tests.refused import Refused


def test_bins_count_the_probabilities_between_their_edges_however_small() -> None:
    cells, generator = 20, torch.Generator().manual_seed(0)
    of_first = 2 ** (-40 * torch.rand(3000, generator=generator, dtype=torch.float64))
    probs, target = (
        torch.stack([of_first, 1 - of_first], dim=1),
        torch.randint(2, (3000,), generator=generator),
    )
    metric = ProbabilityAccuracy(2, from_logits=False, delta=None, n_bins=25, cells=cells)
    metric.update(probs, target)
    found = metric.bins()
    of_true = probs.gather(1, target.unsqueeze(1)).squeeze(1)
    of_others = probs.gather(1, 1 - target.unsqueeze(1)).squeeze(1)
    small = (found.high * cells < 1).sum()
    assert small > 5
    for values, counts in ((of_true, found.correct), (of_others, found.incorrect)):
        inside = (values >= found.low[:small, None]) & (values < found.high[:small, None])
        assert inside.sum(1).tolist() == counts[:small].tolist()
    steps = 16 * (found.high[:small] * cells).log2()  # sixteen cells for each power of two
    torch.testing.assert_close(steps, steps.round(), rtol=0, atol=1e-9)


def test_parts_of_the_value_are_refused_without_a_batch_as_the_value_is() -> None:
    metric = ProbabilityAccuracy(2)
    for part in (metric.reported, metric.bins):
        with Refused("not_updated", "ProbabilityAccuracy.compute"):
            part()


@pytest.mark.parametrize("cells", [None, 2000])
def test_bins_and_reported_means_are_of_all_processes(cells: int | None) -> None:
    probs, target = (
        torch.rand(7, 3, generator=torch.Generator().manual_seed(0)).softmax(1),
        torch.arange(7) % 3,
    )
    metric = ProbabilityAccuracy(
        3,
        from_logits=False,
        cells=cells,
        dist_sync_fn=lambda state, group=None: [state, state],
        distributed_available_fn=lambda: True,
    )
    metric.update(probs, target)
    assert metric.bins().correct.sum() == 14
    both = ProbabilityAccuracy(3, from_logits=False, cells=cells)
    both.update(probs.repeat(2, 1), target.repeat(2))
    assert metric.reported().decisiveness == both.reported().decisiveness
    assert metric.update_count == 1


def test_unchecked_nan_gives_a_value() -> None:
    metric = ProbabilityAccuracy(3, validate_args=False)
    metric.update(
        torch.tensor([[1.0, float("nan"), 0.0], [1.0, 0.0, 2.0]]), torch.tensor([0, 2])
    )
    assert metric.compute()["reported_decisiveness"].isnan()
