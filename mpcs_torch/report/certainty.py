"""Figures of how sure classifiers are: referral by estimated risk, and the errors of two classes."""

import warnings
from collections.abc import Mapping

from torch import Tensor

from mpcs_torch.functional import ReversedScoresWarning, detection_curve, risk_coverage_curve
from mpcs_torch.plots import det_curves, risk_coverage_figure
from mpcs_torch.report.render import Drawing, draw


def draw_referral(risks: Mapping[str, tuple[Tensor, Tensor]], *, counted: str = "dangerous errors") -> Drawing:
    """Draw errors per decided sample against coverage.

    Args:
        risks: By model, the estimated risk of each decision, and whether it is such an error, bool, both ``(N,)``.
        counted: Which errors these are.
    """
    curves = {}
    for name, (risk, is_error) in risks.items():
        curve = risk_coverage_curve(risk, is_error)
        curves[name] = (curve.coverage, curve.risk)
    whole = "; ".join(f"{name}: {100 * wrong.double().mean():.3g} %" for name, (_, wrong) in risks.items())
    return draw(
        risk_coverage_figure(curves, counted=counted),
        f"{counted.capitalize()} per decided sample against coverage. Without referral: {whole}.",
        f"The samples with the highest estimated risk of {'a dangerous' if 'dangerous' in counted else 'an'} error are "
        "referred first.",
    )


def draw_det(trials: Mapping[str, tuple[Tensor, Tensor]], target: str) -> Drawing:
    """Draw the DET curves of models of two classes.

    Args:
        trials: By model, scores and whether the target is true, both ``(N,)``.
        target: The class that is the target.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReversedScoresWarning)  # the curve shows that a model is worse than chance
        curves = {name: detection_curve(scores, labels) for name, (scores, labels) in trials.items()}
    return draw(det_curves(curves, title="DET"), f"DET curves with {target} as the target.", f"Target: {target}.")
