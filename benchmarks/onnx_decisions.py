"""Count decisions that differ between torch and ONNX Runtime, with the extra mpcs_torch[onnx].

Run: python -m benchmarks.onnx_decisions

The rules are those of the tests, and one with coarse answers, each alone and with a model. The rows are random, tied,
or hold NaN and infinity. Batches have 1 (20 000 of the rows), 7, 32 and all rows.
"""

import logging
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from mpcs_torch.learning import DecisionRule, Limit
from tests.learning.test_decision_rule import FIT, LIGHTS, RULES

ROWS, ALONE = 100_000, 20_000


def inputs() -> dict[str, Tensor]:
    """Draw the rows."""
    generator = torch.Generator().manual_seed(7)
    random = 5 * torch.randn(ROWS, 3, generator=generator)
    tied = torch.randint(-3, 4, (ROWS, 3), generator=generator).float()
    unsound = torch.tensor([torch.nan, torch.inf, -torch.inf, 3e38, -3e38])
    drawn = unsound[torch.randint(5, random.shape, generator=generator)]
    bad = torch.where(torch.rand(random.shape, generator=generator) < 0.3, drawn, random)
    return {"random": random, "tied": tied, "NaN and infinity": bad}


@torch.no_grad()
def main() -> None:
    """Print a line for each rule, and the sum."""
    import onnxruntime

    torch.set_num_threads(1)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    torch.manual_seed(0)
    model, compared, different = nn.Linear(3, 3), 0, 0
    rules = {name: DecisionRule(**settings) for name, settings in RULES.items()}
    coarse = replace(LIGHTS, refer=0.45, answers={"red or yellow": 0.1})
    rules["coarse answers"] = DecisionRule(
        coarse, [Limit(0.05, of="red"), Limit(0.1, "any", of="decided")]
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, rule in rules.items():
            rule.fit(*FIT)
            for module in (rule.eval(), nn.Sequential(model, rule).eval()):
                path, rows = Path(folder) / "rule.onnx", torch.export.Dim("rows")
                torch.onnx.export(
                    module,
                    (FIT[0][:2],),
                    path,
                    dynamo=True,
                    dynamic_shapes=({0: rows},),
                    verbose=False,
                )
                session = onnxruntime.InferenceSession(path)
                [given] = session.get_inputs()
                for kind, logits in inputs().items():
                    expected = module(logits).numpy()
                    for size in (1, 7, 32, ROWS):
                        some = logits[: ALONE if size == 1 else ROWS]
                        decided = [
                            session.run(None, {given.name: part.numpy()})[0]
                            for part in some.split(size)
                        ]
                        is_other = np.concatenate(decided) != expected[: len(some)]
                        compared, different = (
                            compared + len(some),
                            different + int(is_other.sum()),
                        )
                        if is_other.any():
                            print(
                                f"{name}, {kind}, batches of {size}: {is_other.sum()} differ",
                                flush=True,
                            )
    print(f"{different} of {compared} decisions of {len(rules)} rules differ")


if __name__ == "__main__":
    main()
