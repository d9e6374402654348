"""A network that kills its process once, for a run that torchrun restarts."""

import os

import torch


class Fragile(torch.nn.Sequential):
    """Kills the process of rank 1 in the 40th step of the first try, if torchrun can restart it."""

    steps = 0

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.steps += self.training
        is_first_try = os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0"
        can_restart = os.environ.get("TORCHELASTIC_MAX_RESTARTS") == "1"
        if self.steps == 40 and is_first_try and can_restart and os.environ["RANK"] == "1":
            os.kill(os.getpid(), 9)
        return super().forward(inputs)


def fragile(input_shape: torch.Size, num_classes: int) -> torch.nn.Module:
    return Fragile(torch.nn.Flatten(), torch.nn.Linear(input_shape.numel(), num_classes))
