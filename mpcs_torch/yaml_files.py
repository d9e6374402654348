"""Read YAML safely: repeated keys are refused, and the place of each value is known."""

from dataclasses import dataclass
from typing import Any

import yaml

from mpcs_torch.errors import MpcsError


class YamlError(MpcsError, ValueError):
    """Text that is not valid YAML; the message is one line."""

    def __init__(self, problem: str, mark: yaml.Mark | None) -> None:
        self.problem = f"not valid YAML: {problem}"
        self.place = None if mark is None else (mark.line + 1, mark.column + 1)
        """Line and column, counted from 1; None if unknown."""
        where = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        super().__init__(f"not valid YAML: {where}{problem}")


@dataclass(frozen=True)
class Document:
    """The value of a YAML document and its nodes, which know their place in the text."""

    value: Any
    root: yaml.Node | None
    """None if the document is empty."""

    def place(self, steps: tuple[str | int, ...]) -> tuple[int, int]:
        """Return line and column, from 1, of the value at a path of keys and indices, or of its nearest parent."""
        node = self.root
        for step in steps:
            if isinstance(node, yaml.MappingNode):
                node = next((child for key, child in node.value if key.value == step), node)
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
        return (1, 1) if node is None else (node.start_mark.line + 1, node.start_mark.column + 1)


class _UniqueKeys(yaml.SafeLoader):
    """PyYAML's safe loader, except that a repeated key is an error instead of replacing the earlier value."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        for i, (key, _) in enumerate(node.value):
            if key.value in keys[:i]:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} appears twice", key.start_mark)
        return super().construct_mapping(node, deep)


def read_yaml(text: str) -> Document:
    """Parse a YAML document.

    Raises:
        YamlError: If the text is not valid, repeats a key, or has a tag that would build a Python object.
    """
    try:
        loader = _UniqueKeys(text)
        root = loader.get_single_node()
        return Document(None if root is None else loader.construct_document(root), root)
    except yaml.MarkedYAMLError as error:
        raise YamlError(str(error.problem), error.problem_mark) from None
    except (yaml.YAMLError, ValueError) as error:  # such as the date 2024-02-30
        raise YamlError(str(error), None) from None


def parse_yaml(text: str) -> Any:
    """Return the value of a YAML document; raises the errors of `read_yaml`."""
    return read_yaml(text).value
