"""The plain loop under Accelerate, run by `test_accelerate`: alone, or in each of two processes."""

import json
import sys
from pathlib import Path

import torch
from accelerate import Accelerator, debug_launcher
from torch.utils.data import DataLoader, TensorDataset
from transformers import EvalPrediction

from mpcs_torch import ConcernSpec
from mpcs_torch.integrations.huggingface import compute_metrics
from mpcs_torch.learning import CheckpointSelector
from mpcs_torch.metrics import DangerousErrors
from tests.integrations import plain_loop as plain


def accelerate_loop(
    folder: Path,
    *,
    prepares: bool = False,
    steps_with_optimizer: bool = True,
    resumes_at: int = 0,
) -> tuple[list[float], CheckpointSelector]:
    """Train; return the learning rate after each epoch, and the selector.

    Batches are split between the processes, and each weighs the same, so that gradients are those of whole batches.
    """
    accelerator = Accelerator(cpu=True, step_scheduler_with_optimizer=steps_with_optimizer)
    net, criterion = plain.model(), plain.loss()
    measured = plain.metrics(sync_on_compute=False)
    optimizer = torch.optim.SGD(net.parameters(), lr=plain.RATE)
    schedule = plain.scheduler(optimizer)
    train, valid = plain.data()
    share = plain.BATCH // accelerator.num_processes
    loaders = DataLoader(train, share), DataLoader(valid, share)
    net, optimizer, train_loader, valid_loader = accelerator.prepare(
        net, optimizer, *loaders
    )
    if prepares:
        schedule = accelerator.prepare(schedule)
    else:
        accelerator.register_for_checkpointing(schedule)
    if resumes_at:
        accelerator.load_state(str(folder / "state"))
    selector = CheckpointSelector(folder / f"selector-{resumes_at}", plain.rule())
    rates = []
    for epoch in range(resumes_at, plain.EPOCHS):
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            accelerator.backward(criterion(net(inputs), labels))
            optimizer.step()
        with torch.no_grad():
            for inputs, labels in valid_loader:
                logits, target = accelerator.gather_for_metrics((net(inputs), labels))
                measured.update(logits, target)
        values = measured.compute()
        measured.reset()
        if accelerator.is_main_process:
            selector.update(accelerator.unwrap_model(net).state_dict, epoch=epoch, **values)
        accelerator.wait_for_everyone()
        schedule.step(values["mpcs"])
        rates.append(optimizer.param_groups[0]["lr"])
        if epoch == 2 and not resumes_at:
            accelerator.save_state(str(folder / "state"))
    return rates, selector


def counted_errors() -> list[float]:
    """Count the errors of 7 samples, 4 of which are wrong, gathered by Accelerate and as by the Trainer."""
    accelerator = Accelerator(cpu=True)
    samples = TensorDataset(
        torch.eye(3)[torch.arange(7) % 3], torch.zeros(7, dtype=torch.long)
    )
    gathered = DangerousErrors(3, concern=ConcernSpec(3), sync_on_compute=False)
    for preds, target in accelerator.prepare(DataLoader(samples, 2)):
        gathered.update(*accelerator.gather_for_metrics((preds, target)))
    compute = compute_metrics({"errors": DangerousErrors(3, concern=ConcernSpec(3))})
    values = compute(EvalPrediction(*(tensor.numpy() for tensor in samples.tensors)))
    return [float(gathered.compute()), values["errors_loss"]]


def in_each_process(folder: str) -> None:
    """Write what happens to the right and the wrong path."""
    outcomes: dict[str, object] = {}
    paths: dict[str, dict[str, bool]] = {
        "registered": {},
        "prepared": {"prepares": True, "steps_with_optimizer": False},
        "repeated": {"prepares": True},
    }
    for name, given in paths.items():
        Accelerator().free_memory()
        try:
            outcomes[name], _ = accelerate_loop(Path(folder) / name, **given)
        except RuntimeError as error:
            outcomes[name] = str(error)
    Accelerator().free_memory()
    outcomes["errors"] = counted_errors()
    rank = Accelerator().process_index
    (Path(folder) / f"{rank}.json").write_text(json.dumps(outcomes))


if __name__ == "__main__":
    debug_launcher(in_each_process, (sys.argv[1],), num_processes=2)
