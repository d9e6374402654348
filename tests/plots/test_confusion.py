"""The marks of the confusion figure."""

import torch
from matplotlib.figure import Figure

from mpcs_torch.plots import confusion_matrix
from tests.refused import Refused

COUNTS = torch.tensor([[5, 1, 0], [2, 6, 3], [4, 0, 7]])
RELEASED = torch.tensor([[False, True, False], [False, False, False], [True, False, False]])
NAMES = ["red", "yellow", "green"]


def places(figure: Figure, collection: int) -> set[tuple[int, int]]:
    """Return the row and the column of each mark."""
    boxes = [
        path.get_extents() for path in figure.axes[0].collections[collection].get_paths()
    ]
    return {(round((box.y0 + box.y1) / 2), round((box.x0 + box.x1) / 2)) for box in boxes}


def test_rows_are_true_classes_and_columns_predicted_ones() -> None:
    axes = confusion_matrix(COUNTS, RELEASED, NAMES, "title").axes[0]
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("true", "predicted")
    assert [label.get_text() for label in axes.get_yticklabels()] == NAMES
    numbers = {
        (round(text.get_position()[1]), round(text.get_position()[0])): text.get_text()
        for text in axes.texts
    }
    assert all(
        numbers[row, column] == str(int(COUNTS[row, column]))
        for row in range(3)
        for column in range(3)
    )
    assert axes.yaxis_inverted()


def test_released_pairs_have_frames_and_dangerous_errors_marks() -> None:
    figure = confusion_matrix(COUNTS, RELEASED, NAMES, "title")
    assert places(figure, 1) == {(0, 1), (2, 0)}
    assert places(figure, 2) == {(1, 0), (1, 2)}
    bold = {text.get_text() for text in figure.axes[0].texts if text.get_weight() == "bold"}
    assert bold == {"2", "3"}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "dangerous error (bold)",
        "released pair (tolerable)",
    ]


def test_without_a_concern_no_error_is_marked() -> None:
    figure = confusion_matrix(COUNTS, None, NAMES, "title")
    assert not figure.legends
    assert not any(text.get_weight() == "bold" for text in figure.axes[0].texts)
    assert not places(figure, 1) | places(figure, 2)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with Refused("row_and_column_each", "confusion and released", number=2):
        confusion_matrix(COUNTS, None, NAMES[:2], "title")


def test_more_dangerous_coarse_answers_than_wrong_classes_are_drawn() -> None:
    counts = torch.tensor([[9, 0, 50], [1, 9, 0]])
    released = torch.tensor([[True, False, False], [False, True, True]])
    columns = ["red", "green", "green or off"]
    figure = confusion_matrix(counts, released, columns[:2], "", columns=columns)
    assert places(figure, 2) == {(0, 2), (1, 0)}
