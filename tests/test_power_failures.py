"""A power failure at any moment leaves whole files, and none that names what is not there."""

import ast
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

from mpcs_torch import ConcernSpec
from mpcs_torch.concern import save_concern
from mpcs_torch.evaluation.files.trials import Trials, TrialTable
from mpcs_torch.evaluation.files.write import write_trials
from mpcs_torch.functional.inputs.groups import Groups
from mpcs_torch.io import atomic_files as files
from mpcs_torch.learning import (
    CheckpointSelector,
    DecisionRule,
    SelectionRule,
    checkpoint_files,
)
from mpcs_torch.monitoring.watch import Watch
from mpcs_torch.report.monitor import write_monitor_report
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.result import RunResult
from tests.cli.shell import must_run
from tests.cli.test_cli import IRIS
from tests.monitoring.test_watch import CONCERN, SETTINGS, go_on
from tests.monitoring.test_watch import rows as log_rows
from tests.monitoring.test_watch import write as write_log
from tests.power_failure import PACKAGE, Image, image_of, power_may_fail, restore
from tests.trainer.toy import toy_config, toy_data

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="only there a folder can be flushed"
)

RULE = SelectionRule("mpcs", {"mpcs": "min"})
SCORES = (0.5, 0.4, 0.6, 0.3)
RUN = toy_config(
    epochs={"count": 4},
    training={"batch_size": 15, "save_seconds": 0},
    selector={"by": "mpcs", "keep_best_by": []},
)
Write = Callable[[Path, int], object]
"""Writes to a folder what has a number: first that of 1, later that of 2, and so on."""


def inputs(folder: Path) -> Path:
    """Write what the commands read, in two versions."""
    for n in (1, 2):
        (folder / f"p{n}.csv").write_text(
            f"red,green,target\n0.{n},0.{10 - n},green\n" + "0.8,0.2,red\n0.3,0.7,red\n" * 9
        )
        rows = [f"a,x,{n}.5,1\n", "b,x,-0.25,0\n", f"b,y,{n},1\n", "a,y,1,0\n"]
        (folder / f"s{n}.csv").write_text("".join(["enrollment,test,score,label\n", *rows]))
    (folder / "c.yaml").write_text("classes: [red, green]\n")
    for n in (1, 2):
        must_run("train", IRIS, f"epochs.count={n + 1}", f"name=run{n}", "--out", folder)
    predictions = folder / "p1.csv"
    calibrate = ("calibrate", "fit", predictions, "--method", "temperature")
    must_run(*calibrate, "--out", folder / "cal.pt")
    decide = ("decide", "fit", predictions, "--concern", folder / "c.yaml")
    must_run(*decide, "--out", folder / "rule.pt")
    return folder


@cache
def _kept_inputs() -> tuple[Path, TemporaryDirectory[str]]:
    kept = TemporaryDirectory()
    return inputs(Path(kept.name)), kept


def command(line: str) -> Write:
    """Return a writer that calls ``mpcs``, where IN/ and OUT/ are folders and # is the number of what to write."""

    def write(folder: Path, number: int) -> None:
        inputs, _ = _kept_inputs()
        words = line.replace("IN/", f"{inputs}/").replace("OUT/", f"{folder}/")
        must_run(*words.replace("#", str(number)).split(" "), "--overwrite")

    return write


def several_files(folder: Path, number: int) -> None:
    files.replace_files(
        {folder / name: lambda file: file.write(b"%d" % number) for name in "ab"}
    )


def matrix(folder: Path, number: int) -> None:
    pair = {
        "enrollment": Groups(["a", "b"], torch.arange(2)),
        "test": Groups(["x"], torch.zeros(2, dtype=torch.int64)),
    }
    trials = Trials(
        torch.tensor([0.5, number], dtype=torch.float64), torch.tensor([True, False])
    )
    write_trials(folder / "scores.txt", TrialTable(trials, None, pair), folder / "key.txt")


