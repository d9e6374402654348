"""``mpcs concern suggest``: a file that loads, and a t-SNE plot beside it."""

from pathlib import Path

import pytest

from mpcs_torch.concern import load_concern
from tests.cli.test_cli import run


def test_a_tsne_of_iris_is_drawn_and_releases_what_overlaps(tmp_path: Path) -> None:
    out = tmp_path / "concern.yaml"
    assert run("concern", "suggest", "iris", "--from", "tsne", "--out", out) == 0
    spec = load_concern(out)
    assert spec.class_names == ("setosa", "versicolor", "virginica")
    assert spec.releases == ((1, 2), (2, 1))
    assert (tmp_path / "concern.png").stat().st_size > 1000


def test_trees_costs_and_orders_give_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tree.yaml").write_text("animal: [cat, dog]\nvehicle: [car]\n")
    (tmp_path / "costs.csv").write_text("well,ill\n0,2\n8,0\n")
    for source, given in (("tree", tmp_path / "tree.yaml"), ("costs", tmp_path / "costs.csv"), ("order", "low, high")):
        assert run("concern", "suggest", given, "--from", source, "--out", tmp_path / f"{source}-out.yaml") == 0
    assert load_concern(tmp_path / "tree-out.yaml").releases == ((0, 1), (1, 0))
    assert load_concern(tmp_path / "costs-out.yaml").class_names == ("well", "ill")
    assert load_concern(tmp_path / "order-out.yaml").class_names == ("low", "high")
    assert run("concern", "suggest", "a,b", "--from", "order", "--out", tmp_path / "tree-out.yaml") == 2
    assert "exists: choose another file" in capsys.readouterr().err


def test_wrong_input_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "costs.csv").write_text("well,ill\n0,two\n8,0\n")
    for source, given in (("tsne", "nothing"), ("costs", tmp_path / "costs.csv"), ("tree", tmp_path / "no.yaml")):
        assert run("concern", "suggest", given, "--from", source, "--out", tmp_path / "out.yaml") == 2
    assert not (tmp_path / "out.yaml").exists()
