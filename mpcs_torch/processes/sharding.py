"""Weights that several processes share (PyTorch's FSDP2), and the whole states of parts that hold such weights.

PyTorch's modules for them take a second to import, so runs without them do not.
"""

from collections.abc import Iterator
from typing import Any

from torch import nn
from torch.optim import Optimizer


def shard(model: nn.Module) -> None:
    """Leave each process a share of the weights of a model; it gathers those of a block only while it needs them.

    The model must have the same weights in all processes. Blocks are its submodules, and those of containers.
    """
    from torch.distributed.fsdp import fully_shard

    for block in _blocks(model):
        fully_shard(block)
    fully_shard(model, reshard_after_forward=True)


def is_sharded(model: nn.Module) -> bool:
    """Return whether `shard` was called on a model in several processes."""
    return hasattr(model, "set_requires_gradient_sync")  # as an FSDPModule has


def _blocks(module: nn.Module) -> Iterator[nn.Module]:
    for child in module.children():
        if isinstance(child, nn.Sequential | nn.ModuleList | nn.ModuleDict):
            yield from _blocks(child)
        elif next(child.parameters(), None) is not None:
            yield child


def _holds_shares(part: Any) -> bool:
    return isinstance(part, nn.Module) and any(map(is_sharded, part.modules()))


def whole_state(part: Any, model: nn.Module) -> dict[str, Any]:
    """Return the state of a part of a run with whole tensors, in the first process; all processes must ask for it.

    Args:
        part: A sharded module, the optimizer of the model, or anything else with a state.
        model: The sharded model.
    """
    from torch.distributed.checkpoint import state_dict as whole

    options = whole.StateDictOptions(full_state_dict=True, cpu_offload=True)
    if isinstance(part, Optimizer) and part.state:  # where it has none yet, PyTorch would take a step to make one
        return whole.get_optimizer_state_dict(model, part, options=options)
    if _holds_shares(part):
        return whole.get_model_state_dict(part, options=options)
    state: dict[str, Any] = part.state_dict()
    return state


def load_whole_state(part: Any, model: nn.Module, state: dict[str, Any]) -> None:
    """Restore what `whole_state` returned, which all processes must give."""
    from torch.distributed.checkpoint import state_dict as whole

    # Not strict, because a parameter that never had a gradient has no state in the optimizer.
    options = whole.StateDictOptions(full_state_dict=True, strict=not isinstance(part, Optimizer))
    if isinstance(part, Optimizer) and state["state"]:
        whole.set_optimizer_state_dict(model, part, state, options=options)
        for group in part.param_groups:  # PyTorch gives tuples, such as betas, back as lists
            group.update({key: tuple(value) for key, value in group.items() if key != "params" and type(value) is list})
    elif _holds_shares(part):
        whole.set_model_state_dict(part, dict(state), options=options)  # a copy: it puts its own tensors in
    else:
        part.load_state_dict(state)