def watch(folder: Path, number: int) -> None:
    log = write_log(_kept_inputs()[0] / f"log{number}.csv", log_rows(20 * number))
    watched = go_on(Watch(SETTINGS, CONCERN), log)
    watched.save(folder / "state.json")
    write_monitor_report(watched, folder / "monitor.html")


WHOLE_FILES: Mapping[str, Write] = {
    "text": lambda folder, number: files.replace_text(folder / "a.txt", f"number {number}"),
    "several files": several_files,
    "manifest": lambda folder, number: checkpoint_files.Manifest(
        {"by": str(number)}, {}, []
    ).write(folder, flush=True),
    "decision rule": lambda folder, number: DecisionRule(
        ConcernSpec(2), calibration=None, seed=number
    ).save(folder / "rule.pt", overwrite=True),
    "concern": lambda folder, number: save_concern(
        ConcernSpec(1 + number), folder / f"concern-{number}.yaml"
    ),
    "result of a run": lambda folder, number: RunResult(number, "why", {}).write(folder),
    "key and list of trials": matrix,
    "state and report of a monitor": watch,
    **{
        line: command(line)
        for line in (
            "calibrate fit IN/p#.csv --method temperature --out OUT/cal.pt",
            "calibrate apply IN/cal.pt IN/p#.csv --out OUT/p.csv",
            "calibrate apply IN/cal.pt IN/p#.csv --out OUT/p.parquet",
            "calibrate apply IN/cal.pt IN/p#.csv --out OUT/p.tsv",
            "decide fit IN/p#.csv --concern IN/c.yaml --out OUT/rule.pt",
            "decide apply IN/rule.pt IN/p#.csv --out OUT/d.csv",
            "score IN/p#.csv --html OUT/report.html",
            "explore IN/p#.csv --out OUT/explore.html",
            "detect IN/s#.csv --no-intervals --html OUT/report.html --det OUT/det.csv",
            "report IN/run# --out OUT/report.html",
        )
    },
}
"""Writers of files that do not name each other."""


@dataclass
class Moments:
    """The states that power failures could have left of a folder that was written to several times."""

    during: list[list[Image]]
    """While the first was written, while the second was, and so on."""
    after: list[list[Image]]
    """Once the first was written, and so on."""
    written: list[Image]
    """The files that were there then."""
    modules: set[str]


def moments_of(write: Write, times: int) -> Moments:
    found = Moments([], [], [], set())
    with TemporaryDirectory() as name:
        folder = Path(name)
        with power_may_fail(folder) as disk:
            for number in range(1, times + 1):
                write(folder, number)
                found.during.append(disk.images)
                found.after.append(disk.possible_images())
                found.written.append(image_of(folder))
                disk.images = []
        found.modules = disk.modules
    return found


@cache
def of_whole_files(name: str) -> Moments:
    return moments_of(WHOLE_FILES[name], 2)


@cache
def of_a_selector() -> Moments:
    made: list[CheckpointSelector] = []

    def update(folder: Path, number: int) -> None:
        if number == 1:
            made.append(CheckpointSelector(folder, RULE))
        made[0].update(
            {"weight": torch.tensor(number)}, epoch=number, mpcs=SCORES[number - 1]
        )

    return moments_of(update, len(SCORES))


@cache
def of_a_run() -> Moments:
    return moments_of(lambda folder, _: run_in_folder(RUN, toy_data(), folder), 1)


def visible(image: Image) -> Image:
    """Return the files of an image but for those that wait for their names."""
    return {name: content for name, content in image.items() if not name.startswith(".")}


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE_FILES)
def test_a_file_is_as_it_was_or_whole_and_on_disk_once_it_is_written(name: str) -> None:
    moments = of_whole_files(name)
    before: Image = {}
    for during, after, written in zip(
        moments.during, moments.after, moments.written, strict=True
    ):
        assert written.keys() >= before.keys()
        assert written != before
        assert len(during) > 1, "nothing was followed"
        for image in during:
            for file, content in visible(image).items():
                assert content in (before.get(file), written[file]), (
                    f"{file} is neither old nor new"
                )
        assert after == [written]
        before = written


