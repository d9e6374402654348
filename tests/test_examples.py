"""Every example runs as it stands."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("[!_]*.py"))
WITH_PROCESSES = {"distributed.py", "with_accelerate.py", "with_ray.py"}
"""Their functions must be found in the main module of other processes, so they get a process of their own."""


NEEDED = {
    "with_ray.py": {"ray": "ray"},
    "serve_a_rule.py": {"onnxruntime": "onnx", "onnxscript": "onnx"},
}
"""Modules of examples that not everybody has, and the extras that install them."""


def test_there_are_examples() -> None:
    assert {path.name for path in EXAMPLES} > WITH_PROCESSES


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:tensorboard", "ignore::FutureWarning:mlflow"
)
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            id=path.name,
            marks=[] if path.name == "plain_pytorch.py" else [pytest.mark.slow],
        )
        for path in EXAMPLES
    ],
)
def test_example_runs(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for module, extra in NEEDED.get(path.name, {}).items():
        pytest.importorskip(
            module, reason=f"the extra mpcs_torch[{extra}] is not installed"
        )
    monkeypatch.chdir(tmp_path)
    if path.name in WITH_PROCESSES:
        subprocess.run([sys.executable, str(path)], check=True)
    else:  # in this process, which has paid for the imports
        monkeypatch.setattr(sys, "argv", [str(path)])
        runpy.run_path(str(path), run_name="__main__")
    assert capfd.readouterr().out
