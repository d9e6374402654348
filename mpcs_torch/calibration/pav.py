"""PAV calibration: the best rising map from detection scores to log-likelihood ratios."""

from typing import Any, Self
from warnings import warn

import torch
from torch import Tensor, nn

from mpcs_torch.calibration.fitting import REVERSED, CalibrationWarning, labelled_trials, upcast_half
from mpcs_torch.functional.detection.errors import count_errors, hull_vertices


class PAVCalibration(nn.Module):
    """Map detection scores to natural-log likelihood ratios by isotonic regression (pool adjacent violators, PAV).

    The ratio is the log odds of the isotonic fit to the labels, minus the log odds of targets in the data of the fit.
    On those data its `cllr` is `min_cllr`. Between the scores of two blocks of PAV the fitted probability is
    interpolated linearly; below the lowest and above the highest score it is constant.

    If the lowest scores of the data are all of non-targets, their ratio is -inf, and if the highest are all of targets,
    theirs is +inf: PAV trusts the data fully. A target that then gets -inf has an infinite `cllr`. Use
    `LogisticCalibration` unless there are many trials.

    References:
        Brummer, du Preez: Application-independent evaluation of speaker detection, 2006, Section 6.
        Zadrozny, Elkan: Transforming classifier scores into accurate multiclass probability estimates, KDD 2002.

    Example:
        >>> scores, labels = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]), torch.tensor([0, 1, 0, 0, 1])
        >>> calibration = PAVCalibration().fit(scores, labels)
        >>> calibration(torch.tensor([1.0, 1.5, 3.0, 9.0]))
        tensor([   -inf, -1.2040, -0.2877,     inf])
    """

    scores: Tensor
    """``(K,)``, float64, ascending: the first and the last score of each block."""
    posteriors: Tensor
    """``(K,)``, float64, never falling: the share of targets in the block."""
    prior_log_odds: Tensor
    """Float64 scalar: the log odds of targets in the data of the fit."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scores", torch.empty(0, dtype=torch.float64))
        self.register_buffer("posteriors", torch.empty(0, dtype=torch.float64))
        self.register_buffer("prior_log_odds", torch.zeros((), dtype=torch.float64))
        self.register_load_state_dict_pre_hook(_resize)  # type: ignore[no-untyped-call]

    def forward(self, preds: Tensor) -> Tensor:
        """Return log-likelihood ratios of the shape of ``preds``, in its dtype, or in float32 for half types.

        Raises:
            ValueError: If ``preds`` is not floating point, or the module is not fitted.
        """
        given = upcast_half(preds)
        if not len(self.scores):
            raise ValueError("PAVCalibration must be fitted before it is called: call fit, or load a state_dict.")
        scores = given.to(self.scores.dtype).clamp(self.scores[0], self.scores[-1])
        above = torch.searchsorted(self.scores, scores.contiguous()).clamp(max=len(self.scores) - 1)
        below = (above - 1).clamp(min=0)
        gap = self.scores[above] - self.scores[below]
        share = torch.where(gap > 0, (scores - self.scores[below]) / gap, scores - self.scores[above])
        posterior = torch.lerp(self.posteriors[below], self.posteriors[above], share)
        return (posterior.log() - (-posterior).log1p() - self.prior_log_odds).to(given.dtype)

    def fit(self, preds: Tensor, target: Tensor) -> Self:
        """Fit the isotonic regression of labels on scores. Arguments are those of `LogisticCalibration.fit`.

        Raises:
            ValueError: If a shape, a dtype or a value breaks its rule.

        Warns:
            CalibrationWarning: If all ratios are 0, because the scores are reversed or carry no information.
        """
        counts = count_errors(*labelled_trials(preds, target))
        ends = hull_vertices(counts)  # the edges of the hull are the blocks of PAV
        block = counts.at(ends)
        targets, nontargets = block.misses.diff().double(), -block.false_alarms.diff().double()
        posteriors = targets / (targets + nontargets)
        knots = torch.stack([counts.thresholds[ends[:-1]], counts.thresholds[ends[1:] - 1]], dim=1)
        is_new = torch.stack([torch.ones_like(posteriors, dtype=torch.bool), knots[:, 0] < knots[:, 1]], dim=1)
        self.scores = knots[is_new].to(self.scores)
        self.posteriors = posteriors.unsqueeze(1).expand_as(knots)[is_new].to(self.scores)
        if len(posteriors) == 1:
            warn(f"All ratios are 0, because {REVERSED}.", CalibrationWarning, stacklevel=2)
        self.prior_log_odds = (counts.targets.double().log() - counts.nontargets.double().log()).to(self.scores)
        return self


def _resize(module: nn.Module, state_dict: dict[str, Any], prefix: str, *_: object) -> None:
    """Give the buffers the sizes that they have in a state that is about to be loaded."""
    for name in ("scores", "posteriors"):
        if (saved := state_dict.get(f"{prefix}{name}")) is not None:
            setattr(module, name, module.get_buffer(name).new_empty(saved.shape))
