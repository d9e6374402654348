"""Temperature and vector scaling of logits; the input checks and Newton's method of all calibrations."""

from collections.abc import Callable
from typing import Literal, NamedTuple, Self
from warnings import warn

import torch
from torch import Tensor, nn

from mpcs_torch.errors import Rule, require
from mpcs_torch.functional.detection.errors import check_both_occur, flatten_trials
from mpcs_torch.functional.inputs.checks import (
    check_by_class,
    check_num_classes,
    widest_float,
)
from mpcs_torch.functional.inputs.faults import Fault, raise_first
from mpcs_torch.functional.inputs.probabilities import flatten_samples

ScalingMethod = Literal["temperature", "vector"]
"""The names of the two scaling methods."""


class CalibrationWarning(UserWarning):
    """A warning that the data do not determine a calibration, or that the scores say nothing about the labels."""


REVERSED = (
    "targets do not score higher than non-targets: scores are reversed or uninformative"
)
"""The reason that a `CalibrationWarning` states if calibrated scores do not increase with the raw scores."""


class LabelledLogits(NamedTuple):
    """The logits and labels of M samples."""

    logits: Tensor
    """The logits: (M, C), float64, finite."""
    target: Tensor
    """The true classes: (M,), int64."""

    def true_class_values(self, values: Tensor) -> Tensor:
        """Return (M,): from each row of ``values`` (M, C), the value in the column of the true class."""
        return values.gather(1, self.target.unsqueeze(1)).squeeze(1)


def labelled_logits(
    preds: Tensor, target: Tensor, num_classes: int | None = None
) -> LabelledLogits:
    """Check and flatten logits ``preds`` (N, C, ...) and labels ``target`` (N, ...), which must not be empty.

    C is ``num_classes``, if it is given.
    """
    check_by_class(preds)
    classes = preds.shape[1] if num_classes is None else num_classes
    check_num_classes(classes)
    samples = flatten_samples(preds, target, num_classes=classes, scale="logits")
    # Metrics accept infinite logits, so their check of scores is replaced by a stricter one.
    label_fault, _, _ = samples.find_faults()
    raise_first([label_fault, not_finite(samples.scores)])
    require(len(samples.scores), "not_empty", "preds", preds)
    logits = in_float64(samples.scores)
    return LabelledLogits(logits, samples.labels.target.to(logits.device))


def not_finite(logits: Tensor) -> Fault:
    """Return a `Fault` that marks each row of ``logits`` (M, C) in which a value is not finite."""
    return Fault(Rule("finite_logits", "preds"), logits, ~logits.isfinite().all(dim=1))


