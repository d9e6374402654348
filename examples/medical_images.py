"""Write predictions for images of simulated patients, of which 5 % are malignant, for ``mpcs decide`` and ``score``.

Each patient has five images, and the images of a patient look alike. Run it in an empty folder, then the five commands
of ``docs/how-to/decide-with-a-guarantee.md``.
"""

import csv
from pathlib import Path

import numpy as np

CLASSES = ("benign", "suspicious", "malignant")
CONCERN = """classes: [benign, suspicious, malignant]
weights:
  - [0, 1, 3]  # a benign image
  - [1, 0, 2]
  - [8, 4, 0]  # a malignant image that is taken for a benign one costs 8
dangerous: [[malignant, benign]]
refer: 2
answers: {suspicious or malignant: 0.8}  # the patient comes back
"""
IMAGES = 5


def main() -> None:
    """Draw overconfident probabilities of each image around its class, with an effect of the patient."""
    random = np.random.default_rng(0)
    for name, patients in (("validation", 2500), ("new", 1500)):
        classes = random.choice(3, size=patients, p=(0.75, 0.2, 0.05))
        effects = 0.8 * random.normal(size=(patients, 3))
        patient = np.repeat(np.arange(patients), IMAGES)
        labels = classes[patient]
        logits = 1.6 * (
            2.5 * np.eye(3)[labels]
            + effects[patient]
            + random.normal(size=(len(labels), 3))
        )
        probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        with Path(f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["patient", "site", "target", *CLASSES])
            for number, label, row in zip(patient, labels, probs.round(6), strict=True):
                rows.writerow(
                    [
                        f"{name}-{number}",
                        ("north", "south")[number % 2],
                        CLASSES[label],
                        *row,
                    ]
                )
        print(f"wrote {name}.csv")
    Path("concern.yaml").write_text(CONCERN)
    print("wrote concern.yaml")


if __name__ == "__main__":
    main()
