"""What the README shows is there and runs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for example in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL):
        exec(example, {})
    printed = capsys.readouterr().out
    assert "tensor(1., dtype=torch.float64)" in printed
    assert "| the rule" in printed


def test_linked_files_exist() -> None:
    links = re.findall(r"\]\(((?!http|#)[^)]+)\)", README)
    assert links
    assert all((ROOT / link).exists() for link in links)


def test_the_promised_commands_are_targets() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"^make (\w+)", README, flags=re.MULTILINE)) <= targets
