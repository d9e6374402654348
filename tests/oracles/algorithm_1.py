"""Algorithm 1 of arXiv:2209.06408v3, line by line, in plain Python: no torch, no code of ours."""

import math
from collections.abc import Sequence


def score_of_sample(
    probs: Sequence[float],
    label: int,
    k: int,
    t: int,
    concern: Sequence[Sequence[float]],
    correct_concern: str = "sum",
) -> float:
    """Compute lines 3 to 21 for one sample; ``concern[l][j]`` stands for the release factor of lines 9 to 15."""
    prediction = sorted(range(len(probs)), key=lambda j: (-probs[j], j))[:k]  # line 3
    confidence = [t - math.floor(probs[j] * t) - 1 for j in prediction]  # line 4
    confidence = [0 if level == -1 else level for level in confidence]  # line 5
    degree = [1.0] * k  # line 6
    if label in prediction:  # line 7
        i = prediction.index(label)
        confidence[i] = t - confidence[i] - 1  # line 8
        for j in range(k):  # lines 9 to 15
            if j != i:
                degree[j] = concern[label][prediction[j]]
        others = sum(degree) - degree[i]  # line 16
        degree[i] = others if correct_concern == "sum" else k - 1
        if k == 1:  # the deviation: line 16 gives 0 and line 20 would divide 0 by 0
            degree[i] = 1.0
    floored = [1e-7 if level == 0 else level for level in confidence]  # line 18
    punishment = [-math.log(level / (t - 1)) for level in floored]  # line 19
    share = [d / sum(degree) for d in degree]  # line 20
    return sum(p * s for p, s in zip(punishment, share, strict=True))  # line 21


def score(
    probs: Sequence[Sequence[float]],
    labels: Sequence[int],
    k: int,
    t: int,
    concern: Sequence[Sequence[float]],
    correct_concern: str = "sum",
) -> float:
    """Compute line 23: the mean over the samples."""
    scores = [
        score_of_sample(p, y, k, t, concern, correct_concern)
        for p, y in zip(probs, labels, strict=True)
    ]
    return sum(scores) / len(scores)
