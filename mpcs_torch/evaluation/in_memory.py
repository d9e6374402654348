"""Evaluate classifiers in one call, from rows in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from mpcs_torch.concern import ConcernRange, ConcernSpec
from mpcs_torch.errors import InvalidValueError
from mpcs_torch.evaluation.chosen import Metrics
from mpcs_torch.evaluation.classifier_scores import ClassifierScores
from mpcs_torch.evaluation.decision_curve import DecisionCurves, curve_scale
from mpcs_torch.evaluation.decision_numbers import decision_numbers
from mpcs_torch.evaluation.evaluation import MODEL, Evaluation, GroupsByColumn, RowValues
from mpcs_torch.evaluation.result import Result
from mpcs_torch.evaluation.rows import (
    Prevalence,
    as_numbers,
    check_order,
    class_weights,
    column_names,
    dimensions,
    is_decisions,
)
from mpcs_torch.evaluation.units import Combine, DecisionUnits
from mpcs_torch.functional.inputs.arrays import as_tensor
from mpcs_torch.functional.inputs.decisions import is_class


def evaluate(
    preds: RowValues | Mapping[str, RowValues],
    target: RowValues,
    *,
    concern: ConcernSpec | ConcernRange | None = None,
    metrics: Metrics | None = None,
    groups: GroupsByColumn | None = None,
    clusters: Sequence[object] | Tensor | GroupsByColumn | None = None,
    weights: Sequence[float] | Tensor | None = None,
    frequencies: Sequence[int] | Tensor | None = None,
    prevalence: Prevalence | None = None,
    unit: Sequence[object] | Tensor | None = None,
    combine: Combine = "mean",
    costs: Tensor | None = None,
    ignore_index: int | None = None,
    class_names: Sequence[str] | int | None = None,
    settings: Mapping[str, Any] | None = None,
    intervals: bool = True,
) -> Result[ClassifierScores]:
    """Evaluate one or several classifiers on the same rows: metrics with intervals, values by group, and comparisons.

    Args:
        preds: ``(N, C)`` probabilities or ``(N,)`` decisions of a model. If samples have several positions, as images
            have pixels, ``(N, C, ...)`` or ``(N, H, W)``: each position is a row, and **each sample is a cluster**,
            unless ``clusters`` are given; the other arguments are of samples. For several models: a dictionary by model
            name. Decisions are names, with "refer" for a referral, or the integers that a `DecisionRule` returns: class
            indices, numbers from C for coarse answers (sets of classes), and -1 for a referral. Arguments of shape
            (N, C) may be tensors, arrays, or data frames with a column named after each class, in any order.
        target: ``(N,)`` or ``(N, ...)`` classes, as integers or names, or ``(N, C)`` soft labels from 0 to 1, the
            degrees of truth. For metrics that count classes, such as those of a concern, soft labels must be the shares
            of annotators for each class. Shares must sum to 1, up to rounding to two decimals, and are divided by their
            sum.
        concern: The cost of each kind of error. With a `ConcernRange`, values are computed at its middle costs, and
            `Result.over_costs` bounds the mean cost over the whole range.
        metrics: A list of names (see `mpcs metrics`) and of Metrics, from this package, from torchmetrics or your own.
            Your own Metrics take probabilities (N, C), or decisions (N,) if there are no probabilities, and the target.
            Or a dictionary from names to metrics, which may also contain functions of `Rows`. Default: all registered
            metrics that suit the labels.
        groups: ``(N,)`` the name of the group of each row, by column, such as ``{"site": sites}``.
        clusters: ``(N,)`` the name of the cluster of each row, such as a patient. Rows of a cluster are dependent. A
            dictionary of two columns, such as ``{"patient": patients, "reader": readers}``, stands for crossed
            clusters: every reader may read all patients.
        weights: ``(N,)`` numbers of at least 0, the weight of each row, such as 1 / its sampling probability. Intervals
            assume that weights are exact, and take the effective sample size as the number of rows.
        frequencies: ``(N,)`` whole numbers from 1: the number of independent rows that each row stands for. Copies of a
            sample with positions, or of a row in a cluster, are in the same cluster.
        prevalence: ``(C,)``, or by class name: the share of each class where the model is used. All rows of a class
            get the same weight, so that classes have these shares. Use it if severe cases are over-represented.
        unit: ``(N,)`` names of the units of decision, such as patients. The rows of a unit are combined into one
            row before anything is evaluated; they must have the same groups, clusters, weights and frequencies.
        combine: The rule that combines the rows of a unit. ``"mean"``: the mean of their probabilities; their labels
            must agree. ``"worst"``: the probability of "this class or a worse one" is the highest of any row; the label
            and the decision are the worst of any row. Class A is worse than B if mistaking A for B costs more than the
            reverse; if both cost the same, the later class is worse. Or a function that gets the probabilities of the n
            rows of a unit, ``(n, C)``, and returns those of the unit, ``(C,)``. The function also gets the labels and
            the decisions of these rows, as one-hot probabilities.
        costs: ``(N, C)`` finite numbers: the cost of deciding for each class, if it differs from row to row, such as an
            amount of money. Gains are negative costs. Or ``(N, C, C)``, by true class: row, true class, decision, as
            decision rules take them (`mpcs_torch.functional.costs_if_wrong`).
        ignore_index: The label of rows, such as pixels, to leave out.
        class_names: The names of the C classes, or C. Default: the names in the concern or data frame, else 0, 1, ...
        settings: Further settings for the metrics that have them, such as ``k`` and ``t`` of MPCS.
        intervals: Whether to compute intervals and compare models.

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
        raise InvalidValueError(
            "needs", "combine", combine, other="unit, the name of the unit of each row"
        )
    if isinstance(preds, Mapping) and not preds:
        raise InvalidValueError("not_empty", "preds")
    by_model = preds if isinstance(preds, Mapping) else {MODEL: preds}
    first = next(iter(by_model.values()))
    check_order(first, target)
    is_decided = is_decisions(first)
    has_positions = dimensions(first) > 2
    if class_names is None and is_decided:
        if concern is None:
            raise InvalidValueError("names_of_decisions", "class_names")
        class_names = concern.classes
    if class_names is None:
        class_names = _guess_classes(first, concern)
    refers = False
    if is_decided:
        names = class_names
        if isinstance(names, int):
            names = [str(label) for label in range(names)]
        spec = concern.middle if isinstance(concern, ConcernRange) else concern
        numbers = decision_numbers(names, () if spec is None else spec.answers)
        for decisions in by_model.values():
            of_one_class = is_class(as_numbers("preds", decisions, numbers), len(names))
            refers = refers or not of_one_class.all()
    # Labels are soft if they have a number for each class.
    dimensions_of_soft = dimensions(first) if has_positions and not is_decided else 2
    evaluation = Evaluation(
        class_names,
        concern=concern,
        metrics=metrics,
        settings=settings,
        refers=refers,
        is_soft=dimensions(target) == dimensions_of_soft,
        is_decided=is_decided,
        is_weighted=weights is not None or prevalence is not None,
        has_costs=costs is not None,
        has_positions=has_positions,
        intervals=intervals,
    )
    is_clustered = clusters is not None or has_positions
    classes = len(evaluation.class_names)
    notes = list[str]()
    rows = evaluation._checked_rows(
        by_model, target, groups, clusters, weights, costs, frequencies, ignore_index
    )
    if unit is not None:
        size = len(next(iter(rows.values())).ids)
        units = DecisionUnits.of(unit, combine, concern, classes, size)
        rows = {
            name: units.combined(each, classes, is_clustered=is_clustered)
            for name, each in rows.items()
        }
        evaluation.has_units = True
        notes.append(units.note(evaluation.class_names))
    if prevalence is not None:
        repeated = next(iter(rows.values())).repeated(is_clustered=is_clustered)
        of_classes = class_weights(repeated, prevalence, evaluation.class_names)
        rows = {name: each.weighted_by(of_classes) for name, each in rows.items()}
    columns: tuple[str, ...] = ("clusters",)
    if clusters is None:
        columns = evaluation.default_clusters
    if isinstance(clusters, Mapping):
        columns = tuple(map(str, clusters))
    evaluation.add_all(rows, columns)
    result = evaluation.result()
    # The weights of class shares are known, so only those of rows are open.
    return replace(
        result, notes=[*notes, *result.notes], has_open_weights=weights is not None
    )


