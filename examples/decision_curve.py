"""Draw the net benefit of two simulated models of biopsies over thresholds, for docs/how-to/decision-curves.md.

The picture decision-curve.png goes to the folder given as argument, by default runs/decision-curve.
"""

import sys
from pathlib import Path

import torch

from mpcs_torch import ConcernRange, ConcernSpec
from mpcs_torch.evaluation import decision_curves


def main() -> None:
    """Print at which thresholds each model is better than acting on all and on none, and draw the curves."""
    folder = Path(*sys.argv[1:2] or ["runs/decision-curve"])
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(0)
    target = (torch.rand(1500, generator=generator) < 0.15).long()
    models = {}
    for name, skill in (("questionnaire", 0.7), ("image", 2.0)):
        evidence = skill * target + torch.randn(1500, generator=generator)
        # The probability by Bayes, so both models are calibrated.
        malignant = torch.sigmoid(skill * evidence - skill**2 / 2 - 1.73)
        models[name] = torch.stack([1 - malignant, malignant], dim=1)

    # A missed tumour costs as much as 4 to 19 needless biopsies.
    low = ConcernSpec(["benign", "malignant"], weights=[[0, 1], [4, 0]])
    high = ConcernSpec(["benign", "malignant"], weights=[[0, 1], [19, 0]])
    groups = {"sex": ["female" if row % 2 else "male" for row in range(1500)]}
    curves = decision_curves(
        models, target, of="malignant", concern=ConcernRange([low], [high]), groups=groups
    )
    print(*curves.sentences(), sep="\n")
    curves.plot().savefig(folder / "decision-curve.png", dpi=100)


if __name__ == "__main__":
    main()
