"""Time training against bare loops: many models at once in the benchmark, and steps in two processes against one.

Run: python -m benchmarks.training_cost
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional as nn_functional
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD, Adam

from examples.benchmark.fleets import Condition, Fleet, Model, Regime
from examples.benchmark.losses import FLOORED, PLAIN
from examples.benchmark.tasks import TASKS
from mpcs_torch.paper.experiments import experiment_config
from mpcs_torch.processes import joined
from mpcs_torch.trainer.data import DataSplits, Split
from mpcs_torch.trainer.loop import TrainingRun
from mpcs_torch.trainer.networks import MNISTCNN

TASK, LOSSES, MODELS = "digits, MLP", (PLAIN, FLOORED), 40
BATCHES = (128, 1024)
ROUNDS, STEPS = 10, 5


def batch_ratio(loss: str) -> float:
    """Return the time per model of models that train at once, over that of a bare loop with PyTorch's cross entropy."""
    task = TASKS[TASK]
    rate = task.learning_rates[0]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the benchmark does
    samples, train = task.samples(Path()), task.parts(Path(), 0).train

    def bare() -> None:
        model = task.model(samples.inputs.shape[1:], 10)
        optimizer = Adam(model.parameters(), lr=rate, fused=True)
        taken = 0
        while taken < task.steps:
            for index in train[torch.randperm(len(train))].split(task.batch_size)[
                : task.steps - taken
            ]:
                optimizer.zero_grad()
                nn_functional.cross_entropy(
                    model(samples.inputs[index]), samples.labels[index]
                ).backward()
                optimizer.step()
                taken += 1

    def batch() -> None:
        Fleet(
            task,
            Regime(loss, rate, Condition()),
            [Model(0.0, seed) for seed in range(MODELS)],
            Path(),
        ).train()

    times = [(_seconds(bare), _seconds(batch) / MODELS) for _ in range(3)]
    torch.set_num_threads(threads)
    alone = median(time for time, _ in times)
    return median(time for _, time in times) / alone


def _seconds(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def two_processes(batch_size: int) -> tuple[float, float]:
    """Return the time of a step in two processes over that in one, one thread each: our trainer, and a bare loop."""
    one, two = _steps_in(1, batch_size), _steps_in(2, batch_size)
    return two[0] / one[0], two[1] / one[1]


def _steps_in(processes: int, batch_size: int) -> list[float]:
    launcher = [
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(processes),
    ]
    command = [sys.executable, *launcher, "-m", __spec__.name, "steps", str(batch_size)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    printed = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment
    ).stdout
    return [float(each) for each in printed.split()]


def _print_steps(batch_size: int) -> None:
    """Print the median seconds of a step of our trainer and of a bare loop with PyTorch's engine, in turns."""
    config = experiment_config(
        "exp05", [f"training.batch_size={batch_size}", "epochs.batches=1", "epochs.test=[]"]
    )
    split = Split(
        torch.randn(2 * batch_size, 1, 28, 28), torch.randint(0, 10, (2 * batch_size,))
    )
    data = DataSplits(split, split, tuple(map(str, range(10))))
    with joined() as world:
        run = TrainingRun(config, data, world)
        batch = run.data.train.at(torch.arange(batch_size))
        inputs = batch.inputs[world.rows(batch_size)].clone()
        target = batch.labels[world.rows(batch_size)].clone()
        net: nn.Module = MNISTCNN((1, 28, 28), 10)
        engine = net if world.size == 1 else DistributedDataParallel(net)
        optimizer = SGD(net.parameters(), lr=0.01)

        def bare() -> Tensor:
            optimizer.zero_grad()
            loss = nn_functional.cross_entropy(engine(inputs), target)
            loss.backward()
            optimizer.step()
            return loss

        def several(step: Callable[[], object]) -> float:
            if world.size > 1:
                distributed.barrier()
            return _seconds(lambda: [step() for _ in range(STEPS)]) / STEPS

        with run.running():
            times = [
                (several(lambda: run.train_step(batch)), several(bare))
                for _ in range(ROUNDS)
            ]
        if world.is_first:
            print(*(median(column) for column in zip(*times[1:], strict=True)))


def main() -> None:
    """Print each ratio beside its limit."""
    for loss in LOSSES:
        print(
            f"{TASK}, {loss}: {batch_ratio(loss):.3f} times a bare loop, for each of {MODELS} models at once"
        )
    for batch_size in BATCHES:
        ours, bare = two_processes(batch_size)
        print(
            f"CNN, batches of {batch_size}, two processes: {ours:.2f} times one; a bare loop {bare:.2f}"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["steps"]:
        _print_steps(int(sys.argv[2]))
    else:
        main()
