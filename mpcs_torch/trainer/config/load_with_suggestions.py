"""Load run configs, and report all errors together, with their places and suggestions for unknown keys."""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import ValidationError

from mpcs_torch.concern.checks import MAX_PROBLEMS
from mpcs_torch.errors import did_you_mean, quoted, shown
from mpcs_torch.io.local_paths import local_path
from mpcs_torch.io.packaged import packaged_file
from mpcs_torch.io.yaml_files import MAX_DEPTH, Steps, parse_yaml, read_yaml_file
from mpcs_torch.trainer.config.parts import PartConfig, Section
from mpcs_torch.trainer.config.sections import ConfigError, RunConfig
from mpcs_torch.trainer.config.trusted_code import check_trusted, import_paths


def load_config(path: str | Path, overrides: Sequence[str] = (), *, trust_code: bool = True) -> RunConfig:
    """Read a run config from YAML, and apply overrides like ``training.batch_size=32``, whose values are YAML.

    Modules that the config names by import path are imported. This runs their code: load only configs that you trust.

    Args:
        path: The file of the config.
        overrides: Changed settings, in the form KEY=VALUE.
        trust_code: Whether to run the code that the file names. If not, the file may only name code if it is the config
            of a run that this user started.

    Raises:
        ConfigError: If the config or an override has errors. The message lists the errors, with the lines of the file.
        UntrustedCodeError: If the file names code that is not trusted. Nothing was imported.
    """
    path = local_path(path, "path")
    try:
        document = read_yaml_file(path)
    except (OSError, ValueError) as error:
        reason = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{path}: {reason}") from None
    if not trust_code:
        check_trusted(path, document.value)
    tree = deepcopy(document.value)
    if not isinstance(tree, dict):
        raise ConfigError(f"{path}: must be a mapping with the keys {', '.join(RunConfig.model_fields)}")
    problems = [problem for override in overrides if (problem := _apply_override(tree, override))]
    overridden = tuple(override.partition("=")[0] for override in overrides)

    def place(steps: Steps) -> str:
        dotted = ".".join(map(str, steps))
        if any(f"{dotted}.".startswith(f"{key}.") for key in overridden):
            return "override "
        return f"{path}:{document.place(steps)[0]}: "

    return _validated(tree, path, place, problems)


def load_packaged_config(path: str, overrides: Sequence[str] = ()) -> RunConfig:
    """Load ``configs/<path>.yaml`` of the package as a run config; ``path`` is ``experiments/demo``, for example."""
    kind, _, name = path.partition("/")
    return load_config(packaged_file(kind, name), overrides)


def dump_config(config: RunConfig) -> str:
    """Return the config with all defaults as YAML that `load_config` reads."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)


def changed_keys(saved: str, config: RunConfig) -> list[str]:
    """Return the dotted keys that differ between ``saved`` (YAML text, with defaults filled in) and ``config``.

    If ``saved`` names other code than ``config``, return only these keys, and do not import that code.
    """
    trees = [parse_yaml(text) for text in (saved, dump_config(config))]
    return _differences(*map(import_paths, trees)) or _differences(
        *(flat(RunConfig.model_validate(tree).model_dump()) for tree in trees)
    )


def _differences(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    return [key for key in dict.fromkeys([*old, *new]) if old.get(key) != new.get(key)]


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the settings of the nested mapping ``tree`` by dotted key, such as ``training.batch_size``."""
    settings: dict[str, Any] = {}
    for key, value in tree.items():
        settings |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return settings


def _validated(tree: dict[str, Any], path: Path, place: Callable[[Steps], str], problems: list[str]) -> RunConfig:
    """Return ``tree`` as a config. If there are ``problems``, or errors in ``tree``, raise a `ConfigError` with all."""
    cause = None
    try:
        config = RunConfig.model_validate(tree, context={"folder": path.parent})
        if not problems:
            return config
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        problems = [*problems, *(_line(place, detail["loc"], detail["msg"]) for detail in details[: MAX_PROBLEMS + 1])]
        cause = next((origin.__cause__ for detail in details if (origin := detail.get("ctx", {}).get("error"))), None)
    more = ["... and more"] if len(problems) > MAX_PROBLEMS else []
    raise ConfigError("\n".join([*problems[:MAX_PROBLEMS], *more])) from cause


def _line(place: Callable[[Steps], str], steps: Steps, message: str) -> str:
    if message == "Extra inputs are not permitted":
        hint = _hint(str(steps[-1]), steps[:-1])
        message = f"unknown key; {hint}" if hint else "unknown key"
    where = shown(".".join(str(step) for step in steps if not re.search(r"\W", str(step))))  # not the cases of a union
    where = f"{place(steps)}{where}: " if where else place(steps)
    return "\n".join(f"{where}{line}" for line in message.removeprefix("Value error, ").splitlines())


def _hint(key: str, steps: Steps) -> str:
    """Return a hint on the unknown ``key`` at ``steps``: its section or a similar key; empty if there is neither."""
    others = [section for section in _sections_below(RunConfig) if key in _known_keys(section)]
    if len(others) == 1 and key not in _known_keys(steps):
        place = ".".join(others[0])
        return f"{key} belongs under {place}" if place else f"{key} belongs at the top level"
    return did_you_mean(key, _known_keys(steps) - {key})


def _sections_below(section: type[Section], steps: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the keys that lead to ``section`` and to each section in it."""
    yield steps
    for name, field in section.model_fields.items():
        for inner in _sections_in(field.annotation):
            yield from _sections_below(inner, (*steps, name))


def _known_keys(steps: Steps) -> set[str]:
    """Return the keys that a config may have at ``steps``, including the arguments of all built-in parts there."""
    sections: list[type[Section]] = [RunConfig]
    for step in steps:
        inner = [
            _sections_in(each.model_fields[str(step)].annotation) for each in sections if step in each.model_fields
        ]
        sections = list(chain.from_iterable(inner)) or sections
    keys = {key for section in sections for key in section.model_fields}
    makers = [maker for each in sections if issubclass(each, PartConfig) for maker in each.registry.values()]
    parameters = [parameter for maker in makers for parameter in inspect.signature(maker).parameters.values()]
    return keys | {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}


def _sections_in(annotation: Any) -> list[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    return [section for each in get_args(annotation) for section in _sections_in(each)]


def _apply_override(tree: dict[str, Any], override: str) -> str | None:
    text_of_override = quoted(override)
    dotted, separator, text = override.partition("=")
    *parents, key = dotted.split(".")
    if not separator or not all([*parents, key]):
        return f"override {text_of_override} must read dotted.key=value"
    if len(parents) > MAX_DEPTH:
        return f"override {text_of_override}: nested more than {MAX_DEPTH} deep"
    for parent in parents:
        tree = tree.setdefault(parent, {})
        if not isinstance(tree, dict):
            return f"override {text_of_override}: {shown(parent)} has a value, not keys"
    try:
        tree[key] = parse_yaml(text)
    except ValueError as error:
        return f"override {text_of_override}: {error}"
    return None
