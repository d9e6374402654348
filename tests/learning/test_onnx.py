"""A rule, and a model with its rule, decide in ONNX Runtime as in torch."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from mpcs_torch import ConcernSpec
from mpcs_torch.learning import DecisionRule, Limit, UnfittedRuleWarning
from tests.docs.pages import ROOT
from tests.learning.test_decision_rule import FIT, LIGHTS

onnxruntime = pytest.importorskip(
    "onnxruntime", reason="the extra mpcs_torch[onnx] is not installed"
)
pytest.importorskip("onnxscript", reason="the extra mpcs_torch[onnx] is not installed")

ROWS = 5000


def exported(
    model: nn.Module, rule: DecisionRule, path: Path
) -> Callable[[Tensor], np.ndarray]:
    """Export by the lines of the page, to a file, and run that."""
    page = (ROOT / "docs" / "how-to" / "serve-a-rule.md").read_text()
    (lines,) = re.findall(
        r"^torch\.onnx\.export\($.*?^\)$", page, flags=re.DOTALL | re.MULTILINE
    )
    names = {"torch": torch, "nn": nn, "model": model, "rule": rule, "inputs": FIT[0]}
    exec(lines.replace('"model_with_rule.onnx"', f"{str(path)!r}, verbose=False"), names)
    session = onnxruntime.InferenceSession(path)

    def run(inputs: Tensor) -> Any:
        return session.run(None, {"inputs": inputs.numpy()})[0]

    return run


def batches() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(7)
    random = 5 * torch.randn(ROWS, 3, generator=generator)
    unsound = torch.tensor([torch.nan, torch.inf, -torch.inf, 3e38, -3e38])
    drawn = unsound[torch.randint(0, 5, random.shape, generator=generator)]
    return {
        "random": random,
        "classes that tie": torch.randint(-3, 4, random.shape, generator=generator).float(),
        "a class and a referral that tie": torch.tensor([0.0, 0.0, -60.0])[
            random.argsort(dim=1)
        ],
        "NaN and infinity": torch.where(
            torch.rand(random.shape, generator=generator) < 0.3, drawn, random
        ),
    }


WITH_ALL_PARTS = DecisionRule(
    ConcernSpec(
        LIGHTS.classes,
        releases=LIGHTS.releases,
        factor=0.5,
        refer=0.45,
        answers={"red or yellow": 0.1},
    ),
    [Limit(0.05, of="red"), Limit(0.1, "any", of="decided")],
    calibration="vector",
).fit(*FIT)


@pytest.mark.slow
@torch.no_grad()
def test_decisions_in_onnx_runtime_are_those_of_torch_in_batches_of_any_size(
    tmp_path: Path,
) -> None:
    model = nn.Linear(3, 3, bias=False)
    model.weight.copy_(torch.eye(3) + 0.1)
    run = exported(model, WITH_ALL_PARTS, tmp_path / "rule.onnx")
    for kind, inputs in batches().items():
        decisions = WITH_ALL_PARTS(model(inputs)).numpy()
        is_tie = kind == "a class and a referral that tie"
        assert is_tie or set(decisions.tolist()) >= {-1, 0, 1, 2}
        for size, rows in ((1, 500), (7, ROWS), (32, ROWS), (ROWS, ROWS)):
            decided = np.concatenate([run(part) for part in inputs[:rows].split(size)])
            assert decided.dtype == np.int64
            assert np.array_equal(decided, decisions[:rows]), (kind, size)


def test_exporting_a_rule_that_was_not_fitted_warns(tmp_path: Path) -> None:
    with pytest.warns(UnfittedRuleWarning):
        torch.export.export(DecisionRule(LIGHTS).eval(), (FIT[0][:2],))
