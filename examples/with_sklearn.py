"""scikit-learn: search for the settings of a pipeline by what its errors cost."""

from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mpcs_torch import ConcernSpec
from mpcs_torch.functional import confusion_matrix
from mpcs_torch.integrations.sklearn import class_indices, concern_scorer
from mpcs_torch.plots import confusion_matrix as draw

# Confusing 1 with 7, or 3, 5 and 8 with each other, is an everyday mistake.
# Any other error is dangerous.
RELEASES = [[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]]
CONCERN = ConcernSpec(classes=10, releases=RELEASES, factor=0.1)


def main() -> None:
    """Compare three strengths of regularization, and draw a confusion matrix."""
    pixels, digits = load_digits(return_X_y=True)
    train, test, train_labels, test_labels = train_test_split(
        pixels,
        digits,
        stratify=digits,
        random_state=0,
    )
    names = ("mpcs", "dangerous_rate", "accuracy")
    scoring = {name: concern_scorer(name, CONCERN) for name in names}
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)),
        {"logisticregression__C": [0.001, 0.03, 1.0]},
        scoring=scoring,
        refit="mpcs",
        cv=3,
    ).fit(train, train_labels)
    print("     C     MPCS  dangerous  accuracy    (negated where lower is better)")
    for row, settings in enumerate(search.cv_results_["params"]):
        values = [search.cv_results_[f"mean_test_{name}"][row] for name in scoring]
        numbers = f"{values[0]:7.4f}  {values[1]:9.4f}  {values[2]:8.4f}"
        print(f"{settings['logisticregression__C']:6g}  {numbers}")
    target = class_indices(test_labels, CONCERN.classes)
    decisions = class_indices(search.predict(test), CONCERN.classes)
    counts = confusion_matrix(decisions, target, num_classes=10)
    figure = draw(counts, CONCERN.released(), CONCERN.classes, "Test samples")
    figure.savefig("confusion.png")
    print(f"best: {search.best_params_}")
    print(f"confusion matrix of the test samples: {Path('confusion.png').absolute()}")


if __name__ == "__main__":
    main()
