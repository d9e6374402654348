"""Write predictions for images of tissue of simulated patients, some of whom have a tumour.

Patients have 1 to 40 images: more if they are hard to decide, and more if they have a tumour. The files are those of
``docs/tutorials/from-costs-to-deployment.md``, from the choice of costs to the monitor of a deployment.
"""

import csv
from pathlib import Path

import numpy as np

CLASSES = ("benign", "cyst", "inflamed", "malignant")
FREQUENCIES = (0.45, 0.2, 0.15, 0.2)
LARGEST = 40
# The patients of each file, and how many of them have a tumour: each file is used for one thing alone.
FILES = {
    "pilot.csv": (500, 0.3),
    "validation.csv": (2000, 0.3),
    "test.csv": (2000, 0.3),
    "new.csv": (4000, 0.1),
}
SKILL = 3.0


def main() -> None:
    """Write a file of each kind; in that of new patients, one image of each has a label, drawn at random."""
    random = np.random.default_rng(0)
    for name, (patients, share) in FILES.items():
        patient, labels, probs = draw(patients, share, random)
        sizes = np.bincount(patient)
        is_labelled = np.full(len(labels), True)
        header = ["patient", "site", *CLASSES, "target"]
        if name == "new.csv":
            first = sizes.cumsum() - sizes
            is_labelled = (
                np.arange(len(labels)) == (first + random.integers(sizes))[patient]
            )
            header += ["chance"]
        with Path(name).open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(header)
            for own, label, row, known in zip(
                patient, labels, probs.round(6), is_labelled, strict=True
            ):
                cells = [
                    f"{name[0]}{own}",
                    "north" if own % 3 else "south",
                    *row,
                    CLASSES[label] if known else "",
                ]
                table.writerow([*cells, round(1 / sizes[own], 6)][: len(header)])
        print(f"wrote {name}")
    # What the page of `mpcs explore` downloads for "missing a tumour is about 10 times as bad as a needless biopsy".
    Path("biopsies.yaml").write_text(CONCERN)
    print("wrote biopsies.yaml")


def draw(
    patients: int, share: float, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw the number of the patient (N,), the label (N,) and the probabilities (N, 4) of images."""
    has_tumour = random.random(patients) < share
    hardness = random.normal(size=patients)
    sizes = np.exp(
        1.4 + 0.5 * hardness + 0.6 * has_tumour + 0.6 * random.normal(size=patients)
    )
    patient = np.repeat(np.arange(patients), sizes.round().clip(1, LARGEST).astype(int))
    harmless = np.array(FREQUENCIES[:3]) / sum(FREQUENCIES[:3])
    labels = random.choice(3, size=len(patient), p=harmless)
    labels[has_tumour[patient] & (random.random(len(patient)) < 0.5)] = 3
    skill = SKILL - 0.5 * hardness[patient]
    evidence = skill[:, None] * np.eye(4)[labels] + random.normal(size=(len(patient), 4))
    weights = np.exp(KAPPA * evidence) * FREQUENCIES
    return patient, labels, weights / weights.sum(axis=1, keepdims=True)


KAPPA = 2.5

CONCERN = """\
classes: [benign, cyst, inflamed, malignant]
weights:             # rows are true classes, columns decisions
  - [0, 1, 1, 1]
  - [1, 0, 1, 1]
  - [1, 1, 0, 1]     # the last: a needless biopsy
  - [10, 10, 10, 0]  # a missed tumour
dangerous: 10        # errors that cost at least this
refer: 0.5
"""


if __name__ == "__main__":
    main()
