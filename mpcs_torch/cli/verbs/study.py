"""``mpcs study``: compare methods of learning with human values over many seeds."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpcs_torch.cli.console import COMMAND_LINE, note, print_json, say, text_of
from mpcs_torch.cli.failures import told_how_to_go_on
from mpcs_torch.cli.options import AsJson, DataRoot, Out, Quiet
from mpcs_torch.study.plans import STUDIES

if TYPE_CHECKING:
    from mpcs_torch.processes.world import World
    from mpcs_torch.study.results import Arm, Result
    from mpcs_torch.study.tasks import Outcome, StudyTask


def _check_name(name: str) -> str:
    if name not in STUDIES:
        raise typer.BadParameter(f"{name}: must be one of {', '.join(STUDIES)}")
    return name


def study(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help=f"One of {', '.join(STUDIES)}.",
            callback=_check_name,
            autocompletion=lambda: list(STUDIES),
        ),
    ] = "mnist",
    data_root: DataRoot = Path("data"),
    out: Out = Path("runs"),
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Train every method with every learning rate and seed, and compare the methods on test data.

    Validation data choose learning rates, under a few seeds, and then method, checkpoint and decision, under more; the
    chosen methods are trained again with fresh seeds. Runs are parallel and go to OUT/study-NAME; an interrupted study
    is resumed. Under torchrun, with one process for each machine, the machines share the runs.
    """
    from mpcs_torch.processes.world import joined

    again = f"; finished runs are kept, and the same command goes on with the others: {COMMAND_LINE}"
    with joined() as world, told_how_to_go_on(lambda: again) if world.size == 1 else nullcontext():
        _study(name, data_root, out / f"study-{name}", world, as_json=as_json)


def _study(name: str, data_root: Path, folder: Path, world: "World", *, as_json: bool) -> None:
    from mpcs_torch.study.results import Study, results_table, study_figure, tune, verdict
    from mpcs_torch.study.tasks import tuned_tasks, tuning_tasks

    plan = STUDIES[name]
    outcomes = _finish(f"study {name}, tuning", tuning_tasks(name, plan.tuning_seeds, data_root, folder), world)
    tuned = tune(outcomes, plan)
    rates = [(arm.method, arm.learning_rate) for arm in tuned]
    more = range(plan.tuning_seeds, plan.choice_seeds)
    outcomes += _finish(f"study {name}, more seeds", tuned_tasks(name, rates, more, data_root, folder), world)
    compared = Study(outcomes, tuned, plan)
    chosen = [(arm.method, arm.learning_rate) for arm in (compared.baseline, *compared.candidates())]
    tasks = tuned_tasks(name, list(dict.fromkeys(chosen)), plan.fresh_seeds, data_root, folder)
    confirmed = compared.confirm(_finish(f"study {name}, fresh seeds", tasks, world))
    if not world.is_first:
        return
    results = [compared.result(arm) for arm in compared.arms()]
    table = results_table(compared, results)
    sentences = verdict(compared, results, confirmed)
    (folder / "results.md").write_text(f"{table.markdown()}\n\n{sentences}\n", encoding="utf-8")
    (folder / "results.csv").write_text(table.csv(), encoding="utf-8")
    study_figure(compared, results).savefig(folder / "figure.png", dpi=110)
    if as_json:
        methods = [_plain(result, compared.baseline) for result in results]
        print_json({"methods": methods, "verdict": sentences.splitlines()})
    else:
        say(f"{text_of(table)}\n\n{sentences}\n")
    note(f"wrote {folder / 'results.md'}, results.csv and figure.png")


def _plain(result: "Result", baseline: "Arm") -> dict[str, Any]:
    """Return the values of an arm; intervals of 95 % are lists of a mean, its lower and its upper limit."""
    arm = {"method": result.arm.title, "learning_rate": result.arm.learning_rate, "is_baseline": result.arm == baseline}
    return {**arm, **{name: value for name, value in vars(result).items() if name != "arm"}, "helps": result.helps}


def _finish(title: str, tasks: "list[StudyTask]", world: "World") -> "list[Outcome]":
    """Run the tasks of this process, and return the outcomes of all."""
    from mpcs_torch.cli.progress import counting_bar
    from mpcs_torch.study.tasks import run_study

    tasks = tasks[world.rank :: world.size]
    outcomes = []
    with counting_bar(title, len(tasks), shown=world.is_first) as advance:
        for outcome in run_study(tasks):
            outcomes.append(outcome)
            advance()
    return [outcome for of_process in world.told_by_all(outcomes) for outcome in of_process]
