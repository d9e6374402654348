"""Write predictions for simulated images of tissue, of which one in ten is malignant, for ``mpcs explore``."""

import csv
from pathlib import Path

import numpy as np

CLASSES = ("benign", "cyst", "inflamed", "malignant")
FREQUENCIES = (0.55, 0.2, 0.15, 0.1)
# Rows to choose costs by, to fit a rule to, and to measure it by: each file is used for one of these alone.
FILES = {"try.csv": 3000, "validation.csv": 5000, "test.csv": 5000}


def main() -> None:
    """Draw the logits of each image around its class; its probabilities are those of Bayes' rule."""
    random = np.random.default_rng(0)
    for name, rows in FILES.items():
        labels = random.choice(len(CLASSES), size=rows, p=FREQUENCIES)
        evidence = 1.6 * np.eye(len(CLASSES))[labels] + random.normal(size=(rows, len(CLASSES)))
        weights = np.exp(1.6 * evidence) * FREQUENCIES
        probs = weights / weights.sum(axis=1, keepdims=True)
        with Path(name).open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["id", *CLASSES, "target", "site"])
            for row, (own, label) in enumerate(zip(probs.round(6), labels, strict=True)):
                table.writerow([f"{name[0]}{row}", *own, CLASSES[label], "north" if row % 3 else "south"])
        print(f"wrote {name}")
    # What the page of `mpcs explore` downloads for "missing a tumour is about 10 times as bad as a needless biopsy".
    Path("biopsies.yaml").write_text(CONCERN)
    print("wrote biopsies.yaml")


CONCERN = """\
# malignant for any other class is about 10 times as bad as benign for malignant
classes: [benign, cyst, inflamed, malignant]
weights: # rows are true classes
  - [0, 1, 1, 1]
  - [1, 0, 1, 1]
  - [1, 1, 0, 1]
  - [10, 10, 10, 0]
dangerous: 10
"""


if __name__ == "__main__":
    main()
