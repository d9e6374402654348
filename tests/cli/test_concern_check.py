"""``mpcs concern check``: what a file says, or each of its errors with its place."""

from pathlib import Path

from tests.cli.shell import Shell


def test_a_file_is_shown_as_a_matrix(mpcs: Shell) -> None:
    printed = mpcs("concern check traffic-lights")
    assert printed.err == ""
    assert printed.out.splitlines()[:6] == [
        "3 classes; of 6 errors, 4 are dangerous, and 2 are released",
        "",
        "| true \\ predicted | red | yellow | green |",
        "|------------------|-----|--------|-------|",
        "| red              | -   | 0.5    | 1 !   |",
        "| yellow           | 0.5 | -      | 1 !   |",
    ]
    assert "a released error costs 0.5, a dangerous one 1." in printed.out
    assert "Referral: none, every sample is decided." in printed.out


def test_weights_and_prices_are_shown(mpcs: Shell) -> None:
    Path("costs.yaml").write_text(
        "classes: [a, b]\nweights: [[0, 10], [50, 0]]\ndangerous: 50\nrefer: [2, 3]\nconcession: 0.1\n"
    )
    printed = mpcs("concern check costs.yaml").out
    assert "| a                | -    | 10 |" in printed
    prices = "Referral: 2, 3, by true class.\nConcession: 0.1."
    assert f"weight of at least 50.\n{prices}" in printed


def test_what_may_be_an_oversight_is_a_warning(mpcs: Shell) -> None:
    Path("one-way.yaml").write_text("classes: [a, b, c]\nreleases: [[a, b]]\n")
    why = "a for b is tolerable, b for a is dangerous: one direction of a pair is released"
    assert mpcs("concern check one-way.yaml").err == f"mpcs: warning: {why}\n"


def test_of_many_classes_only_the_released_pairs_are_listed(mpcs: Shell) -> None:
    releases = [[i, (i + 1) % 100, (i - 1) % 100] for i in range(60)]
    Path("many.yaml").write_text(f"classes: 100\nreleases: {releases}\n")
    lines = mpcs("concern check many.yaml").out.splitlines()
    assert "| 1             | 2        | 0, 2         |" in lines
    assert any(line.startswith("| and 20 others") for line in lines)
