"""Accelerate: the loop of its tutorial "Quicktour": all but the scheduler is prepared.

Run it in two processes with ``torchrun --nproc-per-node 2 with_accelerate.py``.
"""

import torch
from accelerate import Accelerator
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mpcs_torch import ConcernSpec, MetaPatternConcernScore
from mpcs_torch.learning import MPCSLR, CheckpointSelector, SelectionRule, SoftmaxMarginLoss

# Confusing 1 with 7, or 3, 5 and 8 with each other, is an everyday mistake.
# Any other error is dangerous.
RELEASES = [[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]]
CONCERN = ConcernSpec(classes=10, releases=RELEASES, factor=0.1)


def main() -> None:
    """Train for up to eight epochs, and print MPCS and learning rate of each."""
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    digits = load_digits()
    inputs = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    seen = TensorDataset(inputs[:1347], labels[:1347])
    train = DataLoader(seen, batch_size=64, shuffle=True)
    validation = DataLoader(TensorDataset(inputs[1347:], labels[1347:]), batch_size=225)

    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    prepared = accelerator.prepare(model, optimizer, train, validation)
    model, optimizer, train, validation = prepared
    scheduler = MPCSLR(optimizer)
    accelerator.register_for_checkpointing(scheduler)  # for save_state and load_state

    loss = SoftmaxMarginLoss(CONCERN).to(accelerator.device)
    # Each process gets the samples of all, so torchmetrics must not gather states on top.
    mpcs = MetaPatternConcernScore(10, concern=CONCERN, sync_on_compute=False)
    mpcs = mpcs.to(accelerator.device)
    rule = SelectionRule("mpcs", {"mpcs": mpcs})
    selector = CheckpointSelector("accelerate_checkpoints", rule, patience=3)
    for epoch in range(1, 9):
        for pixels, target in train:
            optimizer.zero_grad()
            accelerator.backward(loss(model(pixels), target))
            optimizer.step()
        with torch.no_grad():
            for pixels, target in validation:
                # Without it, the samples that pad the last batch would count twice.
                mpcs.update(*accelerator.gather_for_metrics((model(pixels), target)))
        score = mpcs.compute()
        mpcs.reset()
        # All processes call update, so that all stop together; only the first one writes.
        selector.update(accelerator.unwrap_model(model).state_dict, epoch=epoch, mpcs=score)
        scheduler.step(score)
        accelerator.print(f"epoch {epoch}  MPCS {score:.4f}  {scheduler.reason}")
        if selector.should_stop:
            break
    accelerator.wait_for_everyone()
    accelerator.unwrap_model(model).load_state_dict(selector.load_best())
    accelerator.end_training()


if __name__ == "__main__":
    main()
