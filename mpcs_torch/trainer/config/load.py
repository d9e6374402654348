"""Load run configs, report all errors together with their places, and say whether a file may name code to run."""

import re
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from mpcs_torch.concern.checks import MAX_PROBLEMS
from mpcs_torch.errors import CodedError, InvalidValueError, quoted, shown
from mpcs_torch.io.local_paths import local_path
from mpcs_torch.io.packaged import packaged_file
from mpcs_torch.io.yaml_files import YamlError, parse_yaml, read_yaml_file
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
        overridden = [f"{override.partition('=')[0]}." for override in overrides]
        lines: list[str] = []
        codes: list[tuple[str, str]] = []
        cause: BaseException | None = None
        for problem in error.errors(include_url=False, include_input=False)[:MAX_PROBLEMS]:
            # The case of a union, such as list[str], has characters that are not in words; a key has not.
            steps = [str(step) for step in problem["loc"]]
            key = ".".join(step for step in steps if not re.search(r"\W", step))
            broken = problem.get("ctx", {}).get("error")
            codes.append((key, getattr(broken, "code", problem["type"])))
            cause = cause or getattr(broken, "__cause__", None)
            line, _ = document.place(problem["loc"])
            place = f"{path}:{line}:"
            if any(f"{key}.".startswith(changed) for changed in overridden):
                place = "override"
            where = f"{shown(key)}: " if key else ""
            lines.append(f"{place} {where}{problem['msg'].removeprefix('Value error, ')}")
        if error.error_count() > MAX_PROBLEMS:
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


def load_packaged_config(path: str, overrides: Sequence[str] = ()) -> RunConfig:
    """Load ``configs/<path>.yaml`` of the package as a run config; ``path`` is ``experiments/demo``, for example."""
    kind, _, name = path.partition("/")
    return load_config(packaged_file(kind, name), overrides)


def dump_config(config: RunConfig) -> str:
    """Return the config with all defaults as YAML that `load_config` reads."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)


def import_paths(config: object) -> dict[str, str]:
    """Return each import path in a config of plain data by its dotted key, such as ``metrics.0.path``."""
    return {
        key: str(value)
        for key, value in _flat(config).items()
        if value is not None and key.rpartition(".")[2] == "path"
    }


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


def _flat(tree: object, prefix: str = "") -> dict[str, Any]:
    """Return the settings of nested mappings and lists by dotted key, such as ``training.batch_size``."""
    if isinstance(tree, list):
        tree = dict(enumerate(tree))
    if not isinstance(tree, dict):
        return {prefix.removesuffix("."): tree}
    settings: dict[str, Any] = {}
    for key, value in tree.items():
        settings |= _flat(value, f"{prefix}{key}.")
    return settings
