"""Read and write each `ConcernSpec` as YAML; all errors of a file are reported together, with line numbers."""

import re
from collections.abc import Sequence
from dataclasses import fields
from errno import EEXIST
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpcs_torch.concern.checks import MAX_PROBLEMS, ConcernError, Problem, is_number
from mpcs_torch.concern.ranges import ConcernRange
from mpcs_torch.concern.spec import ConcernSpec
from mpcs_torch.errors import did_you_mean, shown
from mpcs_torch.io.atomic_files import replace_text
from mpcs_torch.io.local_paths import local_path
from mpcs_torch.io.packaged import packaged_file, packaged_names

if TYPE_CHECKING:
    from mpcs_torch.io.yaml_files import Document

FIELDS = tuple(field.name for field in fields(ConcernSpec))
WITH_RANGES = ("factor", "weights", "refer", "answers")
RANGE = re.compile(r"(\S{1,40}) to (\S{1,40})")


def load_concern(path: str | Path) -> ConcernSpec:
    """Read a `ConcernSpec` from a YAML file whose keys are the arguments of `ConcernSpec`.

    Args:
        path: The file, or the name of a packaged example, such as ``"traffic-lights"``. YAML aliases, merge keys, tags
            and huge files are refused.

    Raises:
        ConcernError: If the file is no valid YAML or `ConcernSpec`; the message lists errors with lines and columns.
        FileNotFoundError: If there is no such file or name.
        PathError: If ``path`` is not local, such as ``s3://bucket/file``.
        ImportError: If PyYAML is not installed.

    Example:
        >>> load_concern("traffic-lights").classes
        ('red', 'yellow', 'green')
    """
    path, document = _read(path)
    problems = []
    if any(
        _range_ends(document.value.get(field), (), [])[0] != document.value.get(field)
        for field in WITH_RANGES
    ):
        problems = [
            Problem((), "has ranges of costs: use load_concern_range or mpcs score")
        ]
    return _make_spec(document.value, document, path, problems)


def load_concern_range(*paths: str | Path) -> ConcernRange:
    """Read the costs of one person or several people, which may be ranges, from one YAML file per person.

    Any cost in ``factor``, ``weights``, ``refer`` and ``answers`` may be a range, ``5 to 20`` for example. Otherwise,
    the files have the keys and the rules of `load_concern`.

    Args:
        *paths: The files, or names of packaged examples.

    Raises:
        ConcernError: If a file is invalid, a range is descending, or people's costs do not match (see `ConcernRange`).
        PathError: If a path is not local, such as ``s3://bucket/file``.

    Example:
        >>> load_concern_range("traffic-lights").is_known
        True
    """
    ends = list[tuple[ConcernSpec, ConcernSpec]]()
    for source in paths:
        path, document = _read(source)
        low, high, problems = dict(document.value), dict(document.value), list[Problem]()
        for field in filter(document.value.__contains__, WITH_RANGES):
            low[field], high[field] = _range_ends(document.value[field], (field,), problems)
        _name_dangerous(low, high)
        ends.append(
            (
                _make_spec(low, document, path, problems),
                _make_spec(high, document, path, problems),
            )
        )
    return ConcernRange(*zip(*ends, strict=True)) if ends else ConcernRange([], [])


def _range_ends(
    value: Any, steps: tuple[str | int, ...], problems: list[Problem]
) -> tuple[Any, Any]:
    """Return ``value`` with its ranges replaced by their low ends, and the same with their high ends.

    Descending ranges are added to ``problems``.
    """
    if isinstance(value, list | dict):
        items = enumerate(value) if isinstance(value, list) else value.items()
        ends = {key: _range_ends(each, (*steps, key), problems) for key, each in items}
        low = {key: lowest for key, (lowest, _) in ends.items()}
        high = {key: highest for key, (_, highest) in ends.items()}
        return (
            (low, high) if isinstance(value, dict) else ([*low.values()], [*high.values()])
        )
    matched = RANGE.fullmatch(value) if isinstance(value, str) else None
    try:
        first, last = (value, value) if matched is None else map(float, matched.groups())
    except ValueError:
        return value, value
    if matched is not None and first > last:
        rule = f"must go from the lower to the higher cost, but goes from {first:g} to {last:g}"
        problems.append(Problem(steps, rule))
    return first, last


