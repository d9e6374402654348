"""The paper's models, layer by layer: shapes and numbers of parameters worked out by hand."""

import pytest
import torch

from mpcs_torch.trainer.networks import MODELS


@pytest.mark.parametrize(
    ("name", "shape", "arguments", "parameters"),
    [
        # Comments give the weights and biases of each layer.
        ("mlp", (1, 8, 8), {"hidden": 32}, 2410),  # 64 * 32 + 32, 32 * 10 + 10
        # 4 * 25 + 25 + 50, 25 * 50 + 50 + 100, 200 * 1024 + 1024, 1024 * 128 + 128, 128 * 10 + 10
        ("cnn_d", (1, 8, 8), {}, 339889),
        # 9 * 16 + 16, 9 * 16 * 32 + 32, 1568 * 16 + 16, 16 * 10 + 10
        ("cnn_m", (1, 28, 28), {}, 30074),
        # 8 + 64 + 16, twice 64 + 64 + 16, 8 * 10 + 10
        ("rnn", (24, 1), {"hidden": 8, "layers": 3}, 466),
        # 4 * (16 + 64 + 16), 8 * 10 + 10
        ("lstm", (15, 2), {"hidden": 8, "layers": 1}, 474),
    ],
)
def test_model_gives_logits(
    name: str, shape: tuple[int, ...], arguments: dict[str, int], parameters: int
) -> None:
    model = MODELS[name](shape, 10, **arguments)
    assert model(torch.rand(5, *shape)).shape == (5, 10)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


def test_a_recurrent_model_reads_its_steps_in_order() -> None:
    model = MODELS["rnn"]((6, 1), 3, hidden=4, layers=1)
    series = torch.rand(1, 6, 1)
    assert not torch.allclose(model(series), model(series.flip(1)))
