"""Mutation testing: change one place of the core at a time, run the tests that reach it, and list what none notices.

``make mutants`` runs all tests under coverage, then ``python -m tests.mutants COVERAGE COUNT SEED``. This process
imports torch and collects the tests once; a mutant is a fork of it in which one function has other code. It runs the
tests that reach the changed line, until one fails or the seconds are over: those of its module first, then a test of
each file in turn, of which those that reach the fewest files come first. A failure counts if the same test passes
without the mutation. Texts, types, errors, and what is outside of functions are not mutated. (mutmut leaves out
decorated functions; cosmic-ray starts a process, and torch with it, for each mutant.)
"""

import ast
import gc
import multiprocessing
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from time import monotonic
from types import CodeType, FunctionType
from typing import Any

import pytest
from coverage import CoverageData

ROOT = Path(__file__).parents[1]
FOLDERS = ("functional", "learning", "calibration", "metrics", "evaluation")
CORE = (
    *(f"{folder}/**/*.py" for folder in FOLDERS),
    "trainer/loop.py",
    "trainer/resume.py",
)
SECONDS = 60
"""The seconds of tests for a mutant that no test notices."""
HANGS = 200
"""The seconds after which a mutant counts as hanging."""
GUARDS = ("stacklevel", "strict", "device")
"""Arguments that guard against mistakes, and change no result."""
LET_BE = (ast.Raise, ast.Assert, ast.JoinedStr, ast.AnnAssign, ast.Import, ast.ImportFrom)
PAIRS = "Lt LtE,Gt GtE,Eq NotEq,Is IsNot,In NotIn,And Or,Add Sub,Mult Div,BitAnd BitOr,min max,amin amax,argmin argmax"
PAIRS += ",minimum maximum,any all,sum mean,floor ceil,zeros ones,first last"
SWAPS = dict[str, str]()
"""The name that replaces each name of a pair: the other one."""
for pair in PAIRS.split(","):
    one, other = pair.split()
    SWAPS |= {one: other, other: one}
FORK = multiprocessing.get_context("fork")


def changes(node: Any) -> Iterator[dict[str, object]]:
    """Give the fields of a node that make it another one."""
    # Comparisons have several operators, other operations one.
    operators = getattr(node, "ops", [getattr(node, "op", None)])
    name = type(operators[0]).__name__
    swapped = getattr(ast, SWAPS[name]) if name in SWAPS else None
    match node:
        case ast.Compare():
            yield {"ops": [swapped(), *node.ops[1:]]}
        case ast.BinOp() | ast.BoolOp() | ast.AugAssign() if swapped:
            yield {"op": swapped()}
        case ast.UnaryOp():
            yield {"operand": ast.UnaryOp(node.op, node.operand)}
        case ast.Constant(value=bool()):
            yield {"value": not node.value}
        case ast.Constant(value=int() | float()):
            yield {"value": node.value + (-1 if node.value == 1 else 1)}
        case ast.Name(id=name) if name in SWAPS:
            yield {"id": SWAPS[name]}
        case ast.Attribute(attr=name) if name in SWAPS:
            yield {"attr": SWAPS[name]}
        case ast.If() | ast.IfExp() | ast.While():
            yield {"test": ast.UnaryOp(ast.Not(), node.test)}
        case ast.Expr(value=ast.Call()):
            yield {"value": ast.Constant(None)}
        case ast.Call(keywords=[*_, last]) if last.arg not in GUARDS:
            yield {"keywords": node.keywords[:-1]}


