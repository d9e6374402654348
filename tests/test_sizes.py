"""The measure of size: nodes count code, not its layout or its explanations."""

from tests.sizes import size

DENSE = "value = 1 if a else 2\n"
EXPLAINED = (
    '"""A module."""\n\n\ndef double(a):\n    """Double it."""\n    return 2 * a  # why\n'
)


def test_layout_docstrings_and_comments_add_no_nodes() -> None:
    spread = "value = (\n    1\n    if a\n    else 2\n)\n"
    assert size(spread).nodes == size(DENSE).nodes == 9
    bare = size("def double(a):\n    return 2 * a\n")
    explained = size(EXPLAINED)
    assert (explained.nodes, explained.lines) == (bare.nodes, bare.lines)


def test_definitions_comments_and_lines_of_code_are_counted() -> None:
    explained = size(EXPLAINED)
    assert (explained.definitions, explained.comments, explained.lines) == (1, 1, 2)
    both = explained + size(DENSE)
    assert (both.files, both.lines, both.density) == (2, 3, both.nodes / 3)
