"""Read YAML as plain data (mappings, lists, text and numbers), with the line and column of each value.

Files may be untrusted. Aliases, merge keys and tags are refused, because they can expand a short text or create
objects. Large texts, deep nesting and repeated keys are refused, too.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mpcs_torch.errors import CodedError, shown
from mpcs_torch.io.untrusted_files import FileRuleError, read_limited

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


class YamlError(CodedError, ValueError):
    """The error for a text that is not valid YAML or not plain data; its message has one line."""

    def __init__(self, code: str, place: Place | None = None, **fields: Any) -> None:
        super().__init__(code, **fields)
        self.args = (code, place)
        self.place = place
        """The line and column of the problem; None if unknown."""

    @property
    def problem(self) -> str:
        """The message without the place, for a caller that names the place otherwise."""
        return self._message("")

    def __str__(self) -> str:
        if self.place is None:
            return self.problem
        line, column = self.place
        return self._message(f"line {line}, column {column}: ")

    def _message(self, place: str) -> str:
        return f"not valid YAML: {place}{shown(str(self.rule))}"


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
            node = _child(node, step)
        return (1, 1) if node is None else _place(node.start_mark)


def _child(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    """Return the node at ``step`` of ``node``, or ``node`` if there is none."""
    if isinstance(node, yaml.MappingNode):
        pairs: list[tuple[yaml.Node, yaml.Node]] = node.value
        for key, child in pairs:
            if key.value == step:
                return child
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        children: list[yaml.Node] = node.value
        return children[step] if step < len(children) else node
    return node


class _PlainLoader(yaml.SafeLoader):
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise YamlError("no_anchor", _place(event.start_mark), anchor=str(event.anchor))
        if event.tag is not None:
            raise YamlError("no_tag", _place(event.start_mark), tag=event.tag)
        if self.depth == MAX_DEPTH:
            raise YamlError("max_depth", _place(event.start_mark), maximum=MAX_DEPTH)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        if (
            isinstance(node, yaml.ScalarNode)
            and node.tag in NUMBERS
            and len(node.value) > MAX_NUMBER
        ):
            raise YamlError("long_number", _place(node.start_mark), length=len(node.value))
        return node

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Any, Any]:
        """Construct a dictionary; raise an error for a repeated key, which would overwrite an earlier value."""
        keys = set()
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                raise YamlError("no_merge_key", _place(key.start_mark))
            if not isinstance(key, yaml.ScalarNode):
                raise YamlError("key_is_text", _place(key.start_mark))
            if key.value in keys:
                raise YamlError("key_once", _place(key.start_mark), key=key.value)
            keys.add(key.value)
        return super().construct_mapping(node, deep)


def _place(mark: yaml.Mark) -> Place:
    return mark.line + 1, mark.column + 1


def read_yaml(text: str) -> Document:
    """Parse a YAML document; raise a `YamlError` if ``text`` is not plain YAML, too large or nested too deeply."""
    if len(text) > MAX_BYTES:
        raise YamlError("max_characters", maximum=MAX_BYTES)
    try:
        loader = _PlainLoader(text)
        root = loader.get_single_node()
        return Document(None if root is None else loader.construct_document(root), root)
    except YamlError:
        raise
    except yaml.MarkedYAMLError as error:
        place = None if error.problem_mark is None else _place(error.problem_mark)
        raise YamlError("caused_by", place, cause=str(error.problem)) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        # Without a line break before it, rfind returns -1, and the column counts from 1, too.
        place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
        character = f"{int(error.character):04X}"
        raise YamlError("allowed_character", place, character=character) from None
    # For example, the date 2024-02-30 raises a ValueError.
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise YamlError("caused_by", cause=str(error)) from None


def read_yaml_file(path: Path) -> Document:
    """Parse a YAML file by `read_yaml`; also raise a `YamlError` if the file is not regular or not UTF-8 text."""
    try:
        text = read_limited(path, MAX_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"{error.object[error.start]:#04x}"
        raise YamlError("utf_8_byte", byte=byte, at=error.start) from None
    except FileRuleError as error:
        raise YamlError("caused_by", cause=error) from None
    return read_yaml(text)


def parse_yaml(text: str) -> Any:
    """Parse ``text`` by `read_yaml`, and return only its value."""
    return read_yaml(text).value
