"""``mpcs concern suggest``: a file that loads."""

from pathlib import Path

import pytest

from mpcs_torch.concern import load_concern
from tests.cli.shell import run


def suggest(given: str | Path, source: str, out: Path, *options: str | int) -> int:
    return run(
        "concern", "suggest", given, "--from", source, "--out", out, *map(str, options)
    )


def test_an_order_takes_costs_for_both_directions_and_a_threshold(tmp_path: Path) -> None:
    out = tmp_path / "out.yaml"
    assert (
        suggest(
            "healthy,mild,severe",
            "order",
            out,
            "--under",
            5,
            "--over",
            2,
            "--dangerous",
            0.5,
        )
        == 0
    )
    spec = load_concern(out)
    assert spec.costs().tolist() == [[0, 0.2, 0.4], [0.5, 0, 0.2], [1, 0.5, 0]]
    assert spec.dangerous_pairs().tolist() == [
        [False] * 3,
        [True, False, False],
        [True, True, False],
    ]


def test_trees_costs_and_orders_give_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tree.yaml").write_text("animal: [cat, dog]\nvehicle: [car]\n")
    (tmp_path / "costs.csv").write_text("well,ill\n0,2\n8,0\n")
    for source, given in (
        ("tree", tmp_path / "tree.yaml"),
        ("costs", tmp_path / "costs.csv"),
        ("order", "low, high"),
    ):
        assert suggest(given, source, tmp_path / f"{source}-out.yaml") == 0
    assert load_concern(tmp_path / "tree-out.yaml").releases == ((0, 1), (1, 0))
    assert load_concern(tmp_path / "costs-out.yaml").classes == ("well", "ill")
    assert load_concern(tmp_path / "order-out.yaml").classes == ("low", "high")


@pytest.mark.parametrize(
    "text",
    [
        "well,ill\n0,2\n8,0\n",
        "well;ill\r\n0,0;2\r\n8,0;0\r\n",
        "\ufeffwell\till\n0\t2\n8\t0\n",
        "[[0, 2]]",
        "0,1\n0,2\n8,0\n",
    ],
)
def test_costs_may_have_any_delimiter(tmp_path: Path, text: str) -> None:
    (tmp_path / "costs.csv").write_text(text)
    status = suggest(tmp_path / "costs.csv", "costs", tmp_path / "out.yaml")
    assert status == (2 if text.startswith("[") else 0)
    if not status:
        spec = load_concern(tmp_path / "out.yaml")
        assert spec.classes == (("0", "1") if text.startswith("0") else ("well", "ill"))
        assert spec.costs().tolist() == [[0, 0.25], [1, 0]]
