"""Evaluate a model with Ray Data, beyond one machine: evaluations of blocks merge."""

import numpy as np
import pyarrow as pa
import ray
import torch
from ray.data.aggregate import AggregateFnV2
from sklearn.datasets import load_digits
from torch import nn

from mpcs_torch import ConcernSpec, Evaluation

RELEASES = [[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]]
CONCERN = ConcernSpec(classes=10, releases=RELEASES, factor=0.5)


class Evaluate(AggregateFnV2):
    """Evaluate the columns ``probs`` and ``target`` of a data set."""

    def __init__(self) -> None:
        super().__init__(
            "evaluation",
            lambda: Evaluation(10, concern=CONCERN),
            on=None,
            ignore_nulls=False,
        )

    def aggregate_block(self, block: pa.Table) -> Evaluation:
        """Add up the rows of a block."""
        evaluation = Evaluation(10, concern=CONCERN)
        evaluation.update(
            torch.from_numpy(np.stack(block["probs"].to_pylist())),
            torch.from_numpy(block["target"].to_numpy().copy()),
        )
        return evaluation

    def combine(self, current_accumulator: Evaluation, new: Evaluation) -> Evaluation:
        """Merge what was added up elsewhere."""
        current_accumulator.merge(new)
        return current_accumulator


class Predict:
    """Compute the probabilities of a batch; each worker loads the weights once."""

    def __init__(self, weights: dict[str, torch.Tensor]) -> None:
        self._model = nn.Linear(64, 10)
        self._model.load_state_dict(weights)

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return probabilities (n, 10) and labels (n,)."""
        with torch.no_grad():
            probs = self._model(torch.from_numpy(batch["image"])).softmax(1)
        return {"probs": probs.double().numpy(), "target": batch["target"]}


def main() -> None:
    """Train on the first half of the digits, and evaluate the second with two workers."""
    digits = load_digits()
    images, labels = digits.data.astype(np.float32) / 16, digits.target
    torch.manual_seed(0)
    model = nn.Linear(64, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        logits = model(torch.from_numpy(images[:900]))
        nn.functional.cross_entropy(logits, torch.from_numpy(labels[:900])).backward()
        optimizer.step()

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    samples = zip(images[900:], labels[900:], strict=True)
    rows = [{"image": image, "target": label} for image, label in samples]
    data = ray.data.from_items(rows, override_num_blocks=4)
    weights = model.state_dict()
    predicted = data.map_batches(Predict, fn_constructor_args=[weights], concurrency=1)
    result = predicted.aggregate(Evaluate())["evaluation"].result()
    print(f"MPCS {result.value('mpcs'):.4f}, 95 %: {result.interval('mpcs')}")
    print(f"{result.first.rows} rows")
    ray.shutdown()


if __name__ == "__main__":
    main()
