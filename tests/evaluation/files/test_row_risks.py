"""The risks that the figure of referrals needs are those of functions on all rows at once."""

from pathlib import Path

import numpy as np
import pytest
import torch

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.evaluation.classifier_files import RowRisks
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.functional import risk_coverage_curve
from mpcs_torch.metrics import RiskCoverageArea
from tests.evaluation.files.alone import score

CONCERN = ConcernSpec(
    ["red", "yellow", "green"], releases=[["red", "yellow"], ["yellow", "red"]], factor=0.5
)


def kept(
    folder: Path,
    classes: int,
    concern: ConcernSpec | None,
    weights: torch.Tensor | None = None,
    rows: int = 500,
) -> tuple[RowRisks, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(classes)
    probs = (
        2 * torch.randn(rows, classes, generator=generator, dtype=torch.float64)
    ).softmax(dim=1)
    target = probs.multinomial(1, generator=generator).squeeze(1)
    names = ["red", "yellow", "green"][:classes]
    path = folder / "p.npz"
    columns = {"preds": probs, "target": target}
    options = ReadOptions()
    if weights is not None:
        columns["weight"] = weights
        options = ReadOptions(weight="weight")
    np.savez(path, **columns)  # type: ignore[arg-type]
    found = RowRisks()
    score(Predictions(path, options, class_names=names), concern, risks=found)
    return found, probs, target


@pytest.mark.parametrize("concern", [None, CONCERN])
@pytest.mark.parametrize("weights", [None, torch.arange(500) % 4 + 1])
def test_the_curve_is_that_of_the_metric_where_a_row_with_a_weight_counts_as_several(
    weights: torch.Tensor | None, concern: ConcernSpec | None, tmp_path: Path
) -> None:
    found, probs, target = kept(tmp_path, 3, concern, weights)
    risks = found.risks()
    assert risks is not None
    metric = RiskCoverageArea(num_classes=3, concern=concern, from_logits=False)
    copies = torch.ones_like(target) if weights is None else weights
    metric.update(probs.repeat_interleave(copies, dim=0), target.repeat_interleave(copies))
    curve, expected = risk_coverage_curve(*risks), metric.details()
    assert len(curve.coverage) == 500
    is_last_copy = torch.isin(expected.coverage, curve.coverage)
    assert torch.equal(curve.coverage, expected.coverage[is_last_copy])
    assert torch.allclose(curve.risk, expected.risk[is_last_copy], atol=1e-6)


def test_nothing_is_kept_of_soft_labels(tmp_path: Path) -> None:
    probs = torch.tensor([[0.9, 0.1], [0.2, 0.8]], dtype=torch.float64)
    for name, target in (("soft", probs), ("one", torch.tensor([0, 0]))):
        path = tmp_path / f"{name}.npz"
        np.savez(path, preds=probs.numpy(), target=target.numpy())
        found = RowRisks()
        score(Predictions(path), None, risks=found)
        assert (found.risks() is None) == (name == "soft")