def labelled_trials(preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Check scores ``preds`` and labels ``target``, which must have both 0 and 1; return scores and ``target == 1``.

    The scores (M,) are float64, and the mask (M,) is bool.
    """
    batch = flatten_trials(preds, target, num_classes=None, ignore_index=None)
    infinite = Fault(Rule("finite", "preds"), batch.scores, ~batch.scores.isfinite())
    raise_first([*batch.find_faults(), infinite])
    scores = in_float64(batch.scores)
    is_target = batch.labels.to(scores.device) == 1
    check_both_occur(is_target)
    return scores, is_target


def in_float64(values: Tensor) -> Tensor:
    """Return ``values`` as float64 without gradient; move them to the CPU if their device has no float64."""
    if widest_float(values.device) != torch.float64:
        values = values.cpu()
    return values.detach().double()


def upcast_half(preds: Tensor) -> Tensor:
    """Return floating-point ``preds``, as float32 if the dtype has 16 bits; raise a ValueError for other dtypes."""
    require(preds.is_floating_point(), "floating", "preds", preds.dtype)
    return preds.float() if preds.dtype in (torch.float16, torch.bfloat16) else preds


STEPS = 100
"""The maximum number of Newton steps. About ten are needed if there is a finite minimum."""


class Expansion(NamedTuple):
    """The value and the first two derivatives of a function of P variables at a point, float64."""

    value: Tensor
    """The value, a scalar."""
    gradient: Tensor
    """The gradient (P,)."""
    hessian: Tensor
    """The Hessian (P, P), positive semidefinite."""


def minimize(expand: Callable[[Tensor], Expansion], start: Tensor) -> Tensor | None:
    """Minimize a convex function by Newton's method from ``start`` (P,); return the minimum (P,), or None if not found.

    ``expand`` returns the value and the derivatives of the function at a point (P,). The null space of the Hessian must
    be the same at all points; the search does not move along this space. The search ends when a step is small. A small
    gradient is no sign of a minimum: without a finite minimum, the gradient of a cross entropy also vanishes.
    """
    point = start
    here = expand(point)
    curvatures, directions = torch.linalg.eigh(here.hessian)  # curvatures ascend
    basis = directions[:, curvatures > 1e-12 * curvatures[-1]]  # spans the Hessian's range
    for _ in range(STEPS):
        factor, failed = torch.linalg.cholesky_ex(basis.T @ here.hessian @ basis)
        if failed:
            return None
        gradient = (basis.T @ here.gradient).unsqueeze(1)
        step = -basis @ torch.cholesky_solve(gradient, factor).squeeze(1)
        point, here = _search(expand, point, here, step)
        # Newton's method converges quadratically: the remaining error is far smaller than the last step.
        if step.abs().amax() <= 1e-7 * (1 + point.abs().amax()):
            return point
    return None


def _search(
    expand: Callable[[Tensor], Expansion], point: Tensor, here: Expansion, step: Tensor
) -> tuple[Tensor, Expansion]:
    """Halve ``step`` until the function decreases enough (Armijo's rule); return the new point and its `Expansion`."""
    slope = here.gradient @ step
    size = 1.0
    there = expand(point + step)
    if not -slope > 1e-12 * (1 + here.value):  # rounding hides the decrease
        return point + step, there
    # A value of NaN, after a step that is far too long, is not <= either.
    while size > 1e-9 and not there.value <= here.value + 1e-4 * size * slope:
        size /= 2
        there = expand(point + size * step)
    return point + size * step, there


class TemperatureScaling(nn.Module):
    r"""Divide logits by the temperature that minimizes the cross entropy on held-out samples.

    .. math:: \min_{T > 0} -\frac{1}{N} \sum_n \log \mathrm{softmax}(z_n / T)_{y_n}

    A temperature above 1 corrects overconfidence. The most probable class does not change. The temperature is 1 before
    `fit`. Fit on samples unseen in training. For probabilities, use their logarithms as logits.

    References:
        Guo, Pleiss, Sun, Weinberger: On calibration of modern neural networks, ICML 2017, Section 4.2.

    Example:
        >>> logits = torch.tensor([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
        >>> calibration = TemperatureScaling().fit(logits, torch.tensor([0, 0, 1, 1]))
        >>> calibration(logits).softmax(dim=1)[0]  # three of four are right
        tensor([0.7500, 0.2500])
    """

    temperature: Tensor
    """The temperature, a float64 scalar above 0."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("temperature", torch.ones((), dtype=torch.float64))

    def forward(self, preds: Tensor) -> Tensor:
        """Return calibrated logits in the shape and dtype of ``preds``, but float32 for 16-bit types.

        Raises:
            ValueError: If ``preds`` is not floating point.
        """
        scores = upcast_half(preds)
        return scores / self.temperature.to(scores.dtype)

    def fit(self, preds: Tensor, target: Tensor) -> Self:
        """Set the temperature to its optimum, computed in float64, or to 1 if there is no optimum; return self.

        Args:
            preds: ``(N, C)`` or ``(N, C, ...)`` logits, finite.
            target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``.

        Raises:
            ValueError: If an argument breaks its rule above.

        Warns:
            CalibrationWarning: If no temperature is optimal (finite and above 0); the message has the reason.
        """
        temperature = _fit_temperature(labelled_logits(preds, target))
        if isinstance(temperature, str):  # the reason that there is none
            warn(
                f"The temperature is 1, because {temperature}.",
                CalibrationWarning,
                stacklevel=2,
            )
            temperature = 1.0
        self.temperature.fill_(temperature)
        return self


def _fit_temperature(samples: LabelledLogits) -> float | str:
    """Return the optimal temperature, or a message that says why no temperature is optimal."""
    # The fit is the same for logits of any size: they are divided by their spread, and so is the temperature.
    centred = samples.logits - samples.logits.mean(dim=1, keepdim=True)
    spread = centred.abs().mean()
    if spread == 0:
        return "the logits are the same for all classes: they are uninformative"
    unit = LabelledLogits(centred / spread, samples.target)
    true = unit.true_class_values(unit.logits)
    if (true >= unit.logits.amax(dim=1)).all():
        return "every sample is classified correctly: the optimal temperature is 0"
    if true.mean() <= 0:
        reason = "the logits of the true classes are on average not above those of the other classes"
        return f"{reason}: the scores are reversed or uninformative, and the optimal temperature is infinite"
    # The cross entropy is convex in the inverse temperature, not in the temperature.
    inverse = minimize(lambda point: _expand_temperature(unit, point), centred.new_zeros(1))
    if inverse is None:
        return f"{STEPS} Newton steps found no finite optimum: almost all samples are classified correctly"
    return (spread / inverse).item()


def _expand_temperature(samples: LabelledLogits, inverse_temperature: Tensor) -> Expansion:
    """Compute the mean cross entropy of ``samples`` and its derivatives at ``inverse_temperature`` (1,)."""
    log_probs = (inverse_temperature * samples.logits).log_softmax(dim=1)
    probs = log_probs.exp()
    true = samples.true_class_values(samples.logits)
    expected = (probs * samples.logits).sum(dim=1, keepdim=True)
    variance = (probs * (samples.logits - expected).square()).sum(dim=1).mean()
    slope = (expected.squeeze(1) - true).mean()
    return Expansion(
        -samples.true_class_values(log_probs).mean(),
        slope.reshape(1),
        variance.reshape(1, 1),
    )


class VectorScaling(nn.Module):
    r"""Multiply the logit of each class by a scale and add a bias, to minimize the cross entropy on held-out samples.

    .. math:: \min_{w, b} -\frac{1}{N} \sum_n \log \mathrm{softmax}(w \odot z_n + b)_{y_n}

    The biases can also correct for class frequencies that differ from training, so the most probable class can change.
    Before `fit`, the scales are 1 and the biases 0. With few samples of a class, `TemperatureScaling` is safer.

    Args:
        num_classes: The number C of classes, at least 2.

    Raises:
        ValueError: If there are fewer than two classes.

    References:
        Guo, Pleiss, Sun, Weinberger: On calibration of modern neural networks, ICML 2017, Section 4.2.

    Example:
        >>> logits = torch.tensor([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [0.0, 4.0]])
        >>> calibration = VectorScaling(num_classes=2).fit(logits, torch.tensor([0, 0, 1, 1, 0]))
        >>> calibration(logits)[[0, 3]].softmax(dim=1)
        tensor([[0.6667, 0.3333],
                [0.5000, 0.5000]])
    """

    scale: Tensor
    """The scale of each class, ``(C,)``, float64."""
    bias: Tensor
    """The bias of each class, ``(C,)``, float64; fitted biases sum to 0."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        check_num_classes(num_classes)
        self.num_classes = num_classes
        self.register_buffer("scale", torch.ones(num_classes, dtype=torch.float64))
        self.register_buffer("bias", torch.zeros(num_classes, dtype=torch.float64))

    def forward(self, preds: Tensor) -> Tensor:
        """Return calibrated logits in the shape and dtype of ``preds``, but float32 for 16-bit types.

        Raises:
            ValueError: If ``preds`` is not floating point of shape ``(N, C)`` or ``(N, C, ...)``.
        """
        scores = upcast_half(preds)
        has_classes = preds.ndim > 1 and preds.shape[1] == self.num_classes
        require(has_classes, "class_dimension", "preds", preds, classes=self.num_classes)
        # To be broadcast over (N, C, ...).
        per_class = (self.num_classes,) + (1,) * (preds.ndim - 2)
        scale = self.scale.to(scores.dtype).reshape(per_class)
        bias = self.bias.to(scores.dtype).reshape(per_class)
        return scores * scale + bias

    def fit(self, preds: Tensor, target: Tensor) -> Self:
        """Set the scales and biases to their optimum, computed in float64, and return self.

        Without a finite optimum, the scales become 1 and the biases 0, with a warning. Arguments and errors are those
        of `TemperatureScaling.fit`.
        """
        fitted = _fit_vector(labelled_logits(preds, target, self.num_classes))
        if isinstance(fitted, str):
            warn(
                f"The scales are 1 and the biases 0, because {fitted}.",
                CalibrationWarning,
                stacklevel=2,
            )
            fitted = torch.ones_like(self.scale), torch.zeros_like(self.bias)
        scale, bias = fitted
        self.scale.copy_(scale)
        self.bias.copy_(bias)
        return self


def _fit_vector(samples: LabelledLogits) -> tuple[Tensor, Tensor] | str:
    """Return the optimal scales (C,) and biases (C,), or a message that says why no finite values are optimal."""
    logits, target = samples
    classes = logits.shape[1]
    missing = (target.bincount(minlength=classes) == 0).nonzero().flatten().tolist()
    if missing:
        return f"no sample has the label {missing[0]}: its optimal bias is -inf"
    centre = logits.mean(dim=0)
    spread = logits.std(dim=0, correction=0)
    spread = torch.where(spread > 0, spread, 1.0)  # constant logits stay constant
    unit = LabelledLogits((logits - centre) / spread, target)
    optimum = minimize(
        lambda point: _expand_vector(unit, point), logits.new_zeros(2 * classes)
    )
    if optimum is None:
        reason = f"{STEPS} Newton steps found no finite optimum"
        return f"{reason}: scaled logits separate the classes without error, or almost so"
    # Undo the standardization; a constant added to all biases has no effect, so they are made to sum to 0.
    scale = optimum[:classes] / spread
    bias = optimum[classes:] - scale * centre
    return scale, bias - bias.mean()


def _expand_vector(samples: LabelledLogits, point: Tensor) -> Expansion:
    """Compute the mean cross entropy and its derivatives at ``point`` (2 C,): C scales, then C biases."""
    logits, target = samples
    rows, classes = logits.shape
    log_probs = (logits * point[:classes] + point[classes:]).log_softmax(dim=1)
    probs = log_probs.exp()
    wrong = probs - torch.nn.functional.one_hot(target, classes)
    gradient = torch.cat([(wrong * logits).mean(dim=0), wrong.mean(dim=0)])
    # The Hessian of a row is diag(p) - p p^T in the logits of the classes, by the chain rule in scales and biases.
    by_scales = (probs * logits.square()).mean(dim=0).diag()
    mixed = (probs * logits).mean(dim=0).diag()
    by_biases = probs.mean(dim=0).diag()
    diagonal = torch.cat(
        [torch.cat([by_scales, mixed], dim=1), torch.cat([mixed, by_biases], dim=1)]
    )
    products = torch.cat([probs * logits, probs], dim=1)
    hessian = diagonal - products.T @ products / rows
    return Expansion(-samples.true_class_values(log_probs).mean(), gradient, hessian)


def make_scaling(
    method: ScalingMethod, num_classes: int
) -> TemperatureScaling | VectorScaling:
    """Create the scaling module that ``method`` names, not fitted yet."""
    return TemperatureScaling() if method == "temperature" else VectorScaling(num_classes)
