"""Accuracy, ClassErrorRates, MacroF1 and MatthewsCorrelation: the Metrics of the functions of the same names."""

from mpcs_torch.functional.quality.confusion import ClassCounts
from mpcs_torch.functional.quality.scores import class_error_rates_of, macro_f1_of, matthews_correlation_of
from mpcs_torch.metrics.quality.confusion import ClassCountMetric


class Accuracy(ClassCountMetric):
    """Compute the share of right decisions; in [0, 1], higher is better.

    Shapes and rules are those of `mpcs_torch.functional.accuracy`.

    Args:
        num_classes: C, at least 2.
        ignore_index: The label of samples to leave out.
        validate_args: Whether to check the values of each batch. Without it, bad values silently give wrong results.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule, and from `compute` if no
            batch was seen. Away from the CPU, `compute` reports bad values.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Accuracy
        >>> Accuracy(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7500, dtype=torch.float64)
    """

    higher_is_better = True
    interval_rule = "bounded"


class ClassErrorRates(ClassCountMetric):
    """Compute, for each class, the share of its samples that are misclassified; in [0, 1], lower is better.

    Shapes and rules are those of `mpcs_torch.functional.class_error_rates`. For arguments and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import ClassErrorRates
        >>> ClassErrorRates(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor([0.0000, 0.0000, 0.5000], dtype=torch.float64)
    """

    higher_is_better = False
    value_of = staticmethod(class_error_rates_of)


class MacroF1(ClassCountMetric):
    """Compute the mean F1 over classes with true or predicted samples; in [0, 1], higher is better.

    It is the same as macro F1 in torchmetrics and scikit-learn; `MacroFScore` is oneDAL's macro F. The equation, shapes
    and rules are those of `mpcs_torch.functional.macro_f1`. For arguments and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import MacroF1
        >>> MacroF1(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7778, dtype=torch.float64)
    """

    higher_is_better = True
    value_of = staticmethod(macro_f1_of)


class MatthewsCorrelation(ClassCountMetric):
    """Compute the multi-class Matthews correlation of decisions and labels; in [-1, 1], higher is better.

    The equation, shapes and rules are those of `mpcs_torch.functional.matthews_correlation`. For arguments and errors
    see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import MatthewsCorrelation
        >>> MatthewsCorrelation(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7000, dtype=torch.float64)
    """

    higher_is_better = True
    value_of = staticmethod(matthews_correlation_of)
    plot_lower_bound = -1.0
    interval_scale = "atanh"

    def averaged_classes(self, sums: ClassCounts) -> None:
        """Return None, because the value is not an average over classes."""
