"""The figure of a study."""

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from mpcs_torch.plots.study import Point, accuracy_against_danger
from mpcs_torch.study.results import ACCURACY_ALLOWANCE, Result, Study, deciding
from mpcs_torch.study.tasks import Way


def study_figure(study: Study, results: Sequence[Result]) -> Figure:
    """Draw each method that decides for the most probable class, and the decision factors of baseline and best loss."""
    lines = {}
    for arm in (study.baseline, replace(study.recipe, way=Way())):
        line = [study.result(decided) for decided in deciding(arm, calibrated=True)]
        lines[f"{arm.method}, decision factors 1 to 0.3"] = [_point(result) for result in line]
    points = {result.arm.title: _point(result) for result in results if result.arm.way.factor == 1}
    baseline = study.result(study.baseline).accuracy
    return accuracy_against_danger(points, lines, baseline_accuracy=baseline, allowance=ACCURACY_ALLOWANCE)


def _point(result: Result) -> Point:
    return result.dangerous, result.accuracy
