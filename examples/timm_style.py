"""A loop as timm's train.py has it: timm's model, optimizer and schedule, and our selector.

timm's own saver takes any metric but the loss for better when higher, so it would keep the
worst epoch by MPCS.
"""

import timm
import torch
from sklearn.datasets import load_digits
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler

from mpcs_torch import ConcernSpec, MetaPatternConcernScore
from mpcs_torch.learning import CheckpointSelector, SelectionRule, SoftmaxMarginLoss
from mpcs_torch.metrics import Accuracy

# Confusing 1 with 7, or 3, 5 and 8 with each other, is an everyday mistake.
# Any other error is dangerous.
RELEASES = [[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]]
CONCERN = ConcernSpec(classes=10, releases=RELEASES, factor=0.1)
EPOCHS = 6


def main() -> None:
    """Train a small residual network, and print the epochs that rule and metrics pick."""
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    train, validation = torch.arange(len(labels)).split([1347, 450])

    model = timm.create_model("test_resnet", pretrained=False, num_classes=10, in_chans=1)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=5e-3, weight_decay=0.01)
    warmup = {"warmup_t": 1, "warmup_lr_init": 1e-4, "warmup_prefix": True}
    schedule = CosineLRScheduler(optimizer, t_initial=EPOCHS, **warmup)
    loss = SoftmaxMarginLoss(CONCERN, margin=2.0)
    mpcs = MetaPatternConcernScore(10, concern=CONCERN)
    metrics = {"mpcs": mpcs, "accuracy": Accuracy(10)}
    rule = SelectionRule("mpcs", metrics, within={"accuracy": 0.01})
    saver = CheckpointSelector("timm_checkpoints", rule)

    for epoch in range(EPOCHS):
        model.train()
        for batch in train[torch.randperm(len(train))].split(64):
            optimizer.zero_grad()
            loss(model(images[batch]), labels[batch]).backward()
            optimizer.step()
        schedule.step(epoch + 1)
        model.eval()
        with torch.no_grad():
            logits = model(images[validation])
        target = labels[validation]
        values = {name: metric(logits, target) for name, metric in metrics.items()}
        saver.update(model.state_dict, epoch=epoch, **values)
        numbers = f"MPCS {values['mpcs']:.4f}  accuracy {values['accuracy']:.4f}"
        print(f"epoch {epoch}  {numbers}")
        for metric in metrics.values():
            metric.reset()
    print(saver.explain().markdown())
    model.load_state_dict(saver.load_best())


if __name__ == "__main__":
    main()
