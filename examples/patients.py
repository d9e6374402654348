"""Write predictions of three models for images of 120 simulated patients of two sites, for ``mpcs score``."""

import csv
from pathlib import Path

import numpy as np

CLASSES = ("red", "yellow", "green")
CONCERN = (
    "classes: [red, yellow, green]\nreleases: [[red, yellow], [yellow, red]]\nfactor: 0.5\n"
)
PATIENTS, IMAGES = 120, 10
# Name, skill, and how much of it is lost at the site "north".
MODELS = (("small", 2.2, 0.0), ("large", 3.4, 0.0), ("shifted", 3.4, 1.6))


def main() -> None:
    """Draw the logits of each image around its class, with an effect of the patient that all models share."""
    random = np.random.default_rng(0)
    patient = np.repeat(np.arange(PATIENTS), IMAGES)
    is_north = patient < PATIENTS / 3
    labels = random.integers(3, size=len(patient))
    effect = random.normal(size=(PATIENTS, 3))[patient]
    for name, skill, loss in MODELS:
        of_class = (skill - loss * is_north)[:, None] * np.eye(3)[labels]
        logits = random.normal(size=(len(patient), 3)) + 0.7 * effect + of_class
        probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        with Path(f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow([*CLASSES, "target", "site", "patient"])
            for own, label, north, number in zip(
                probs.round(6), labels, is_north, patient, strict=True
            ):
                rows.writerow(
                    [*own, CLASSES[label], "north" if north else "south", f"p{number}"]
                )
        print(f"wrote {name}.csv")
    Path("concern.yaml").write_text(CONCERN)
    print("wrote concern.yaml")


if __name__ == "__main__":
    main()
