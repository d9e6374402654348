"""Write predictions of four models of skin lesions, for docs/tutorials/is-model-b-better.md.

The lesions are simulated: each of 3000 patients has one. Against model a, b is better, c is a little better, which
3000 lesions cannot show, and d, a smaller model, is about as good.
"""

import csv
from pathlib import Path

import numpy as np

CONCERN = "classes: [benign, malignant]\nreleases: [[benign, malignant]]\nfactor: 0.1\n"
LESIONS, MALIGNANT = 3000, 0.2
MODELS = {"a": (2.5, 0.0), "b": (3.2, 0.3), "c": (2.6, 0.3), "d": (2.5, 0.1)}
"""The skill of each model, and how much its errors differ from those of a."""


def main() -> None:
    """Draw logits around the classes, with noise that all models share, because some lesions are hard for all."""
    random = np.random.default_rng(0)
    is_malignant = random.random(LESIONS) < MALIGNANT
    hardness, own = random.normal(size=LESIONS), random.normal(size=(len(MODELS), LESIONS))
    for (name, (skill, difference)), noise in zip(MODELS.items(), own, strict=True):
        score = (
            skill * (is_malignant - 0.5)
            + np.sqrt(1 - difference) * hardness
            + np.sqrt(difference) * noise
        )
        malignant = 1 / (1 + np.exp(-skill * score - np.log(MALIGNANT / (1 - MALIGNANT))))
        with Path(f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["patient", "benign", "malignant", "target"])
            for patient, (probability, label) in enumerate(
                zip(malignant.round(12), is_malignant, strict=True)
            ):
                rows.writerow(
                    [
                        f"p{patient}",
                        1 - probability,
                        probability,
                        "malignant" if label else "benign",
                    ]
                )
        print(f"wrote {name}.csv")
    Path("concern.yaml").write_text(CONCERN)
    print("wrote concern.yaml")


if __name__ == "__main__":
    main()
