"""The layout as a test: which part may import which, and what an import costs."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "mpcs_torch"

LIGHT = {"errors", "exit_statuses", "io", "processes", "public_names", "tables"}
TRAINER = {"concern", "functional", "metrics", "calibration", "learning", "trainer"} | LIGHT
MAY_IMPORT = {
    "__main__": {"cli"},
    "errors": {"error_sentences", "exit_statuses"},
    "exit_statuses": set(),
    "error_sentences": set(),
    "io": {"errors"},
    "processes": {"errors"},
    "public_names": set(),
    "tables": {"errors"},
    "concern": {"errors", "io", "error_sentences", "tables"},
    "functional": {"errors", "error_sentences"},
    "metrics": {"concern", "functional", "errors", "io", "plots", "public_names"},
    "calibration": {"functional", "errors"},
    "plots": {"errors", "functional"},
    "evaluation": {"learning", "calibration", "concern", "functional", "metrics", "plots"}
    | LIGHT,
    "learning": {"calibration", "concern", "functional"} | LIGHT,
    "monitoring": {"evaluation", "learning", "concern", "functional", "metrics", "plots"}
    | LIGHT,
    "trainer": TRAINER,
    "paper": TRAINER,
    "report": TRAINER | {"plots", "evaluation", "monitoring", "paper"},
    "integrations": {
        "calibration",
        "concern",
        "errors",
        "functional",
        "learning",
        "metrics",
        "plots",
    },
    "cli": TRAINER
    | {"plots", "evaluation", "error_sentences", "monitoring", "paper", "report"},
}
"""Part by part; each may import itself."""
FAMILIES = {"concern", "quality", "soft", "probability", "detection"}
COMPARISON = "comparison"
"""Compares systems by the functions of the families, so it imports them; none imports it."""

FILES = sorted(PACKAGE.rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def our_imports(path: Path) -> Iterator[str]:
    return (name for name in imports(path) if name.split(".")[0] == "mpcs_torch")


def test_every_folder_has_its_arrows() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert folders | files == set(MAY_IMPORT)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if part == "__init__":
        return
    for name in our_imports(path):
        imported = name.split(".")[1] if "." in name else "the top level"
        assert imported == part or imported in MAY_IMPORT[part], (
            f"{path.name} imports {name}"
        )


def test_the_package_imports_no_example_and_no_test() -> None:
    outside = {
        path.name: name
        for path in FILES
        for name in imports(path)
        if name.split(".")[0] in ("benchmarks", "examples", "tests")
    }
    assert outside == {}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_are_named_after_what_they_hold(path: Path) -> None:
    assert path.stem not in {"utils", "helpers", "common", "misc"}


def modules_loaded_by(statement: str) -> set[str]:
    code = f"import sys, json; {statement}; print(json.dumps(sorted(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(json.loads(result.stdout))


def loaded_by(statement: str) -> set[str]:
    return {name.split(".")[0] for name in modules_loaded_by(statement)}


@pytest.mark.slow
def test_importing_the_package_loads_nothing_of_the_trainer() -> None:
    ours = "import torchmetrics; theirs = set(sys.modules); from mpcs_torch import *; print(*set(sys.modules) - theirs)"
    loaded = subprocess.run(
        [sys.executable, "-c", f"import sys; {ours}"],
        capture_output=True,
        text=True,
        check=True,
    )
    heavy = {
        "torchvision",
        "sklearn",
        "matplotlib",
        "pydantic",
        "typer",
        "yaml",
        "rich",
        "jinja2",
    }
    assert not {name.split(".")[0] for name in loaded.stdout.split()} & heavy


HEAVY = {"torchmetrics", "torchvision", "transformers", "sklearn", "pandas", "matplotlib"}
ROWS = "torch.eye(3).repeat(20, 1).add(1).div(4), torch.arange(60) % 3"


@pytest.mark.parametrize(
    "statement",
    [
        "from mpcs_torch import evaluate",
        f"import torch; from mpcs_torch import evaluate; str(evaluate({ROWS}))",
        f"import torch; from mpcs_torch import ConcernSpec, evaluate; evaluate({ROWS}, concern=ConcernSpec(3))",
        "import mpcs_torch.metrics.named_metrics",
        "import mpcs_torch.metrics",
        "from mpcs_torch.functional import *",
        "from mpcs_torch.learning import *",
    ],
)
def test_what_needs_no_metric_class_does_not_load_torchmetrics(statement: str) -> None:
    assert not loaded_by(statement) & HEAVY


def test_scoring_a_file_loads_neither_torchmetrics_nor_pandas(tmp_path: Path) -> None:
    file = tmp_path / "p.csv"
    file.write_text("label,a,b\n" + "a,0.7,0.3\nb,0.2,0.8\na,0.4,0.6\n" * 10)
    command = f"import sys; sys.argv = ['mpcs', 'score', {str(file)!r}]; from mpcs_torch.cli import main"
    silence = "quiet = contextlib.redirect_stdout(io.StringIO()); quiet.__enter__()"
    statement = f"{command}; import contextlib, io; {silence}"
    code = f"""{statement}