def test_no_epoch_of_a_selector_is_lost(tmp_path: Path) -> None:
    """Whoever goes on finds the epochs of all updates that have returned, and the best of them loads."""
    moments = of_a_selector()
    states = list[tuple[Image, set[int]]]()
    """Each image, with the epochs of which the last one may be."""
    for number, during in enumerate(moments.during, start=1):
        states += [(image, {number - 1, number}) for image in during]
    for number, after in enumerate(moments.after, start=1):
        states += [(image, {number}) for image in after]
    for place, (image, epochs) in enumerate(states):
        folder = tmp_path / str(place)
        folder.mkdir()
        selector = CheckpointSelector(restore(image, folder), RULE, resume=True)
        last = selector.last_epoch or 0
        assert last in epochs
        assert [epoch.number for epoch in selector.epochs] == list(range(1, last + 1))
        if last:
            best = torch.tensor(best_of(SCORES[:last]))
            assert selector.load_best() == {"weight": best}
        selector.update({"weight": torch.tensor(99)}, epoch=99, mpcs=0.0)
        assert selector.load_best() == {"weight": torch.tensor(99)}


def best_of(scores: tuple[float, ...]) -> int:
    return 1 + scores.index(min(scores))


@pytest.mark.slow
def test_a_run_goes_on_from_what_is_left(tmp_path: Path) -> None:
    moments = of_a_run()
    states = [image for image in moments.during[0] if "resume.pt" in image]
    assert len(states) > 4
    for number, image in enumerate(states):
        folder = restore(image, tmp_path / str(number))
        run_in_folder(RUN, toy_data(), folder, resume=True)
        assert moments.written[0].items() <= image_of(folder).items()


def test_a_run_that_has_a_result_has_all_that_belongs_to_it() -> None:
    moments = of_a_run()
    finished = [image for image in moments.during[0] if "result.json" in image]
    assert finished
    for image in [*finished, *moments.after[0]]:
        assert moments.written[0].items() <= image.items()


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text())


def test_every_module_that_replaces_files_was_cut_off_above() -> None:
    cut_off = set[str]()
    for moments in (of_a_selector(), of_a_run(), *map(of_whole_files, WHOLE_FILES)):
        cut_off |= moments.modules
    replacing = {"replace_text", "replace_file", "replace_files", "rename"}
    writing = set[str]()
    for module, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == files.__name__:
                names = {alias.name for alias in node.names}
                if names & replacing:
                    writing.add(module)
    assert writing
    assert writing - cut_off == set()


MAY_WRITE = {
    # By module: why it may write by other means.
    "io/atomic_files.py": "the mechanism",
    "paper/downloads.py": "a download is checked whenever it is read",
    "evaluation/files/write.py": "into an archive that is open for writing",
    "report/render.py": "into memory",
}
WRITES = {
    "write_text",
    "write_bytes",
    "fsync",
    "savefig",
    "touch",
    "rename",
    "renames",
    "copyfile",
    "mkstemp",
}


def opens_to_write(call: ast.Call) -> bool:
    """Return whether a call of ``open`` has a mode, such as "wb", that writes."""
    for argument in call.args:
        for node in ast.walk(argument):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                is_mode = set(node.value) <= set("rwaxbt+")
                if is_mode and set(node.value) & set("wax+"):
                    return True
    return False


def writes(call: ast.Call) -> bool:
    """Return whether a call writes or renames a file with other means than those of `files`."""
    function = call.func
    owner = name = ""
    if isinstance(function, ast.Attribute):
        owner, name = ast.unparse(function.value), function.attr
    elif isinstance(function, ast.Name):
        name = function.id
    if name == "open":
        return opens_to_write(call)
    if name == "replace":  # that of a text takes two arguments, that of a path one
        return owner == "os" or (len(call.args) == 1 and not call.keywords)
    is_ours = name == "rename" and not owner
    return name in WRITES and not is_ours


def test_all_other_modules_write_through_the_one_that_flushes() -> None:
    found = {
        module
        for module, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and writes(node)
    }
    assert found == set(MAY_WRITE)
