"""Find the entry of a metric in the register by its name, or make one from an import path or a Metric."""

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mpcs_torch.errors import InvalidValueError, did_you_mean
from mpcs_torch.io.packaged import import_attribute
from mpcs_torch.metrics.metric_entry import MetricEntry, Takes, identity_of
from mpcs_torch.metrics.named_metrics import (
    BY_NAME,
    OF_CLASS,
    PUBLISHED,
    TAKES,
    WITHOUT_INTERVAL,
)

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from torchmetrics import Metric

RENAMED = {**PUBLISHED, "weighted_error_rate": "misclassification_rate"}
"""The names that users of other versions and libraries may give, and what they are called here."""


def find_entry(text: str) -> MetricEntry:
    """Return the entry with the name ``text``, or create an entry if ``text`` is the import path of a user's `Metric`.

    Raises:
        ValueError: If ``text`` is neither a name of an entry nor an import path of a `Metric`.
    """
    if text in BY_NAME:
        return BY_NAME[text]
    name, _, rest = text.partition("[")
    if name in OF_CLASS and rest.endswith("]"):
        of_class = rest.removesuffix("]")
        return replace(OF_CLASS[name], name=text, of_class=of_class, compared_as=text)
    if ":" in text:
        return entry_of_path(text)
    names = [*BY_NAME, *(f"{name}[CLASS]" for name in OF_CLASS)]
    if text in OF_CLASS:
        suggestion = f"did you mean {text}[CLASS]?"
    elif text in RENAMED:
        suggestion = f"did you mean {RENAMED[text]}?"
    else:
        suggestion = did_you_mean(text, names)
    if suggestion:
        raise InvalidValueError("unknown_metric", "metric", text, suggestion=suggestion)
    raise InvalidValueError("metric_name", "metric", text, names=names)


def entry_of_path(path: str) -> MetricEntry:
    """Create an entry for ``[name=]package.module:Class`` or ``[name=]package.module:Class(setting=value)``.

    The default name is that of the class. A metric class named ``Binary...`` takes the probabilities of class 1, any
    other those of all classes. The value of a setting is a Python literal if it can be parsed as one, otherwise text.

    Raises:
        ValueError: If ``path`` does not name a torchmetrics `Metric`, or the syntax of its settings is invalid.
    """
    from torchmetrics import Metric

    custom_name = ""
    if "=" in path.partition(":")[0]:
        custom_name, _, path = path.partition("=")
    class_path, _, _ = path.removesuffix(")").partition("(")
    metric = import_attribute(class_path)
    if not (isinstance(metric, type) and issubclass(metric, Metric)):
        raise InvalidValueError("metric_class", "path", path, found=metric)
    settings = _settings_of_path(path, class_path)
    name = custom_name.strip() or metric.__name__
    return _further_entry(name, metric, _takes_of(metric), settings=settings)


def _settings_of_path(path: str, class_path: str) -> dict[str, Any]:
    """Return the settings in brackets after the ``class_path``; none if ``path`` has no brackets."""
    if path == class_path:
        return {}
    in_brackets = path.removeprefix(class_path)
    arguments = in_brackets.removeprefix("(").removesuffix(")")
    has_brackets = in_brackets == f"({arguments})"
    settings = dict[str, Any]()
    for pair in arguments.split(","):
        setting, _, value = pair.partition("=")
        settings[setting.strip()] = _parse_value(value.strip())
    # Empty brackets have one setting, whose name is empty.
    if not has_brackets or not all(setting.isidentifier() for setting in settings):
        raise InvalidValueError("metric_settings", "settings", path)
    return settings


def entry_of_metric(metric: "Metric", name: str | None = None) -> MetricEntry:
    """Create a `MetricEntry` for a metric instance; the default name is the name of its class."""
    kind = type(metric)
    takes = _takes_of(kind)
    if takes == "probabilities" and getattr(metric, "from_logits", False):
        takes = "log_probabilities"  # log-probabilities are also logits
    name = kind.__name__ if name is None else name
    return _further_entry(name, kind, takes, made=metric)


def _further_entry(
    name: str, kind: "type[Metric]", takes: Takes, **fields: Any
) -> MetricEntry:
    """Create an entry, with more ``fields``, for a Metric that no name of the register stands for."""
    return MetricEntry(
        name,
        kind,
        takes,
        compared_as=name,
        no_interval=WITHOUT_INTERVAL.get(identity_of(kind), ""),
        **fields,
    )


def _takes_of(metric: "type[Metric]") -> Takes:
    """Return the kind of input of a registered metric; guess that of others by the name (``Binary...``)."""
    default: Takes = "probabilities"
    if metric.__name__.startswith("Binary"):
        default = "positive"
    return TAKES.get(identity_of(metric), default)


def _parse_value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
