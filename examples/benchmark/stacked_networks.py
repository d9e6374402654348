"""M networks of one shape as one: their parameters are stacked, and they take a step together."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

Parameters = dict[str, Tensor]


class StackedNetworks:
    """M networks, with parameters (M, ...) that are leaves."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        self._network = networks[0]
        of_networks = [dict(network.named_parameters()) for network in networks]
        self.parameters: Parameters = {
            name: torch.stack(
                [parameters[name].detach() for parameters in of_networks]
            ).requires_grad_()
            for name in of_networks[0]
        }
        self._is_recurrent = any(
            isinstance(module, nn.RNNBase) for module in self._network.modules()
        )

    @property
    def weights(self) -> list[Tensor]:
        """The parameters, (M, ...) each."""
        return list(self.parameters.values())

    @property
    def gradients(self) -> list[Tensor]:
        """The gradients of the parameters."""
        return [weight.grad for weight in self.weights if weight.grad is not None]

    def __call__(self, inputs: Tensor) -> Tensor:
        """Return the outputs (M, B, C) for inputs (M, B, ...)."""
        if self._is_recurrent:  # torch.func cannot stack them
            rows = zip(*(weight.unbind() for weight in self.weights), strict=True)
            networks = [dict(zip(self.parameters, row, strict=True)) for row in rows]
            return torch.stack(
                [
                    self._call(network, each)
                    for network, each in zip(networks, inputs, strict=True)
                ]
            )
        return torch.vmap(self._call)(self.parameters, inputs)

    def _call(self, parameters: Parameters, inputs: Tensor) -> Tensor:
        outputs: Tensor = functional_call(self._network, parameters, (inputs,))
        return outputs

    @torch.no_grad()
    def outputs(self, place: int, inputs: Tensor) -> Tensor:
        """Return the outputs (B, C) of one network for inputs (B, ...)."""
        return self._call(
            {name: tensor[place] for name, tensor in self.parameters.items()}, inputs
        )

    def clear_gradients(self) -> None:
        """Forget the gradients."""
        for weight in self.weights:
            weight.grad = None

    def norms(self) -> Tensor:
        """Return the norm of all gradients of each network together: (M,)."""
        squares = [gradient.flatten(1).square().sum(dim=1) for gradient in self.gradients]
        return torch.stack(squares).sum(dim=0).sqrt()

    def clip(self, clip_norm: float) -> None:
        """Scale down the gradients of each network whose norm is above ``clip_norm``."""
        factors = (clip_norm / (self.norms() + 1e-6)).clamp(max=1)
        for gradient in self.gradients:
            gradient.mul_(beside(factors, gradient))

    @torch.no_grad()
    def at_sharper(self, radius: Tensor, backward: Callable[[], None]) -> None:
        """Set the gradients to those at weights that are moved uphill by ``radius`` (M,); then move back."""
        factors = radius / (self.norms() + 1e-12)
        moves = [gradient * beside(factors, gradient) for gradient in self.gradients]
        torch._foreach_add_(self.weights, moves)
        with torch.enable_grad():
            backward()
        torch._foreach_sub_(self.weights, moves)


def beside(values: Tensor, tensor: Tensor) -> Tensor:
    """Reshape values (M,), or more dimensions, so that they multiply a tensor (M, ...)."""
    return values.reshape(*values.shape, *[1] * (tensor.ndim - values.ndim))


@torch.no_grad()
def replace_copies(
    tensors: Sequence[Tensor], copies: int, change: Callable[[Tensor], Tensor]
) -> None:
    """Replace tensors (M * copies, ...) in place; ``change`` maps (M, copies, ...) to (M, 1, ...)."""
    for tensor in tensors:
        grouped = tensor.view(-1, copies, *tensor.shape[1:])
        grouped.copy_(change(grouped).expand_as(grouped).clone())
