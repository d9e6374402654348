"""The inputs of metrics, beside torch's own."""

import pytest
import torch

from mpcs_torch.functional.inputs.probabilities import log_softmax


@pytest.mark.parametrize("classes", [2, 3, 7, 10, 15, 16, 100])
def test_the_log_softmax_is_that_of_torch(classes: int) -> None:
    logits = 6 * torch.randn(501, classes, generator=torch.Generator().manual_seed(classes))
    logits[0, 0], logits[1, 1], logits[2], logits[3] = float("-inf"), 1e30, 5.0, float("nan")
    ours, torchs = log_softmax(logits), logits.log_softmax(dim=1)
    assert ours.is_contiguous()
    torch.testing.assert_close(ours, torchs, rtol=1e-6, atol=1e-6, equal_nan=True)
    if classes < 8:  # rows shorter than any vector register are summed in the same order
        torch.testing.assert_close(ours, torchs, rtol=0, atol=0, equal_nan=True)