def places(
    node: ast.AST, function: ast.FunctionDef | None = None
) -> Iterator[tuple[ast.FunctionDef, Any, dict]]:
    """Give each change below a node: the outermost function around it, the changed node and its new fields."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.keyword) and child.arg in GUARDS:
            continue
        if function is not None and not isinstance(child, LET_BE):
            yield from ((function, child, change) for change in changes(child))
            yield from places(child, function)
        elif function is None and isinstance(child, ast.ClassDef | ast.FunctionDef):
            outermost = child if isinstance(child, ast.FunctionDef) else None
            yield from places(ast.Module(child.body, []), outermost)


def code_of(tree: ast.Module, function: ast.FunctionDef, path: Path) -> CodeType:
    """Compile a file, and return the code of one of its functions."""
    first_line = min(part.lineno for part in [function, *function.decorator_list])
    waiting = [compile(ast.fix_missing_locations(tree), str(path), "exec")]
    while True:
        code = waiting.pop()
        if code.co_name == function.name and code.co_firstlineno == first_line:
            return code
        waiting += [inner for inner in code.co_consts if isinstance(inner, CodeType)]


def replace(code: CodeType) -> None:
    """Give a function of the core, in this process, its other code."""
    key = attrgetter("co_filename", "co_name", "co_firstlineno")
    import_module(".".join(Path(code.co_filename).relative_to(ROOT).with_suffix("").parts))
    for each in gc.get_objects():
        if type(each) is FunctionType and key(each.__code__) == key(code):
            each.__code__ = code


def mutant(
    path: Path, number: int, reached: dict[int, list[str]]
) -> tuple[str, set[str], CodeType] | None:
    """Describe a mutant of a file, with the tests that reach it and its code; None if it could not take its place."""
    tree = ast.parse(path.read_text())
    function, node, change = list(places(tree))[number]
    before = code_of(tree, function, path)
    old = ast.unparse(node).split("\n")[0]
    vars(node).update(change)
    after = code_of(tree, function, path)
    new = ast.unparse(node).split("\n")[0]
    if before == after or before.co_freevars != after.co_freevars:
        return None
    # Coverage knows the first line of a statement, which may be before that of the node.
    lines = [line for line in reached if function.lineno < line <= node.lineno]
    tests = reached[max(lines)] if lines else []
    description = f"{path.relative_to(ROOT)}:{node.lineno}  {old}  ->  {new}"
    return description, {test.removesuffix("|run") for test in tests}, after


class Judge:
    """A pytest plugin that runs the collected tests against mutants, instead of once."""

    def __init__(self, coverage: str, count: int, seed: int) -> None:
        data = CoverageData(coverage)
        data.read()
        files = sorted(path for part in CORE for path in ROOT.glob(f"mpcs_torch/{part}"))
        reached = {path: data.contexts_by_lineno(str(path)) for path in files}
        self.breadth = Counter[str]()
        """The number of files that each test reaches."""
        for tests_by_line in reached.values():
            self.breadth.update(set(chain.from_iterable(tests_by_line.values())))
        drawn = list[tuple[Path, int]]()
        for path in files:
            changed = list(places(ast.parse(path.read_text())))
            drawn += [(path, number) for number in range(len(changed))]
        random.Random(seed).shuffle(drawn)
        made = (mutant(path, number, reached[path]) for path, number in drawn)
        self.mutants = list(islice(filter(None, made), count))
        self.survivors = []
        self.failed = False

    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings  # pytest has to import its plugins itself

        # Any failure will do, not only the simplest.
        phases = (
            Phase.explicit,
            Phase.generate,
        )
        settings.register_profile(
            "mutants", deadline=None, database=None, derandomize=True, phases=phases
        )
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        with ProcessPoolExecutor(2, mp_context=FORK) as pool:
            noticed = pool.map(noticed_by, range(len(self.mutants)))
            for (description, tests, _), test in zip(self.mutants, noticed, strict=True):
                print(f"{description}: {test or 'SURVIVED'}", flush=True)
                if not test:
                    self.survivors.append(f"{description} ({len(tests)} tests reach it)")
        return True

    def first_failure(
        self, items: Sequence[pytest.Item], code: CodeType | None
    ) -> int | None:
        """Run tests in a fork; return the number of the first that fails, -1 if the fork dies or hangs."""
        failed = FORK.Value("i", len(items))
        with tempfile.TemporaryDirectory() as folder:
            process = FORK.Process(target=self.run, args=(items, code, failed, folder))
            process.start()
            process.join(HANGS)
            process.kill()
            process.join()
        if process.exitcode:
            return -1
        return None if failed.value == len(items) else failed.value

    def run(
        self, items: Sequence[pytest.Item], code: CodeType | None, failed: Any, folder: str
    ) -> None:
        end = monotonic() + SECONDS
        tempfile.tempdir = folder
        os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        if code is not None:
            replace(code)
        for number, item in enumerate(items):
            next_item = items[number + 1] if number + 1 < len(items) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=next_item)
            if self.failed:
                failed.value = number
            if self.failed or monotonic() > end:
                return


def in_turn(items: Sequence[pytest.Item], stem: str) -> list[pytest.Item]:
    """Return the tests of a module first, then the next test of each file in turn: those of a file are alike."""
    by_breadth = sorted(
        items, key=lambda item: (judge.breadth[f"{item.nodeid}|run"], item.nodeid)
    )
    taken = Counter[Path]()
    turns = dict[str, int]()
    for item in by_breadth:
        turns[item.nodeid] = taken[item.path]
        taken[item.path] += 1
    return sorted(
        by_breadth, key=lambda item: (stem not in item.path.stem, turns[item.nodeid])
    )


def noticed_by(number: int) -> str:
    """Return the test that notices a mutant, or nothing."""
    _, tests, code = judge.mutants[number]
    reaching = [judge.items[test] for test in tests if test in judge.items]
    stem = Path(code.co_filename).stem
    named = [item for item in judge.items.values() if stem in item.path.stem]
    waiting = in_turn(reaching or named, stem)  # coverage does not follow forks
    while waiting:
        failed = judge.first_failure(waiting, code)
        if failed is None:
            return ""
        if failed < 0:
            return "no test, but it hangs or dies"
        if judge.first_failure([waiting[failed]], None) is None:
            return waiting[failed].nodeid
        del waiting[failed]
    return ""


if __name__ == "__main__":
    judge = Judge(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    pytest.main(
        ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:pytest_cov"],
        plugins=[judge],
    )
    print(
        f"{len(judge.mutants) - len(judge.survivors)} of {len(judge.mutants)} were noticed. Survivors:",
        *judge.survivors,
        sep="\n",
    )