def _name_dangerous(low: dict[str, Any], high: dict[str, Any]) -> None:
    """Replace a number under the key "dangerous" by the class pairs with at least this weight in ``high``."""
    threshold, weights = high.get("dangerous"), high.get("weights")
    if (
        not is_number(threshold)
        or not isinstance(weights, list)
        or not all(isinstance(row, list) for row in weights)
    ):
        return
    pairs = [
        [i, j]
        for i, row in enumerate(weights)
        for j, weight in enumerate(row)
        if i != j and is_number(weight) and weight >= threshold
    ]
    if pairs and low["weights"] != weights:
        low["dangerous"] = high["dangerous"] = pairs


def _read(source: str | Path) -> "tuple[Path, Document]":
    """Read ``source``, a file or packaged name; return its path and its content, which must be a mapping."""
    try:
        from mpcs_torch.io.yaml_files import (
            YamlError,
            read_yaml_file,
        )  # optional: the metrics need no PyYAML
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
        place = (
            str(path) if error.place is None else ":".join(map(str, (path, *error.place)))
        )
        raise ConcernError([Problem((), error.problem, place)]) from None
    if not isinstance(document.value, dict):
        raise ConcernError(
            [Problem((), f"must be a mapping with the keys {', '.join(FIELDS)}", str(path))]
        )
    return path, document


def _make_spec(
    value: dict[Any, Any], document: "Document", path: Path, found: Sequence[Problem]
) -> ConcernSpec:
    """Make a spec from the mapping ``value``; raise a `ConcernError` with all its problems and those in ``found``."""
    problems = list(found)
    if "classes" not in value:
        problems.append(Problem((), "must have the key classes"))
    unknown = (shown(key) for key in map(str, value) if key not in FIELDS)
    rule = f"must be one of the keys {', '.join(FIELDS)}"
    problems += [Problem((key,), rule) for key in islice(unknown, MAX_PROBLEMS + 1)]
    spec = None
    try:
        spec = ConcernSpec(
            **{"classes": (), **{key: value[key] for key in FIELDS if key in value}}
        )
    except ConcernError as error:
        missing = "classes" not in value
        problems += [p for p in error.problems if not (missing and p.path == ("classes",))]
    if problems or spec is None:
        raise ConcernError(
            [
                p._replace(place=":".join(map(str, (path, *document.place(p.path)))))
                for p in problems
            ]
        )
    return spec


def save_concern(spec: ConcernSpec, path: str | Path, *, comment: str = "") -> None:
    """Write ``spec`` as YAML that `load_concern` reads.

    Args:
        spec: The spec to write.
        path: The path of a file that does not exist yet.
        comment: The text of a comment at the top of the file.

    Raises:
        FileExistsError: If the file exists; it is left unchanged.
        PathError: If ``path`` is not local, such as ``s3://bucket/file``.
    """
    import yaml

    path, plain = local_path(path, "path"), concern_as_plain(spec)
    lines = [f"# {line}\n" for line in comment.splitlines()]
    if path.exists():
        raise FileExistsError(EEXIST, "the file exists: choose another one", str(path))
    replace_text(
        path,
        "".join(lines)
        + yaml.safe_dump(plain, sort_keys=False, default_flow_style=None, width=120),
    )


def concern_as_plain(spec: ConcernSpec) -> dict[str, Any]:
    """Convert ``spec`` to a mapping of its arguments, as lists, class names and numbers; omit unused arguments."""
    names = spec.classes

    def named(pairs: Sequence[Sequence[str | int]]) -> list[list[str]]:
        return [[names[int(entry)] for entry in entries] for entries in pairs]

    has_releases = spec.weights is None and spec.dangerous is None
    plain: dict[str, Any] = {
        "classes": list(names),
        "weights": None if spec.weights is None else [list(row) for row in spec.weights],
        "releases": named(spec.releases) if has_releases else None,
        "factor": spec.factor if spec.weights is None else None,
        "dangerous": named(spec.dangerous)
        if isinstance(spec.dangerous, Sequence)
        else spec.dangerous,
        "refer": list(spec.refer) if isinstance(spec.refer, Sequence) else spec.refer,
        "answers": dict(spec.answers) or None,
        "class_groups": {
            group: [names[label] for label in members]
            for group, members in spec.class_groups
        }
        or None,
        "concession": spec.concession,
    }
    return {name: value for name, value in plain.items() if value is not None}


def _resolved(path: Path, name: str) -> Path:
    """Return ``path`` or, if ``name`` is a word and no such file exists, the path of the packaged file of this name."""
    if "." in name or path.name != name or path.is_file():
        return path
    names = packaged_names("concerns")
    if name not in names:
        hint = did_you_mean(name, names) or f"the names are {', '.join(names)}."
        raise FileNotFoundError(f"{shown(name)}: no such file, and no such name; {hint}")
    return packaged_file("concerns", name)
