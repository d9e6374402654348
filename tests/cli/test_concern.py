"""``mpcs concern suggest``: a file that loads, and a t-SNE plot beside it."""

import pickle
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mpcs_torch.concern import load_concern
from tests.cli.test_cli import one_line, run


def suggest(given: str | Path, source: str, out: Path, *options: str | int) -> int:
    return run("concern", "suggest", given, "--from", source, "--out", out, *map(str, options))


def blobs(size: int = 90, dimensions: int = 2) -> dict[str, np.ndarray[Any, Any]]:
    """Return two classes that overlap, and one far away."""
    labels = np.arange(size) % 3
    points = np.random.default_rng(0).normal(size=(size, dimensions))
    points[:, 0] += np.array([0, 1, 50])[labels]
    return {"points": points, "labels": labels}


def saved(path: Path, **changes: Any) -> Path:
    """Save blobs to an npz file, with some arrays replaced, or left out if None."""
    arrays = blobs()
    arrays = {"inputs": arrays["points"], "labels": arrays["labels"], **changes}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


def test_a_tsne_of_iris_is_drawn_and_releases_what_overlaps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "concern.yaml"
    assert run("concern", "suggest", "iris", "--from", "tsne", "--out", out) == 0
    spec = load_concern(out)
    assert spec.classes == ("setosa", "versicolor", "virginica")
    assert spec.releases == ((1, 2), (2, 1))
    assert (tmp_path / "concern.png").stat().st_size > 1000
    (row,) = (line for line in capsys.readouterr().out.splitlines() if "versicolor and virginica" in line)
    assert [cell.strip() for cell in row.split("|")[3:5]] == ["yes", "5 of 5"]
    assert f"# {row}" in out.read_text().splitlines()


def test_a_pair_that_only_some_seeds_release_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shares = iter([[[0.9, 0.1], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]] * 2)
    monkeypatch.setattr("mpcs_torch.cli.drafts.neighbour_shares", lambda *_: torch.tensor(next(shares)))
    features = saved(tmp_path / "two.npz", labels=np.arange(90) % 2)
    for name, least, drafted in (("low", 0.04, "yes"), ("high", 0.06, "no")):
        out = tmp_path / f"{name}.yaml"
        monkeypatch.setattr("mpcs_torch.concern.suggest.MIN_SHARE", least)
        assert suggest(features, "tsne", out, "--seeds", 2) == 0
        assert f"| 0 and 1 | 0.050               | {drafted:12} | 1 of 2 |" in capsys.readouterr().out
        assert load_concern(out).releases == (((0, 1), (1, 0)) if drafted == "yes" else ())


def test_a_tsne_takes_features_of_ones_own(tmp_path: Path) -> None:
    points, labels = blobs()["points"], np.array(["benign", "healthy", "malignant"])[blobs()["labels"]]
    rows = [f"{x:.9g},{y:.9g},{label}" for (x, y), label in zip(points.tolist(), labels.tolist(), strict=True)]
    (tmp_path / "features.csv").write_text("\n".join(["x,y,labels", *rows]) + "\n")
    for features in (saved(tmp_path / "features.npz", labels=labels), tmp_path / "features.csv"):
        out = tmp_path / f"{features.suffix[1:]}.yaml"
        assert suggest(features, "tsne", out, "--seeds", 1, "--pairs", 2) == 0
        spec = load_concern(out)
        assert (spec.classes, spec.releases) == (("benign", "healthy", "malignant"), ((0, 1), (1, 0)))


def test_a_tsne_takes_a_loader_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my_loaders.py").write_text(
        "import torch\n"
        "from mpcs_torch.trainer.data import DataSplits, Split\n\n"
        "def blobs(root):\n"
        "    labels = torch.arange(60) % 2\n"
        "    split = Split(torch.randn(60, 1, 3, generator=torch.Generator().manual_seed(0)), labels)\n"
        "    return DataSplits(split, split, ('left', 'right'))\n\n"
        "def nothing(root): pass\n\n"
        "def sized(root, *, size: int): pass\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert suggest("my_loaders:blobs", "tsne", tmp_path / "out.yaml", "--seeds", 1) == 0
    assert load_concern(tmp_path / "out.yaml").classes == ("left", "right")
    capsys.readouterr()
    for name, message in (
        ("nothing", "data.path: my_loaders:nothing must return DataSplits, but returns NoneType"),
        ("sized", "my_loaders:sized: size: Field required"),
        ("missing", "path must read package.module:attribute"),
    ):
        assert suggest(f"my_loaders:{name}", "tsne", tmp_path / "other.yaml") == 2
        assert message in one_line(capsys.readouterr().err)


