"""``mpcs concern check``: what a file says, or each of its errors with its place."""

from pathlib import Path

import pytest

from tests.cli.shell import run


def test_a_file_is_shown_as_a_matrix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("concern", "check", "traffic-lights") == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert told.out.splitlines()[:6] == [
        "3 classes; of 6 errors, 4 are dangerous, and 2 are released",
        "",
        "| true \\ predicted | red | yellow | green |",
        "|------------------|-----|--------|-------|",
        "| red              | -   | 0.5    | 1 !   |",
        "| yellow           | 0.5 | -      | 1 !   |",
    ]
    assert "a released error costs 0.5, a dangerous one 1." in told.out
    assert "Referral: none, every sample is decided." in told.out
    path = tmp_path / "costs.yaml"
    path.write_text(
        "classes: [a, b]\nweights: [[0, 10], [50, 0]]\ndangerous: 50\nrefer: [2, 3]\nconcession: 0.1\n"
    )
    assert run("concern", "check", path) == 0
    told = capsys.readouterr()
    assert "| a                | -    | 10 |" in told.out
    assert (
        "weight of at least 50.\nReferral: 2, 3, by true class.\nConcession: 0.1."
        in told.out
    )


def test_what_may_be_an_oversight_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "one-way.yaml"
    path.write_text("classes: [a, b, c]\nreleases: [[a, b]]\n")
    assert run("concern", "check", path) == 0
    expected = (
        "a for b is tolerable, b for a is dangerous: one direction of a pair is released"
    )
    assert capsys.readouterr().err == f"mpcs: warning: {expected}\n"


def test_of_many_classes_only_the_released_pairs_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "many.yaml"
    path.write_text(
        f"classes: 100\nreleases: {[[i, (i + 1) % 100, (i - 1) % 100] for i in range(60)]}\n"
    )
    assert run("concern", "check", path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "| 1             | 2        | 0, 2         |" in lines
    assert any(line.startswith("| and 20 others") for line in lines)
