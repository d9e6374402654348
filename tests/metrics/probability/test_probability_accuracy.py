"""Counted probabilities lie in the bins that count them, and without a batch there are none."""

import pytest
import torch

from mpcs_torch.metrics import ProbabilityAccuracy


def test_bins_count_the_probabilities_between_their_edges_however_small() -> None:
    cells, generator = 20, torch.Generator().manual_seed(0)
    of_first = 2 ** (-40 * torch.rand(3000, generator=generator, dtype=torch.float64))
    probs, target = torch.stack([of_first, 1 - of_first], dim=1), torch.randint(2, (3000,), generator=generator)
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
        with pytest.raises(ValueError, match=r"ProbabilityAccuracy\.compute needs at least one batch"):
            part()
