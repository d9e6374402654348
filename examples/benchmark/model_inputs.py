"""The inputs of M models that train together: standardized for each, shifted or with noise."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from examples.benchmark.stacked_networks import beside
from examples.benchmark.tasks import Task

MIN_DEVIATION = 1e-6


class ModelInputs:
    """The inputs of M models: standardized by the training samples of each, and augmented."""

    def __init__(
        self, task: Task, values: Tensor, trains: Sequence[Tensor], noise: float
    ) -> None:
        self._values, self._is_scaled = values, task.is_scaled
        parts = [values[train] for train in trains]
        self._means, self._deviations = torch.zeros(len(parts)), torch.ones(len(parts))
        self._strength = torch.stack([noise * part.std() for part in parts])
        if task.is_scaled:
            self._means = torch.stack([part.mean(dim=0) for part in parts])
            self._deviations = torch.stack(
                [part.std(dim=0).clamp(min=MIN_DEVIATION) for part in parts]
            )
            self._strength = torch.full((len(parts),), noise)
        self._pixels = int(noise) if task.is_image else 0
        self._has_noise = noise > 0 and not self._pixels
        if self._pixels:
            # All stretches of pixels that are as long as a row of an image: the rows of a shifted image are among them.
            self._padded = pad(values, [self._pixels] * 4)
            pixels, width = self._padded.flatten(), values.shape[-1]
            self._stretches = pixels.as_strided((len(pixels) - width + 1, width), (1, 1))

    def scaled(self, places: Tensor, model: int) -> Tensor:
        """Return the inputs (N, ...) of one model."""
        return (self._values[places] - self._means[model]) / self._deviations[model]

    def augmented(self, places: Tensor, generators: Sequence[torch.Generator]) -> Tensor:
        """Return inputs (M, B, ...) of samples (M, B): images are shifted, to others noise is added."""
        if self._pixels:
            return self._shifted(places, generators)
        inputs = self._values[places]
        if self._is_scaled:
            inputs = (inputs - self._means.unsqueeze(1)) / self._deviations.unsqueeze(1)
        if self._has_noise:
            noise = torch.empty_like(inputs)
            for of_model, generator in zip(noise, generators, strict=True):
                of_model.normal_(generator=generator)
            inputs = torch.addcmul(inputs, noise, beside(self._strength, inputs))
        return inputs

    def _shifted(self, places: Tensor, generators: Sequence[torch.Generator]) -> Tensor:
        sizes = (2, places.shape[1])
        shifts = [
            torch.randint(2 * self._pixels + 1, sizes, generator=each)
            for each in generators
        ]
        down, right = torch.stack(shifts, dim=1)
        image, channel, row, _ = self._padded.stride()
        begins = places * image + down * row + right
        channels, height, width = self._values.shape[1:]
        in_image = channel * torch.arange(channels).unsqueeze(1) + row * torch.arange(
            height
        )
        rows = (begins.unsqueeze(-1) + in_image.flatten()).flatten()
        return self._stretches.index_select(0, rows).view(
            *places.shape, channels, height, width
        )
