"""Ray Data, where it is installed: parts of a data set that are evaluated apart merge to the result of the whole."""

import runpy
from pathlib import Path

import pytest
import torch

from mpcs_torch import evaluate

ray = pytest.importorskip("ray", reason="the extra mpcs_torch[ray] is not installed")
EXAMPLE = Path(__file__).parents[2] / "examples" / "with_ray.py"


@pytest.mark.filterwarnings("ignore")
def test_the_sums_of_blocks_are_those_of_all_rows() -> None:
    example = runpy.run_path(str(EXAMPLE))
    generator = torch.Generator().manual_seed(0)
    probs = torch.randn(300, 10, dtype=torch.float64, generator=generator).softmax(1)
    target = torch.randint(10, (300,), generator=generator)
    rows = [
        {"probs": row.numpy(), "target": label.item()}
        for row, label in zip(probs, target, strict=True)
    ]
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        data = ray.data.from_items(rows, override_num_blocks=3)
        result = data.aggregate(example["Evaluate"]())["evaluation"].result()
    finally:
        ray.shutdown()
    whole = evaluate(probs, target, concern=example["CONCERN"])
    assert result.first.rows == 300
    values = result.first.values
    assert values == pytest.approx(whole.first.values, rel=1e-12, nan_ok=True)
    for name, ends in whole.first.intervals.items():
        assert result.interval(name) == pytest.approx(ends, rel=1e-6)
