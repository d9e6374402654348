"""Read and write concern specs as YAML; all errors of a file are reported together, with their lines."""

from collections.abc import Sequence
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

from mpcs_torch.concern.spec import MAX_PROBLEMS, ConcernError, ConcernSpec, Problem
from mpcs_torch.errors import did_you_mean, shown
from mpcs_torch.io.packaged import packaged_file, packaged_names

FIELDS = tuple(field.name for field in fields(ConcernSpec))


def load_concern(path: str | Path) -> ConcernSpec:
    """Read a concern spec from a YAML file whose keys are the arguments of `ConcernSpec`.

    Args:
        path: The file, or the name of a concern of the package, such as ``"traffic-lights"``. Loading is safe: aliases,
            merge keys and tags of YAML are refused, and so is a huge file.

    Raises:
        ConcernError: If the file is not valid YAML or breaks rules; the message lists each error with its file, line
            and column.
        FileNotFoundError: If there is no such file or name.
        ImportError: If PyYAML is not installed.

    Example:
        >>> load_concern("traffic-lights").classes
        ('red', 'yellow', 'green')
    """
    try:
        from mpcs_torch.io.yaml_files import YamlError, read_yaml_file  # optional: the metrics need no PyYAML
    except ImportError:
        raise ImportError("load_concern needs PyYAML: pip install 'mpcs_torch[cli]'") from None

    path = _named(path) if isinstance(path, str) else path
    try:
        document = read_yaml_file(path)
    except YamlError as error:
        place = str(path) if error.place is None else ":".join(map(str, (path, *error.place)))
        raise ConcernError([Problem((), error.problem, place)]) from None
    value = document.value
    if not isinstance(value, dict):
        raise ConcernError([Problem((), f"must be a mapping with the keys {', '.join(FIELDS)}", str(path))])

    problems = [] if "classes" in value else [Problem((), "must have the key classes")]
    unknown = (shown(key) for key in map(str, value) if key not in FIELDS)
    rule = f"must be one of the keys {', '.join(FIELDS)}"
    problems += [Problem((key,), rule) for key in islice(unknown, MAX_PROBLEMS + 1)]
    spec = None
    try:
        spec = ConcernSpec(**{"classes": (), **{key: value[key] for key in FIELDS if key in value}})
    except ConcernError as error:
        missing = "classes" not in value
        problems += [p for p in error.problems if not (missing and p.path == ("classes",))]
    if problems or spec is None:
        raise ConcernError([p._replace(place=":".join(map(str, (path, *document.place(p.path))))) for p in problems])
    return spec


def save_concern(spec: ConcernSpec, path: str | Path, *, comment: str = "") -> None:
    """Write a concern spec as YAML that `load_concern` reads.

    Args:
        spec: The spec to write.
        path: A file that does not exist yet.
        comment: Lines to write as a comment at the top of the file.

    Raises:
        FileExistsError: If the file exists; it is not changed.
    """
    import yaml

    plain = concern_as_plain(spec)
    lines = [f"# {line}\n" for line in comment.splitlines()]
    with Path(path).open("x", encoding="utf-8") as file:
        file.writelines([*lines, yaml.safe_dump(plain, sort_keys=False, default_flow_style=None, width=120)])


def concern_as_plain(spec: ConcernSpec) -> dict[str, Any]:
    """Return the arguments of a spec as lists, names and numbers, without those that it does not use."""
    names = spec.classes

    def named(pairs: Sequence[Sequence[str | int]]) -> list[list[str]]:
        return [[names[int(entry)] for entry in entries] for entries in pairs]

    plain: dict[str, Any] = {"classes": list(names)}
    if spec.weights is not None:
        plain["weights"] = [list(row) for row in spec.weights]
    elif spec.dangerous is None:
        plain |= {"releases": named(spec.releases), "factor": spec.factor}
    else:
        plain["factor"] = spec.factor
    if spec.dangerous is not None:
        plain["dangerous"] = named(spec.dangerous) if isinstance(spec.dangerous, Sequence) else spec.dangerous
    if spec.refer is not None:
        plain["refer"] = list(spec.refer) if isinstance(spec.refer, Sequence) else spec.refer
    if spec.answers:
        plain["answers"] = dict(spec.answers)
    if spec.concession is not None:
        plain["concession"] = spec.concession
    return plain


def _named(given: str) -> Path:
    """Return the file of the package that a word names, unless there is a file of that name; else the given path."""
    path = Path(given)
    if "." in given or path.name != given or path.is_file():
        return path
    names = packaged_names("concerns")
    if given not in names:
        known = did_you_mean(given, names) or f"the names are {', '.join(names)}."
        raise FileNotFoundError(f"{shown(given)}: no such file, and no such name; {known}")
    return packaged_file("concerns", given)
