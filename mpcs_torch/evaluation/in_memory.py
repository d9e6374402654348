"""Evaluate rows that are in memory, in one call."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from mpcs_torch.concern import ConcernRange, ConcernSpec
from mpcs_torch.concern.checks import decision_numbers
from mpcs_torch.evaluation.chosen import Metrics
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.crossed import crossed, crossed_rows
from mpcs_torch.evaluation.evaluation import MODEL, Evaluation, Groups, Predictions
from mpcs_torch.evaluation.result import Result
from mpcs_torch.evaluation.rows import (
    Prevalence,
    check_order,
    class_weights,
    is_decisions,
    numbers_of,
)
from mpcs_torch.evaluation.units import Combine, DecisionUnits
from mpcs_torch.functional.inputs.arrays import as_tensor


def evaluate(
    preds: Predictions | Mapping[str, Predictions],
    target: Predictions,
    *,
    concern: ConcernSpec | ConcernRange | None = None,
    metrics: Metrics | None = None,
    groups: Groups | None = None,
    clusters: Sequence[object] | Tensor | Groups | None = None,
    weights: Sequence[float] | Tensor | None = None,
    frequencies: Sequence[int] | Tensor | None = None,
    prevalence: Prevalence | None = None,
    unit: Sequence[object] | Tensor | None = None,
    combine: Combine = "mean",
    costs: Tensor | None = None,
    class_names: Sequence[str] | int | None = None,
    settings: Mapping[str, Any] | None = None,
    intervals: bool = True,
) -> Result[ClassifierScores]:
    """Evaluate one or several classifiers on the same rows: all metrics, with intervals, by group, and compared.

    Args:
        preds: ``(N, C)`` probabilities, of one model or by model: tensors or arrays. Or ``(N,)`` decisions, such as
            those of a `DecisionRule`: class indices, C and above for coarse answers, -1 for a referral; or their names,
            and "refer".
        target: ``(N,)`` classes, as integers or by name, or ``(N, C)`` soft labels: degrees of truth; or, with a
            concern or named metrics of classes, the shares of annotators, with the sum 1.
        concern: Which errors matter; a `ConcernRange` as for `Evaluation`.
        metrics: Names of `mpcs metrics`, Metrics of this package, of torchmetrics or of your own, which take
            probabilities (N, C), or decisions (N,) if there are no others, and the target; or a dictionary of these,
            and of functions of `Rows`, by name. Default: all of the register that the labels allow.
        groups: ``(N,)`` names of the group of each row, by column, such as ``{"site": sites}``.
        clusters: ``(N,)`` names of what rows share, such as the patient: these rows are not independent. Two columns by
            name, such as ``{"patient": patients, "reader": readers}``, are crossed: every reader may read all patients.
        weights: ``(N,)`` at least 0: how much each row counts; see `Evaluation.update`.
        frequencies: ``(N,)`` whole numbers from 1: how many independent rows each stands for.
        prevalence: ``(C,)``, or by name, the share of each class where the model is used, if the rows have other ones,
            such as those of a test set with more severe cases: rows of a class are weighted alike.
        unit: ``(N,)`` names of what is decided about, such as patients: the rows of each become one row before anything
            is evaluated, and rows of a unit must have the same groups, clusters, weights and frequencies.
        combine: How rows of a unit become one. ``"mean"``: by the mean of probabilities, and their labels must agree.
            ``"worst"``: each class or a worse one is as probable as in the row where that is most probable, and labels
            and decisions become the worst of them; a class is worse than another if mistaking it for that costs more
            than the reverse, else if it comes later. Or a function, ``(n, C) -> (C,)``, by which labels are combined,
            too, as if they were certain.
        costs: ``(N, C)`` costs of deciding for each class, where they differ from row to row: see `Evaluation.update`.
        class_names: The names of the C classes, or C. Default: those of the concern, or numbers.
        settings: Further settings for the metrics that have them, such as ``k`` and ``t`` of MPCS.
        intervals: Whether values get intervals and models are compared.

    Raises:
        ValueError: If a shape, a dtype or a value breaks its rule above.

    Example:
        >>> import torch
        >>> generator = torch.Generator().manual_seed(0)
        >>> target = torch.randint(3, (300,), generator=generator)
        >>> probs = {
        ...     name: (torch.randn(300, 3, generator=generator) + skill * torch.eye(3)[target]).softmax(1)
        ...     for name, skill in (("small", 1.0), ("large", 3.0))
        ... }
        >>> result = evaluate(probs, target, metrics=["accuracy", "misclassification_rate"])
        >>> print(result.comparisons[0].better, f"{result.value('accuracy', model='large'):.3f}")
        large 0.963
    """
    if unit is None and combine != "mean":
        raise ValueError(
            f"combine must be given with unit, the name of the unit of each row, but got {combine!r} alone."
        )
    if isinstance(clusters, Mapping):
        arguments: dict[str, Any] = {"concern": concern, "metrics": metrics, "groups": groups, "weights": weights}
        arguments |= {"prevalence": prevalence, "class_names": class_names, "settings": settings, "unit": unit}
        arguments |= {"frequencies": frequencies, "combine": combine, "costs": costs}
        arguments |= {"intervals": intervals}
        ways = (evaluate(preds, target, clusters=each, **arguments) for each in crossed_rows(clusters))
        return crossed(ways, clusters)
    if isinstance(preds, Mapping) and not preds:
        raise ValueError("preds must hold at least one model, but is empty.")
    by_model = preds if isinstance(preds, Mapping) else {MODEL: preds}
    check_order(first := next(iter(by_model.values())), target)
    is_decided = is_decisions(first)
    if class_names is None and is_decided and concern is None:
        raise ValueError("class_names or concern must be given for decisions, to name the classes.")
    if class_names is None:
        class_names = concern.classes if is_decided and concern is not None else as_tensor(first, "preds").shape[1]
    if is_decided:
        names = [str(label) for label in range(class_names)] if isinstance(class_names, int) else class_names
        spec = concern.middle if isinstance(concern, ConcernRange) else concern
        numbers = decision_numbers(names, () if spec is None else spec.answers)
        by_model = {name: numbers_of("preds", decisions, numbers) for name, decisions in by_model.items()}
    evaluation = Evaluation(
        class_names,
        concern=concern,
        metrics=metrics,
        settings=settings,
        refers=is_decided and any(_refers(decisions, len(names)) for decisions in by_model.values()),
        is_soft=(target.ndim if isinstance(target, Tensor) else np.ndim(np.asarray(target))) == 2,
        is_decided=is_decided,
        is_weighted=weights is not None or prevalence is not None,
        has_costs=costs is not None,
        intervals=intervals,
    )
    rows, notes = evaluation._rows_of(by_model, target, groups, clusters, weights, costs, frequencies), list[str]()
    is_clustered = clusters is not None
    if unit is not None:
        units = DecisionUnits.of(
            unit, combine, concern, len(evaluation.class_names), len(next(iter(rows.values())).ids)
        )
        rows = {
            name: units.combined(each, len(evaluation.class_names), is_clustered=is_clustered)
            for name, each in rows.items()
        }
        notes.append(units.note(evaluation.class_names))
    if prevalence is not None:
        repeated = next(iter(rows.values())).repeated(is_clustered=is_clustered)
        of_classes = class_weights(repeated, prevalence, evaluation.class_names)
        rows = {name: each.weighted_by(of_classes) for name, each in rows.items()}
    evaluation._add_all(rows, is_clustered=is_clustered)
    result = evaluation.result()
    return replace(result, notes=[*notes, *result.notes])


def _refers(decisions: Any, classes: int) -> bool:
    """Return whether a decision is none of the classes."""
    return bool(((decisions < 0) | (decisions >= classes)).any())
