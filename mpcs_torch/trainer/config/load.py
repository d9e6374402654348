"""Load run configs, report all errors together with their places, and say whether a file may name code to run."""

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from mpcs_torch.concern.checks import MAX_PROBLEMS
from mpcs_torch.errors import CodedError, InvalidValueError, quoted, shown
from mpcs_torch.io.local_paths import local_path
from mpcs_torch.io.packaged import packaged_file
from mpcs_torch.io.yaml_files import Document, Steps, YamlError, parse_yaml, read_yaml_file
from mpcs_torch.trainer.config.sections import ConfigError, RunConfig


class UntrustedCodeError(CodedError, RuntimeError):
    """The config of a run folder names code, which whoever wrote the folder chose, and the user has not trusted it."""


def load_config(
    path: str | Path, overrides: Sequence[str] = (), *, trust_code: bool = True
) -> RunConfig:
    """Read a run config from YAML, and apply overrides like ``training.batch_size=32``, whose values are YAML.

    Modules that the config names by import path are imported. This runs their code: load only configs that you trust.

    Args:
        path: The file of the config.
        overrides: Changed settings, in the form KEY=VALUE.
        trust_code: Whether to run the code that the file names. If not, the file must not name any.

    Raises:
        ConfigError: If the config or an override has errors. The message lists the errors, with the lines of the file.
        UntrustedCodeError: If the file names code that is not trusted. Nothing was imported.
    """
    path = local_path(path, "path")
    try:
        document = read_yaml_file(path)
    except OSError as error:
        raise ConfigError("readable", f"{path}:", reason=error.strerror) from None
    except YamlError as error:
        raise ConfigError("caused_by", f"{path}:", cause=error) from None
    code = import_paths(document.value)
    if code and not trust_code:
        named = [f"{key}: {code_path}" for key, code_path in code.items()]
        names = shown(", ".join(named), 500)
        raise UntrustedCodeError("names_code", f"{path}:", names=names)
    tree = deepcopy(document.value)
    if not isinstance(tree, dict):
        raise ConfigError("keys", f"{path}:", keys=", ".join(RunConfig.model_fields))
    for override in overrides:
        _apply_override(tree, override)
    try:
        return RunConfig.model_validate(tree, context={"folder": path.parent})
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        overridden = [f"{override.partition('=')[0]}." for override in overrides]
        lines: list[str] = []
        codes: list[tuple[str, str]] = []
        cause: BaseException | None = None
        for problem in problems[:MAX_PROBLEMS]:
            key = _key(problem["loc"])
            broken = problem.get("ctx", {}).get("error")
            lines.append(_line(path, document, problem, key, overridden))
            codes.append((key, getattr(broken, "code", problem["type"])))
            cause = cause or getattr(broken, "__cause__", None)
        if len(problems) > MAX_PROBLEMS:
            lines.append("... and more")
        raise ConfigError("problems", lines="\n".join(lines), codes=codes) from cause


def _apply_override(tree: dict[str, Any], override: str) -> None:
    """Set a value in the config ``tree``; raise a `ConfigError` if ``override`` is not KEY=VALUE, or KEY is no key."""
    dotted, separator, text = override.partition("=")
    *parents, key = dotted.split(".")
    try:
        if not separator or not all([*parents, key]):
            raise InvalidValueError("dotted_key")
        for parent in parents:
            tree = tree.setdefault(parent, {})
            if not isinstance(tree, dict):
                raise InvalidValueError("no_keys", shown(parent))
        tree[key] = parse_yaml(text)
    except (InvalidValueError, YamlError) as error:
        raise ConfigError(
            "caused_by", f"override {quoted(override)}:", cause=error
        ) from None


def _line(
    path: Path,
    document: Document,
    problem: Mapping[str, Any],
    key: str,
    overridden: Sequence[str],
) -> str:
    """Return a line on a problem at ``key``, with the line of the file unless the key is ``overridden``."""
    if any(f"{key}.".startswith(changed) for changed in overridden):
        place = "override"
    else:
        line, _ = document.place(problem["loc"])
        place = f"{path}:{line}:"
    where = f"{shown(key)}: " if key else ""
    return f"{place} {where}{problem['msg'].removeprefix('Value error, ')}"


def _key(steps: Steps) -> str:
    """Return the dotted key at ``steps``, without the cases of a union."""
    names = [str(step) for step in steps]
    # The case of a union, such as list[str], has characters other than letters, digits and underscores; a key has not.
    return ".".join(name for name in names if not re.search(r"\W", name))


def load_packaged_config(path: str, overrides: Sequence[str] = ()) -> RunConfig:
    """Load ``configs/<path>.yaml`` of the package as a run config; ``path`` is ``experiments/demo``, for example."""
    kind, _, name = path.partition("/")
    return load_config(packaged_file(kind, name), overrides)


def dump_config(config: RunConfig) -> str:
    """Return the config with all defaults as YAML that `load_config` reads."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)


def import_paths(config: object, place: str = "") -> dict[str, str]:
    """Return each import path in a config of plain data by its dotted key, such as ``metrics.0.path``."""
    paths = dict[str, str]()
    if isinstance(config, list):
        config = dict(enumerate(config))
    if not isinstance(config, dict):
        return paths
    for key, value in config.items():
        if key == "path" and value is not None:
            paths[f"{place}{key}"] = str(value)
        else:
            paths |= import_paths(value, f"{place}{key}.")
    return paths


def changed_keys(saved: str, config: RunConfig) -> list[str]:
    """Return the dotted keys that differ between ``saved`` (YAML text) and ``config``.

    Keys that ``saved`` lacks, because an older version wrote it, have their defaults, unless ``saved`` names other code
    than ``config``, which is not imported.
    """
    old = parse_yaml(saved)
    new = parse_yaml(dump_config(config))
    if import_paths(old) == import_paths(new):
        old = parse_yaml(dump_config(RunConfig.model_validate(old)))
    before = _flat(old)
    now = _flat(new)
    return [key for key in {**before, **now} if before.get(key) != now.get(key)]


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the settings of the nested mapping ``tree`` by dotted key, such as ``training.batch_size``."""
    settings: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            settings |= _flat(value, f"{prefix}{key}.")
        else:
            settings[f"{prefix}{key}"] = value
    return settings
