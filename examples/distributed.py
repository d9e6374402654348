"""Metrics over processes: alone, or by ``torchrun --nproc-per-node 2 distributed.py``."""

import os

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from mpcs_torch import ConcernSpec, MetaPatternConcernScore
from mpcs_torch.learning import CheckpointSelector, SelectionRule, SoftmaxMarginLoss

# Confusing 1 with 7, or 3, 5 and 8 with each other, is an everyday mistake.
# Any other error is dangerous.
RELEASES = [[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]]
CONCERN = ConcernSpec(classes=10, releases=RELEASES, factor=0.1)


def main() -> None:
    """Train for five epochs; each process has a share of samples, all print one MPCS."""
    if "RANK" in os.environ:  # torchrun sets it
        dist.init_process_group("gloo")  # nccl on GPUs
    rank, processes = 0, 1
    if dist.is_initialized():
        rank, processes = dist.get_rank(), dist.get_world_size()

    torch.manual_seed(0)
    digits = load_digits()
    inputs = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    train = torch.arange(1347)[rank::processes]  # no sample twice
    pick = torch.arange(1347, 1797)[rank::processes]

    network = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    model = DistributedDataParallel(network) if dist.is_initialized() else network
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    loss, mpcs = SoftmaxMarginLoss(CONCERN), MetaPatternConcernScore(10, concern=CONCERN)
    rule = SelectionRule("mpcs", {"mpcs": mpcs})
    folder = "distributed_checkpoints"
    selector = CheckpointSelector(folder, rule) if rank == 0 else None  # one process writes
    for epoch in range(5):
        for batch in train.split(64):
            optimizer.zero_grad()
            loss(model(inputs[batch]), labels[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            mpcs.update(network(inputs[pick]), labels[pick])
        score = mpcs.compute()  # of the samples of all processes: call it in each of them
        mpcs.reset()
        print(f"process {rank}  epoch {epoch}  MPCS {score:.6f}")
        if selector is not None:
            selector.update(network.state_dict, epoch=epoch, mpcs=score)
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
