"""Build the packages, install them elsewhere, and use them: ``python -m tests.packages.smoke FOLDER``."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
IN_THE_WHEEL = (
    "py.typed",
    "configs/experiments/exp01.yaml",
    "configs/concerns/traffic-lights.yaml",
    "report/templates/base.html.j2",
)
SCORES = "id,target,red,yellow,green\n0,red,0.7,0.2,0.1\n1,green,0.1,0.2,0.7\n2,yellow,0.2,0.5,0.3\n3,red,0.1,0.3,0.6\n"
TRIALS = "score,label\n2.1,1\n0.3,1\n-0.4,0\n0.9,0\n-1.7,0\n"
AFTER = {
    "": [],
    "[cli]": [
        ["--version"],
        ["metrics"],
        ["score", "scores.csv", "--html", "scores.html"],
        ["detect", "trials.csv", "--html", "trials.html"],
    ],
    "[train]": [["train", "exp01", "epochs.count=3"], ["select", "runs/exp01"]],
}
"""The commands that work once an extra is installed."""


def check_wheel(wheel: Path) -> None:
    """Refuse a wheel without the files that the package reads, or with tests."""
    names = zipfile.ZipFile(wheel).namelist()
    missing = [name for name in IN_THE_WHEEL if f"mpcs_torch/{name}" not in names]
    assert not missing, f"{wheel.name} lacks {missing}"
    strangers = [name for name in names if not re.match(r"mpcs_torch(-[^/]*)?/", name)]
    assert not strangers, f"{wheel.name} has {strangers}"


def main(folder: Path) -> None:
    """Build, install the wheel without extras and with each, and run the README and some commands."""
    folder.mkdir(parents=True)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "MPCS_DATA_ROOT")
    }

    def run(*command: object) -> None:
        print(
            "$", *(str(part).replace(str(folder), "FOLDER") for part in command), flush=True
        )
        subprocess.run(
            [str(part) for part in command], cwd=folder, env=environment, check=True
        )

    run(sys.executable, "-m", "build", "--outdir", folder / "dist", ROOT)
    wheel, sdist = (
        next((folder / "dist").glob("*.whl")),
        next((folder / "dist").glob("*.tar.gz")),
    )
    check_wheel(wheel)
    (folder / "scores.csv").write_text(SCORES)
    (folder / "trials.csv").write_text(TRIALS)
    for number, example in enumerate(
        re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    ):
        (folder / f"readme_{number}.py").write_text(example)
    run(sys.executable, "-m", "venv", "venv")
    python, mpcs = folder / "venv" / "bin" / "python", folder / "venv" / "bin" / "mpcs"
    for extra, commands in AFTER.items():
        run(python, "-m", "pip", "install", "--quiet", f"{wheel}{extra}")
        if not extra:
            for example in sorted(folder.glob("readme_*.py")):
                run(python, "-W", "error", example)
        for command in commands:
            run(mpcs, *command)
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", sdist)
    run(python, "-c", "import mpcs_torch; print(mpcs_torch.MetaPatternConcernScore)")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
