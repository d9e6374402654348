"""Read and write each `ConcernSpec` as YAML; all errors of a file are reported together, with line numbers."""

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import fields
from errno import EEXIST
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mpcs_torch.concern.checks import (
    MAX_PROBLEMS,
    ConcernError,
    Problem,
    problem,
)
from mpcs_torch.concern.ranges import ConcernRange
from mpcs_torch.concern.spec import ConcernSpec
from mpcs_torch.errors import MissingFileError, shown
from mpcs_torch.io.atomic_files import replace_text
from mpcs_torch.io.local_paths import local_path
from mpcs_torch.io.packaged import (
    is_packaged_name,
    known_names,
    packaged_file,
    packaged_names,
)

if TYPE_CHECKING:
    from mpcs_torch.io.yaml_files import Document

FIELDS = tuple(field.name for field in fields(ConcernSpec))
WITH_RANGES = ("factor", "weights", "refer", "answers")
"""The fields of which any number may be a range."""
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
RANGE = re.compile(f"({NUMBER}) to ({NUMBER})")


def load_concern(path: str | Path) -> ConcernSpec:
    """Read a `ConcernSpec` from a YAML file whose keys are the arguments of `ConcernSpec`.

    Args:
        path: The file, or the name of a packaged example, such as ``"traffic-lights"``. YAML aliases, merge keys, tags
            and huge files are refused.

    Raises:
        ConcernError: If the file is no valid YAML or `ConcernSpec`; the message lists errors with lines and columns.
        FileNotFoundError: If there is no such file or name.
        ValueError: If ``path`` is not local, such as ``s3://bucket/file``.
        ImportError: If PyYAML is not installed.

    Example:
        >>> load_concern("traffic-lights").classes
        ('red', 'yellow', 'green')
    """
    low, high = _read_ends(path)
    if low != high:
        raise ConcernError([problem("no_ranges")._replace(place=str(path))])
    return low


def load_concern_range(*paths: str | Path) -> ConcernRange:
    """Read the costs of one person or several people, which may be ranges, from one YAML file per person.

    Any cost in ``factor``, ``weights``, ``refer`` and ``answers`` may be a range, ``5 to 20`` for example. Otherwise,
    the files have the keys and the rules of `load_concern`.

    Args:
        *paths: The files, or names of packaged examples.

    Raises:
        ConcernError: If a file is invalid, a range is descending, or people's costs do not match (see `ConcernRange`).
        ValueError: If a path is not local, such as ``s3://bucket/file``.

    Example:
        >>> load_concern_range("traffic-lights").is_known
        True
    """
    ends = [_read_ends(path) for path in paths]
    return ConcernRange([low for low, _ in ends], [high for _, high in ends])


def _read_ends(source: str | Path) -> tuple[ConcernSpec, ConcernSpec]:
    """Return the spec of a file with the low end of each range, and the spec with the high ends."""
    path, document = _read(source)
    problems = list[Problem]()
    low = deepcopy(document.value)
    high = deepcopy(document.value)
    for steps, first, last in _ranges({field: low.get(field) for field in WITH_RANGES}):
        if first > last:
            problems.append(problem("ascending", *steps, low=first, high=last))
        _put(low, steps, first)
        _put(high, steps, last)
    highest = _make_spec(high, document, path, problems)
    if low.get("weights") != high.get("weights") and highest.dangerous_weight is not None:
        # What is dangerous by the high costs is dangerous by the low ones, too.
        low["dangerous"] = np.argwhere(highest.dangerous_array()).tolist()
    return _make_spec(low, document, path, problems), highest


def _put(value: Any, steps: Sequence[str | int], number: float) -> None:
    """Replace what the keys and indices ``steps`` lead to in ``value`` by ``number``."""
    *outer, last = steps
    for step in outer:
        value = value[step]
    value[last] = number


