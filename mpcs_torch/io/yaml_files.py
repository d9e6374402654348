"""Read YAML as plain data (mappings, lists, text and numbers), with the line and column of each value.

Files may be untrusted. Aliases, merge keys and tags are refused, because they can expand a short text or create
objects. Large texts, deep nesting and repeated keys are refused, too.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mpcs_torch.errors import MpcsError, shown
from mpcs_torch.io.untrusted_files import read_limited

MAX_BYTES = 10_000_000
"""The maximum size of a file in bytes. A cost matrix of 1000 classes has about 5 MB."""
MAX_DEPTH = 50
"""The maximum depth of nesting, because the parser is recursive."""
MAX_NUMBER = 100
"""The maximum length of a number in characters, because Python parses numbers in quadratic time."""
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")

Place = tuple[int, int]
"""The line and the column of a value, counted from 1."""
Steps = tuple[str | int, ...]
"""The keys and indices that lead from the root of a document to a value."""


class YamlError(MpcsError, ValueError):
    """The error for a text that is not valid YAML or not plain data; its message has one line."""

    def __init__(self, problem: str, place: Place | None) -> None:
        self.problem = f"not valid YAML: {shown(problem)}"
        self.place = place
        """The line and column of the problem; None if unknown."""
        where = "" if place is None else f"line {place[0]}, column {place[1]}: "
        super().__init__(f"not valid YAML: {where}{shown(problem)}")


@dataclass(frozen=True)
class Document:
    """The value of a YAML document, and its nodes, which know their line and column."""

    value: Any
    root: yaml.Node | None
    """The root node; None if the document is empty."""

    def place(self, steps: Steps) -> Place:
        """Return the line and column of the value at ``steps`` or, if there is no such value, of its nearest parent."""
        node = self.root
        for step in steps:
            if isinstance(node, yaml.MappingNode):
                node = next((child for key, child in node.value if key.value == step), node)
            elif (
                isinstance(node, yaml.SequenceNode)
                and isinstance(step, int)
                and step < len(node.value)
            ):
                node = node.value[step]
        return (1, 1) if node is None else _place(node.start_mark)


class _PlainLoader(yaml.SafeLoader):
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _refused(
                f"anchors and aliases such as &{event.anchor} are not supported",
                event.start_mark,
            )
        if event.tag is not None:
            raise _refused(f"tags such as {event.tag} are not supported", event.start_mark)
        if self.depth == MAX_DEPTH:
            raise _refused(f"nested more than {MAX_DEPTH} deep", event.start_mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        if (
            isinstance(node, yaml.ScalarNode)
            and node.tag in NUMBERS
            and len(node.value) > MAX_NUMBER
        ):
            raise _refused(f"a number of {len(node.value)} characters", node.start_mark)
        return node

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Any, Any]:
        """Construct a dictionary; raise an error for a repeated key, which would overwrite an earlier value."""
        keys = set()
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                raise _refused("merge keys (<<) are not supported", key.start_mark)
            if not isinstance(key, yaml.ScalarNode):
                raise _refused(
                    "a key must be text, not a list or a mapping", key.start_mark
                )
            if key.value in keys:
                raise _refused(f"{key.value} appears twice", key.start_mark)
            keys.add(key.value)
        return super().construct_mapping(node, deep)


def _refused(problem: str, mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def _place(mark: yaml.Mark) -> Place:
    return mark.line + 1, mark.column + 1


def read_yaml(text: str) -> Document:
    """Parse a YAML document; raise a `YamlError` if ``text`` is not plain YAML, too large or nested too deeply."""
    if len(text) > MAX_BYTES:
        raise YamlError(f"more than {MAX_BYTES} characters", None)
    try:
        loader = _PlainLoader(text)
        root = loader.get_single_node()
        return Document(None if root is None else loader.construct_document(root), root)
    except yaml.MarkedYAMLError as error:
        place = None if error.problem_mark is None else _place(error.problem_mark)
        raise YamlError(str(error.problem), place) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise YamlError(
            f"the character U+{int(error.character):04X} is not allowed", place
        ) from None
    # For example, the date 2024-02-30 raises a ValueError.
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise YamlError(str(error), None) from None


def read_yaml_file(path: Path) -> Document:
    """Parse a YAML file by `read_yaml`; also raise a `YamlError` if the file is not regular or not UTF-8 text."""
    try:
        text = read_limited(path, MAX_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise YamlError(
            f"not UTF-8 text: byte {error.object[error.start]:#04x} at {error.start}", None
        ) from None
    except ValueError as error:
        raise YamlError(str(error), None) from None
    return read_yaml(text)


def parse_yaml(text: str) -> Any:
    """Parse ``text`` by `read_yaml`, and return only its value."""
    return read_yaml(text).value
