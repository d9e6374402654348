"""The one reader of YAML: safe, with every key once, and with the place of each value."""

from dataclasses import dataclass
from typing import Any

import yaml

from mpcs_torch.errors import MpcsError


class YamlError(MpcsError, ValueError):
    """A text that is not valid YAML; the message is one line."""

    def __init__(self, problem: str, mark: yaml.Mark | None) -> None:
        self.problem = f"not valid YAML: {problem}"
        self.place = None if mark is None else (mark.line + 1, mark.column + 1)
        """Line and column, from 1, where they are known."""
        where = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        super().__init__(f"not valid YAML: {where}{problem}")


@dataclass(frozen=True)
class Document:
    """The value of a YAML document, and where its parts stand in the text."""

    value: Any
    root: yaml.Node | None
    """None for an empty document."""

    def place(self, steps: tuple[str | int, ...]) -> tuple[int, int]:
        """Return line and column, from 1, of the value that keys and indices lead to, or of the last one on the way."""
        node = self.root
        for step in steps:
            if isinstance(node, yaml.MappingNode):
                node = next((child for key, child in node.value if key.value == step), node)
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
        return (1, 1) if node is None else (node.start_mark.line + 1, node.start_mark.column + 1)


class _UniqueKeys(yaml.SafeLoader):
    """The safe loader, but a repeated key is an error; PyYAML lets the last one win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        for i, (key, _) in enumerate(node.value):
            if key.value in keys[:i]:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} stands twice", key.start_mark)
        return super().construct_mapping(node, deep)


def read_yaml(text: str) -> Document:
    """Parse a YAML document.

    Raises:
        YamlError: If it is not valid, repeats a key, or has a tag that would build a Python object.
    """
    try:
        loader = _UniqueKeys(text)
        root = loader.get_single_node()
        return Document(None if root is None else loader.construct_document(root), root)
    except yaml.MarkedYAMLError as error:
        raise YamlError(str(error.problem), error.problem_mark) from None
    except (yaml.YAMLError, ValueError) as error:  # such as a date that no calendar has
        raise YamlError(str(error), None) from None


def parse_yaml(text: str) -> Any:
    """Return the value of a YAML document; errors are those of `read_yaml`."""
    return read_yaml(text).value
