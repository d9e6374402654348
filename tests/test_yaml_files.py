"""YAML from others is data: what is not plain, or too much, is refused with its place."""

import os
import time
from pathlib import Path

import pytest

from mpcs_torch.io.yaml_files import MAX_BYTES, YamlError, parse_yaml, read_yaml_file


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a: &x 1\nb: *x\n",
            "line 1, column 4: anchors and aliases such as &x are not supported",
        ),
        ("a: *x\n", "line 1, column 4: anchors and aliases such as &x are not supported"),
        ("a: {<<: {b: 1}}\n", r"line 1, column 5: merge keys \(<<\) are not supported"),
        (
            "a: !!timestamp x\n",
            "tags such as tag:yaml.org,2002:timestamp are not supported",
        ),
        ("a: !!int ''\n", "tags such as"),
        ("a: !!bool x\n", "tags such as"),
        ("!!set {a, b}\n", "tags such as"),
        ("a: !!omap [b: 1]\n", "tags such as"),
        ("a: !!binary aGk=\n", "tags such as"),
        (
            "!!python/object/apply:os.system [true]\n",
            "tags such as tag:yaml.org,2002:python/object/apply:os.system",
        ),
        ("? [a]\n: 1\n", "a key must be text"),
        ("a: 1\na: 2\n", "line 2, column 1: a appears twice"),
        ("[" * 100_000, "line 1, column 51: nested more than 50 deep"),
        ("- " * 100_000, "nested more than 50 deep"),
        ("a: " + "9" * 100_000, "a number of 100000 characters"),
        ("a: 0x" + "f" * 100_000, "a number of 100002 characters"),
        ("a: 1" + ":59" * 100_000, "a number of 300001 characters"),
        ("a: 1" + ":59" * 1000 + ".5", "a number of 3003 characters"),
        ("a: 0b_", "invalid literal for int"),
        ("a: 2024-02-30", "day is out of range for month"),
        ("a: =", "could not determine a constructor"),
        ("a: b\nc: \x00", "line 2, column 4: the character U\\+0000 is not allowed"),
        ("a: \x1b[31m", "the character U\\+001B is not allowed"),
        ("a: \udcff", "the character U\\+DCFF is not allowed"),
        ("a: 1\n--- \nb: 2\n", "found another document"),
        ("x" * (MAX_BYTES + 1), "more than 10000000 characters"),
    ],
    ids=range(26),
)
def test_what_is_not_plain_is_refused_at_once_and_briefly(text: str, message: str) -> None:
    start = time.process_time()
    with pytest.raises(YamlError, match=message) as error:
        parse_yaml(text)
    assert time.process_time() - start < 1
    assert len(str(error.value)) < 200
    assert str(error.value).isprintable()


def test_many_keys_take_linear_time() -> None:
    start = time.process_time()
    assert len(parse_yaml("\n".join(f"k{i}: 0" for i in range(20_000)))) == 20_000
    assert time.process_time() - start < 5


def test_plain_data_are_read_as_before() -> None:
    text = "a: [1, 2.5, 1e-3, 0x10, yes, null, 2024-02-29]\n'b c': {d: \"e\\tf\"}\n"
    assert str(parse_yaml(text)) == (
        "{'a': [1, 2.5, '1e-3', 16, True, None, datetime.date(2024, 2, 29)], 'b c': {'d': 'e\\tf'}}"
    )


def test_a_pipe_is_refused_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(YamlError, match="must be a regular file, but is a pipe"):
        read_yaml_file(tmp_path / "pipe.yaml")