def decision_curves(
    preds: RowValues | Mapping[str, RowValues],
    target: Tensor,
    *,
    of: str,
    concern: ConcernSpec | ConcernRange,
    groups: GroupsByColumn | None = None,
    clusters: Sequence[object] | Tensor | None = None,
    weights: Sequence[float] | Tensor | None = None,
) -> DecisionCurves:
    """Compute the net benefit of models over thresholds, beside acting on all samples and on none.

    Args:
        preds: ``(N, C)`` probabilities of a model, or a dictionary of several by name.
        target: ``(N,)`` integer class indices.
        of: The class to act on, or a group of classes of the concern.
        concern: Costs, which imply the threshold f / (m + f): missing a sample costs m, and acting on one needlessly f.
            Curves go from a quarter to four times its odds. A `ConcernRange`, or several classes, may imply a range.
        groups: As in `evaluate`.
        clusters: As in `evaluate`.
        weights: As in `evaluate`.

    Raises:
        ValueError: If an argument breaks its rule above, or if one of the two errors costs nothing.

    References:
        Vickers, Elkin: Decision Curve Analysis: A Novel Method for Evaluating Prediction Models, Medical Decision
        Making 26, 2006.

    Example:
        >>> import torch
        >>> generator = torch.Generator().manual_seed(0)
        >>> target = (torch.rand(500, generator=generator) < 0.2).long()
        >>> malignant = torch.sigmoid(torch.randn(500, generator=generator) + 2 * target - 2.4)
        >>> skin = ConcernSpec(["benign", "malignant"], weights=[[0, 1], [9, 0]])
        >>> curves = decision_curves(torch.stack([1 - malignant, malignant], 1), target, of="malignant", concern=skin)
        >>> print(curves.sentences()[0][:44])
        At thresholds of 4.2 to 31 % (of 2.7 to 31 %
    """
    scale = curve_scale(of, concern)
    rows: dict[str, Any] = {"groups": groups, "clusters": clusters, "weights": weights}
    metrics = scale.metrics()
    found = evaluate(preds, target, metrics=metrics, class_names=concern.classes, **rows)
    return DecisionCurves(scale, found.models, found.groups)


def _guess_classes(
    preds: Any, concern: ConcernSpec | ConcernRange | None
) -> list[str] | int:
    """Return a data frame's column names if there is no concern and not all are numbers, else the number of columns."""
    names = column_names(preds) if concern is None else []
    if all(name.isdigit() for name in names):
        return as_tensor(preds, "preds").shape[1]
    return names
