"""The code of users passes a strict type checker."""

import re
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[1]
LOOP = """
from torch import Tensor
from mpcs_torch import ConcernSpec, MetaPatternConcernScore

lights = ConcernSpec(["red", "green"])
names: list[str] = [name.upper() for name in lights.classes]

def score(logits: Tensor, target: Tensor) -> Tensor:
    return MetaPatternConcernScore(num_classes=2, concern=lights)(logits, target)
"""


@pytest.mark.types
def test_the_examples_of_the_readme_and_a_loop_are_typed(tmp_path: Path) -> None:
    examples = re.findall(
        r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL
    )
    files = [tmp_path / f"example_{number}.py" for number in range(len(examples) + 1)]
    for file, example in zip(files, [*examples, LOOP], strict=True):
        file.write_text(example)
    # This is the cache that mypy filled before, because torch takes long to read.
    cache = ROOT / ".mypy_cache"
    told, errors, status = api.run(
        ["--strict", "--cache-dir", str(cache), *map(str, files)]
    )
    assert (status, errors) == (0, ""), told