def _ranges(
    value: Any, *steps: str | int
) -> Iterator[tuple[tuple[str | int, ...], float, float]]:
    """Yield the keys and indices that lead to each range in ``value``, and its two numbers."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _ranges(inner, *steps, key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _ranges(inner, *steps, index)
    elif isinstance(value, str):
        match = RANGE.fullmatch(value)
        if match is not None:
            yield steps, float(match[1]), float(match[2])


def _read(source: str | Path) -> "tuple[Path, Document]":
    """Read ``source``, a file or packaged name; return its path and its content, which must be a mapping."""
    try:  # PyYAML is optional: the metrics do not need it
        from mpcs_torch.io.yaml_files import YamlError, read_yaml_file
    except ImportError:
        raise ImportError(
            "load_concern needs PyYAML: pip install 'mpcs_torch[cli]'"
        ) from None

    path = local_path(source, "path")
    if isinstance(source, str):
        path = _resolved(path, source)
    try:
        document = read_yaml_file(path)
    except YamlError as error:
        place = _place_in_file(path, error.place or ())
        raise ConcernError([Problem((), error.problem, place)]) from None
    if not isinstance(document.value, dict):
        raise ConcernError([_about_keys("mapping")._replace(place=str(path))])
    return path, document


def _place_in_file(path: Path, line_and_column: Sequence[int]) -> str:
    """Return a place in the form ``file:line:column``; only the file if neither is known."""
    return ":".join(map(str, (path, *line_and_column)))


def _make_spec(
    value: dict[Any, Any], document: "Document", path: Path, problems: Sequence[Problem]
) -> ConcernSpec:
    """Make a spec from the mapping ``value``; raise a `ConcernError` with all its problems, after ``problems``."""
    problems = list(problems)
    if "classes" not in value:
        problems.append(problem("has_classes"))
    unknown = [shown(key) for key in map(str, value) if key not in FIELDS]
    problems += [_about_keys("known_key", key) for key in unknown[: MAX_PROBLEMS + 1]]
    known = {key: value[key] for key in FIELDS if key in value}
    try:
        spec = ConcernSpec(**{"classes": (), **known})
    except ConcernError as error:
        for further in error.problems:
            # Where the key classes is missing, the problem that there are no classes repeats it.
            if further.path != ("classes",) or "classes" in value:
                problems.append(further)
    if problems:
        placed = list[Problem]()
        for unplaced in problems:
            place = _place_in_file(path, document.place(unplaced.path))
            placed.append(unplaced._replace(place=place))
        raise ConcernError(placed)
    return spec


def _about_keys(code: str, *path: str) -> Problem:
    return problem(code, *path, keys=", ".join(FIELDS))


def save_concern(spec: ConcernSpec, path: str | Path, *, comment: str = "") -> None:
    """Write ``spec`` as YAML that `load_concern` reads.

    Args:
        spec: The spec to write.
        path: The path of a file that does not exist yet.
        comment: The text of a comment at the top of the file.

    Raises:
        FileExistsError: If the file exists; it is left unchanged.
        ValueError: If ``path`` is not local, such as ``s3://bucket/file``.
    """
    import yaml

    path = local_path(path, "path")
    if path.exists():
        raise FileExistsError(EEXIST, "the file exists: choose another one", str(path))
    comments = "".join(f"# {line}\n" for line in comment.splitlines())
    plain = concern_as_plain(spec)
    content = yaml.safe_dump(plain, sort_keys=False, default_flow_style=None, width=120)
    replace_text(path, f"{comments}{content}")


def concern_as_plain(spec: ConcernSpec) -> dict[str, Any]:
    """Convert ``spec`` to a mapping of its arguments, as lists, class names and numbers; omit unused arguments."""
    names = spec.classes

    def named(groups: Sequence[Sequence[str | int]]) -> list[list[str]]:
        return [[names[int(label)] for label in labels] for labels in groups]

    plain: dict[str, Any] = {"classes": list(names)}
    if spec.lists_releases:
        plain["releases"] = named(spec.releases)
    if spec.weights is None:
        plain["factor"] = spec.factor
    else:
        plain["weights"] = [list(row) for row in spec.weights]
    if isinstance(spec.dangerous, tuple):
        plain["dangerous"] = named(spec.dangerous)
    elif spec.dangerous is not None:
        plain["dangerous"] = spec.dangerous
    if spec.refer is not None:
        plain["refer"] = list(spec.refer) if isinstance(spec.refer, tuple) else spec.refer
    if spec.answers:
        plain["answers"] = dict(spec.answers)
    if spec.class_groups:
        groups = dict(spec.class_groups)
        plain["class_groups"] = dict(zip(groups, named([*groups.values()]), strict=True))
    if spec.concession is not None:
        plain["concession"] = spec.concession
    return plain


def _resolved(path: Path, name: str) -> Path:
    """Return ``path`` or, if ``name`` is a word and no such file exists, the path of the packaged file of this name."""
    if not is_packaged_name(name) or path.is_file():
        return path
    if name not in packaged_names("concerns"):
        hint = known_names("concerns", name)
        raise MissingFileError("file_or_name", f"{shown(name)}:", known=hint)
    return packaged_file("concerns", name)
