"""How many times one `torch.topk` does MPCS take? Run: python -m tests.benchmarks.mpcs_against_topk."""

import torch

from mpcs_torch.functional import meta_pattern_concern_score
from tests.benchmarks.rounds import quickest

LIMIT = 2.5


def ratio(rounds: int = 60) -> float:
    """The quickest of many rounds of each, taken in turns, on probabilities of shape (60000, 10) with k = 5."""
    generator = torch.Generator().manual_seed(0)
    probs = (3 * torch.randn(60000, 10, generator=generator)).softmax(dim=1)
    target = torch.randint(0, 10, (60000,), generator=generator)
    concern = torch.rand(10, 10, generator=generator) + 0.1
    calls = (
        lambda: torch.topk(probs, 5),
        lambda: meta_pattern_concern_score(probs, target, num_classes=10, concern=concern, from_logits=False),
    )
    topk, ours = quickest(calls, rounds)
    return ours / topk


if __name__ == "__main__":
    print(f"MPCS of (60000, 10), k = 5: {ratio():.2f} times one torch.topk (limit {LIMIT})")
