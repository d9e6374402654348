"""YAML as our configs are read: safely, and with every key once."""

from typing import Any

import yaml


class _UniqueKeys(yaml.SafeLoader):
    """The safe loader, but a key that stands twice is an error rather than the last one's win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        for i, (key, _) in enumerate(node.value):
            if key.value in keys[:i]:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} stands twice", key.start_mark)
        return super().construct_mapping(node, deep)


def parse_yaml(text: str) -> Any:
    """The value of a YAML document.

    Raises:
        ValueError: In one line, with line and column where they are known.
    """
    try:
        return yaml.load(text, Loader=_UniqueKeys)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ValueError(f"not valid YAML: {place}{error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:  # such as a date that no calendar has
        raise ValueError(f"not valid YAML: {error}") from None
