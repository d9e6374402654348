"""Table I of the paper: cross entropy prefers classifier A, MPCS with a concession of 0.02 prefers B."""

import torch

from mpcs_torch.functional import cross_entropy, meta_pattern_concern_score

# Probabilities of the true class, the first of three, for 100 samples; the second class has the rest.
CONFIDENCES = {"A": torch.tensor([0.99] * 99 + [0.49]), "B": torch.tensor([0.98] * 100)}


def main() -> None:
    """Print both classifiers' cross entropy, and their MPCS with and without a concession."""
    target = torch.zeros(100, dtype=torch.int64)
    preds = {
        name: torch.stack([p, 1 - p, torch.zeros(100)], dim=1)
        for name, p in CONFIDENCES.items()
    }
    print(
        "classifier                                A          B      prefers (lower is better)"
    )

    def show(title: str, values: list[float]) -> None:
        print(
            f"{title:31} {values[0]:10.6f} {values[1]:10.6f}      {'A' if values[0] < values[1] else 'B'}"
        )

    show(
        "cross entropy",
        [
            cross_entropy(p, target, num_classes=3, from_logits=False).item()
            for p in preds.values()
        ],
    )
    for concession in (None, 0.02):  # without one, t is 200
        for k in (1, 2, 3):
            scores = [
                meta_pattern_concern_score(
                    p, target, num_classes=3, k=k, concession=concession, from_logits=False
                ).item()
                for p in preds.values()
            ]
            show(
                f"MPCS, {'t = 200' if concession is None else f'concession {concession}'}, k = {k}",
                scores,
            )


if __name__ == "__main__":
    main()
