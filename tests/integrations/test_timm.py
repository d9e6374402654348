"""Our losses, metrics and selector beside timm's mixup and averaged weights."""

from pathlib import Path

import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.utils import ModelEmaV3

from mpcs_torch import ConcernSpec, MetaPatternConcernScore
from mpcs_torch.learning import CheckpointSelector, SelectionRule, SoftmaxMarginLoss

CONCERN = ConcernSpec(5)


def test_mixed_labels_are_soft_targets_of_the_loss() -> None:
    torch.manual_seed(0)
    images, labels = torch.rand(8, 3, 8, 8), torch.arange(8) % 5
    mixed, soft = Mixup(
        mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=5, label_smoothing=0.1
    )(images, labels)
    logits = mixed.flatten(1)[:, :5]
    torch.testing.assert_close(
        SoftmaxMarginLoss(CONCERN, margin=0.0)(logits, soft),
        SoftTargetCrossEntropy()(logits, soft),
    )


def test_averaged_weights_are_selected_by_our_metric(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = timm.create_model("test_resnet", num_classes=5).eval()
    average = ModelEmaV3(model, decay=0.5)
    metric = MetaPatternConcernScore(5, concern=CONCERN)
    selector = CheckpointSelector(tmp_path, SelectionRule("mpcs", {"mpcs": metric}))
    with torch.no_grad():
        logits = average.module(torch.rand(4, 3, 32, 32))
    value = metric(logits.half(), torch.arange(4))  # as under autocast
    selector.update(average.module.state_dict, epoch=0, mpcs=value)
    average.module.load_state_dict(selector.load_best())
