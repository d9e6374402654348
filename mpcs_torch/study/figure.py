"""The figure of a study."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from mpcs_torch.plots.study import Point, accuracy_against_danger
from mpcs_torch.study.plans import RECIPE
from mpcs_torch.study.results import ACCURACY_ALLOWANCE, Result, Study, deciding


def study_figure(study: Study, results: Sequence[Result]) -> Figure:
    """Draw each method that decides for the most probable class, and decision factors of two: plain and recommended."""
    lines = {}
    for arm in (study.baseline, study.tuned[RECIPE]):
        line = [study.result(decided) for decided in deciding(arm, calibrated=True)]
        lines[f"{arm.method}, decision factors 1 to 0.3"] = [_point(result) for result in line]
    points = {result.arm.title: _point(result) for result in results if result.arm.way.factor == 1}
    baseline = study.result(study.baseline).accuracy
    return accuracy_against_danger(points, lines, baseline_accuracy=baseline, allowance=ACCURACY_ALLOWANCE)


def _point(result: Result) -> Point:
    return result.dangerous, result.accuracy
