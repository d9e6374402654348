"""Models by name: one file for each family, one line here for each model."""

from collections.abc import Callable

from torch import nn

from mpcs_torch.trainer.models.cnn import MNISTCNN, DigitsCNN
from mpcs_torch.trainer.models.mlp import MLP
from mpcs_torch.trainer.models.recurrent import lstm, rnn

MODELS: dict[str, Callable[..., nn.Module]] = {
    "mlp": MLP,
    "cnn_d": DigitsCNN,
    "cnn_m": MNISTCNN,
    "rnn": rnn,
    "lstm": lstm,
}
"""Called with the shape of one input and the number of classes; a config sets their keyword-only arguments."""