NAN = np.full((90, 2), np.nan)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": None}, "must have columns of numbers beside labels, and no empty label"),
        ({"labels": None}, "has no column 'labels'; it has inputs"),
        ({"inputs": NAN}, "inputs must be finite in float32, but sample 0 has nan"),
        ({"labels": np.zeros(89, int)}, "has no column 'labels'; it has inputs"),
        ({"inputs": np.array([["a", "b"]] * 90)}, "cannot be read: can't convert"),
        ({"labels": np.array(["a", "b", None] * 30)}, "has no column 'labels'; it has inputs"),
        ({"labels": np.array(["a", "b", ""] * 30)}, "and no empty label"),
        ({"labels": np.zeros(90, int)}, "classes: must name at least 2 classes, but got 1"),
        ({"inputs": np.zeros((10, 2)), "labels": np.arange(10)}, "must be less than n_samples"),
    ],
)
def test_a_broken_file_is_one_message_with_its_name_and_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], message: str
) -> None:
    path = saved(tmp_path / "broken.npz", **changes)
    assert suggest(path, "tsne", tmp_path / "out.yaml") == 2
    error = one_line(capsys.readouterr().err)
    assert "broken.npz: " in error
    assert message in error
    assert not (tmp_path / "out.yaml").exists()


def test_a_pickle_is_not_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pickle.npz").write_bytes(pickle.dumps({"inputs": [1]}))
    assert suggest(tmp_path / "pickle.npz", "tsne", tmp_path / "out.yaml") == 2
    assert "pickle.npz: cannot be read: " in one_line(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no array", "must contain an array (N,) or (N, C) of numbers, but has {}"),
        (b"\x93NUMPY\x01\x00\x01\x00(", "a.npz: cannot be read: "),
        (b"\x93NUMPY\x01\x00\x28\x23" + b"-" * 9000, "a.npz: cannot be read: "),
    ],
)
def test_a_member_that_is_no_array_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, message: str
) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("inputs.npy", content)
        archive.writestr("labels.npy", content)
    assert suggest(tmp_path / "a.npz", "tsne", tmp_path / "out.yaml") == 2
    assert message in one_line(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("tsne", ("--pairs", 3), "pairs must be even and at least 2"),
        ("tsne", ("--pairs", 8), "pairs must be at most 6"),
        ("tree", ("--seeds", 2), "only for --from tsne, but got tree"),
        ("order", ("--pairs", 2), "only for --from tsne, but got order"),
        ("order", ("--dangerous", 5), "dangerous must be above 0 and at most 1, the largest weight, but got 5.0."),
        ("order", ("--under", -1), "under must be a finite number >= 0, but got -1.0."),
    ],
)
def test_options_that_cannot_be_met_are_refused_before_the_slow_part(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    source: str,
    options: tuple[str | int, ...],
    message: str,
) -> None:
    monkeypatch.setattr("sklearn.manifold.TSNE", None)  # nothing is projected
    given = "a,b" if source == "order" else saved(tmp_path / "a.npz")
    assert suggest(given, source, tmp_path / "out.yaml", *options) == 2
    assert message in one_line(capsys.readouterr().err)


def test_an_order_takes_costs_for_both_directions_and_a_threshold(tmp_path: Path) -> None:
    out = tmp_path / "out.yaml"
    assert suggest("healthy,mild,severe", "order", out, "--under", 5, "--over", 2, "--dangerous", 0.5) == 0
    spec = load_concern(out)
    assert spec.costs().tolist() == [[0, 0.2, 0.4], [0.5, 0, 0.2], [1, 0.5, 0]]
    assert spec.dangerous_pairs().tolist() == [[False] * 3, [True, False, False], [True, True, False]]


def test_trees_costs_and_orders_give_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tree.yaml").write_text("animal: [cat, dog]\nvehicle: [car]\n")
    (tmp_path / "costs.csv").write_text("well,ill\n0,2\n8,0\n")
    for source, given in (("tree", tmp_path / "tree.yaml"), ("costs", tmp_path / "costs.csv"), ("order", "low, high")):
        assert run("concern", "suggest", given, "--from", source, "--out", tmp_path / f"{source}-out.yaml") == 0
    assert load_concern(tmp_path / "tree-out.yaml").releases == ((0, 1), (1, 0))
    assert load_concern(tmp_path / "costs-out.yaml").classes == ("well", "ill")
    assert load_concern(tmp_path / "order-out.yaml").classes == ("low", "high")
    assert run("concern", "suggest", "a,b", "--from", "order", "--out", tmp_path / "tree-out.yaml") == 2
    assert "exists: choose another file" in one_line(capsys.readouterr().err)


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
    status = run("concern", "suggest", tmp_path / "costs.csv", "--from", "costs", "--out", tmp_path / "out.yaml")
    assert status == (2 if text.startswith("[") else 0)
    if not status:
        spec = load_concern(tmp_path / "out.yaml")
        assert spec.classes == (("0", "1") if text.startswith("0") else ("well", "ill"))
        assert spec.costs().tolist() == [[0, 0.25], [1, 0]]


def test_wrong_input_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "costs.csv").write_text("well,ill\n0,two\n8,0\n")
    for source, given in (("tsne", "nothing"), ("costs", tmp_path / "costs.csv"), ("tree", tmp_path / "no.yaml")):
        assert run("concern", "suggest", given, "--from", source, "--out", tmp_path / "out.yaml") == 2
    assert not (tmp_path / "out.yaml").exists()
    assert suggest("a,b", "order", tmp_path / "nowhere" / "out.yaml") == 2