try: main()
except SystemExit: pass
quiet.__exit__(None, None, None)
import json; print(json.dumps(sorted(sys.modules)))"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not {name.split(".")[0] for name in json.loads(result.stdout)} & HEAVY


def test_importing_the_package_alone_loads_nothing() -> None:
    ours = {
        name
        for name in modules_loaded_by("import mpcs_torch")
        if name.startswith("mpcs_torch")
    }
    assert ours == {"mpcs_torch", "mpcs_torch.public_names"}
    assert "torch" not in loaded_by("import mpcs_torch")


LEARNING = "from mpcs_torch.learning import MPCSLR, CheckpointSelector, SoftmaxMarginLoss"


@pytest.mark.slow
def test_parts_for_a_loop_need_torch_and_numpy_alone() -> None:
    theirs = modules_loaded_by(
        "import torch, torch.optim.lr_scheduler, torch.distributed, torch.nn.functional"
    )
    loaded = {name.split(".")[0] for name in modules_loaded_by(LEARNING) - theirs}
    assert loaded - set(sys.stdlib_module_names) <= {"mpcs_torch", "numpy"}


@pytest.mark.parametrize(
    "command", ["--help", "data list --data-root nowhere", "concern check traffic-lights"]
)
def test_commands_that_compute_nothing_start_without_torch(command: str) -> None:
    call = [sys.executable, "-X", "importtime", "-m", "mpcs_torch", *command.split()]
    imports = subprocess.run(call, capture_output=True, text=True, check=True).stderr
    names = {line.rpartition("|")[2].strip() for line in imports.splitlines()}
    assert "typer" in names
    assert not names & {"torch", "torchmetrics", "sklearn", "pyarrow", "matplotlib"}


def test_importing_integrations_loads_no_framework() -> None:
    frameworks = {
        "accelerate",
        "ignite",
        "lightning",
        "pytorch_lightning",
        "sklearn",
        "transformers",
    }
    assert not loaded_by("import mpcs_torch.integrations") & (frameworks | {"torch"})


@pytest.mark.parametrize("part", ["functional", "metrics"])
def test_no_family_imports_another(part: str) -> None:
    assert {
        path.name
        for path in (PACKAGE / part).iterdir()
        if path.is_dir() and path.name[0] != "_"
    } >= FAMILIES
    between = list[str]()
    for family in FAMILIES:
        others = {*FAMILIES, COMPARISON} - {family}
        for path in (PACKAGE / part / family).glob("*.py"):
            for name in our_imports(path):
                folders = name.split(".")  # mpcs_torch, the part, and then the family
                if len(folders) > 2 and folders[2] in others:
                    between.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert between == []


def test_families_have_the_same_names_everywhere() -> None:
    for part in ("functional", "metrics"):
        assert all((Path(__file__).parent / part / family).is_dir() for family in FAMILIES)


@pytest.mark.slow
def test_a_report_of_scores_needs_nothing_of_the_paper() -> None:
    assert not any(
        "paper" in name for name in modules_loaded_by("import mpcs_torch.report.score")
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_figures_are_drawn_in_plots_alone(path: Path) -> None:
    if path.relative_to(PACKAGE).parts[0] != "plots":
        assert "Figure(" not in path.read_text()
    elif path.stem != "canvas":
        assert not re.search(r"#[0-9a-f]{6}", path.read_text()), (
            "colours stand in canvas.py"
        )


READS = re.compile(
    r"\.open\(\"r|\.open\(enc|ParquetFile\(|load_tensors\(|map_array\(|load_workbook\(|ZipFile\(path\)"
)


def test_two_modules_alone_open_files_of_predictions() -> None:
    parts = [
        path
        for part in ("evaluation", "monitoring")
        for path in (PACKAGE / part).rglob("*.py")
    ]
    assert sorted(path.name for path in parts if READS.search(path.read_text())) == [
        "arrays.py",
        "formats.py",
    ]


def test_a_format_is_one_function_of_at_most_500_nodes() -> None:
    sources = [
        (PACKAGE / "evaluation" / "files" / name).read_text()
        for name in ("arrays.py", "formats.py")
    ]
    nodes = [
        node
        for source in sources
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
    ]
    formats = [node for node in nodes if "table" in node.name]
    assert len(formats) > 10
    assert [node.name for node in formats if len([*ast.walk(node)]) > 500] == []


def test_no_files_import_each_other_in_a_circle() -> None:
    names = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path
        for path in FILES
    }
    graph = {name: imports_at_run_time(path) & names.keys() for name, path in names.items()}
    # A circle raises a CycleError.
    assert len([*TopologicalSorter(graph).static_order()]) == len(FILES)


def imports_at_run_time(path: Path) -> set[str | None]:
    """Return the modules from which a file imports names, other than for type checkers."""
    nodes = [*ast.walk(ast.parse(path.read_text()))]
    blocks = [
        node
        for node in nodes
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    typed = {id(node) for block in blocks for node in ast.walk(block)}
    return {
        node.module
        for node in nodes
        if isinstance(node, ast.ImportFrom) and id(node) not in typed
    }
