"""Decide whether to run the code that the config of a run folder names: whoever wrote the folder chose this code.

A run that this user starts is remembered in the user's state folder, outside of the run folder.
"""

import os
import warnings
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from mpcs_torch.errors import MpcsError, shown
from mpcs_torch.io.atomic_files import replace_text
from mpcs_torch.io.yaml_files import read_yaml_file


class UntrustedCodeError(MpcsError, RuntimeError):
    """The config of a run folder names code, and this user has neither started the run nor trusted its code."""

    def __init__(self, config: Path, code: Mapping[str, str]) -> None:
        self.config, self.code = config, code
        names = ", ".join(f"{key}: {path}" for key, path in code.items())
        problem = f"names code ({shown(names, 500)}), but is not the config of a run that you started in this folder"
        super().__init__(f"{config}: {problem}: if you trust the code, pass --trust-code to run it")


def import_paths(config: object, place: str = "") -> dict[str, str]:
    """Return each import path in a config of plain data by its dotted key, such as ``metrics.0.path``."""
    children = config.items() if isinstance(config, dict) else enumerate(config) if isinstance(config, list) else ()
    paths = dict[str, str]()
    for key, value in children:
        dotted = f"{place}.{key}" if place else str(key)
        if key == "path" and value is not None:
            paths[dotted] = str(value)
        else:
            paths |= import_paths(value, dotted)
    return paths


def check_trusted(path: Path, config: object) -> None:
    """Raise an `UntrustedCodeError` if ``config``, the content of the file ``path``, names code that is not trusted."""
    code = import_paths(config)
    if code and not _is_remembered(path, config):
        raise UntrustedCodeError(path, code)


def remember_started(path: Path) -> None:
    """Remember that this user started the run with the config file ``path``, if the config names code.

    Both the place and the content of the file count. If the state folder cannot be written, warn.
    """
    config = read_yaml_file(path).value
    if not import_paths(config):
        return
    try:
        mark = _mark(path, config)
        mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_text(mark, f"{path.resolve()}\n")
    except (OSError, RuntimeError) as error:  # a RuntimeError if there is no home folder
        remedy = "mpcs train --resume and mpcs report will need --trust-code"
        warnings.warn(f"cannot remember that you started {path} ({error}): {remedy}", stacklevel=2)


def _is_remembered(path: Path, config: object) -> bool:
    try:
        return _mark(path, config).is_file()
    except (OSError, RuntimeError):
        return False


def _mark(path: Path, config: object) -> Path:
    """Return the file that exists if this user started the run with this config at this place."""
    return started_runs() / sha256(repr((str(path.resolve()), config)).encode()).hexdigest()


def started_runs() -> Path:
    """Return the folder of marks: ``mpcs_torch/started-runs`` in ``$XDG_STATE_HOME``, by default ``~/.local/state``.

    A relative ``$XDG_STATE_HOME`` is ignored, as its specification demands: the current folder may be an attacker's.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return base / "mpcs_torch" / "started-runs"
