"""Our losses beside those of timm."""

import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy

from mpcs_torch import ConcernSpec
from mpcs_torch.learning import SoftmaxMarginLoss


def test_mixed_labels_are_soft_targets_of_the_loss() -> None:
    torch.manual_seed(0)
    images, labels = torch.rand(8, 3, 8, 8), torch.arange(8) % 5
    mixed, soft = Mixup(
        mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=5, label_smoothing=0.1
    )(images, labels)
    logits = mixed.flatten(1)[:, :5]
    torch.testing.assert_close(
        SoftmaxMarginLoss(ConcernSpec(5), margin=0.0)(logits, soft),
        SoftTargetCrossEntropy()(logits, soft),
    )
