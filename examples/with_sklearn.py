"""scikit-learn: search for the settings of a pipeline by what its errors cost, and show the errors that remain."""

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

# Confusing 1 with 7, or 3, 5 and 8 with each other, is an everyday mistake. Any other error is dangerous.
CONCERN = ConcernSpec(classes=10, releases=[[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]], factor=0.1)


def main() -> None:
    """Compare three strengths of regularization by cross-validation, and draw the confusion matrix of the best."""
    pixels, digits = load_digits(return_X_y=True)
    train, test, train_labels, test_labels = train_test_split(pixels, digits, stratify=digits, random_state=0)
    scoring = {name: concern_scorer(name, CONCERN) for name in ("mpcs", "dangerous_rate", "accuracy")}
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)),
        {"logisticregression__C": [0.001, 0.03, 1.0]},
        scoring=scoring,
        refit="mpcs",
        cv=3,
    ).fit(train, train_labels)
    print("     C     MPCS  dangerous  accuracy    (scikit-learn negates what is better when lower)")
    for row, settings in enumerate(search.cv_results_["params"]):
        values = [search.cv_results_[f"mean_test_{name}"][row] for name in scoring]
        print(f"{settings['logisticregression__C']:6g}  {values[0]:7.4f}  {values[1]:9.4f}  {values[2]:8.4f}")
    target, decisions = (class_indices(values, CONCERN.classes) for values in (test_labels, search.predict(test)))
    counts = confusion_matrix(decisions, target, num_classes=10)
    draw(counts, CONCERN.released(), CONCERN.classes, "Test samples").savefig("confusion.png")
    print(f"best: {search.best_params_}; confusion matrix of the test samples in {Path('confusion.png').absolute()}")


if __name__ == "__main__":
    main()
