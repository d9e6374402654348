"""``mpcs study``: compare methods of learning with human values over many seeds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpcs_torch.cli.options import DataRoot, Out
from mpcs_torch.study.plans import STUDIES

if TYPE_CHECKING:
    from mpcs_torch.processes.world import World
    from mpcs_torch.study.tasks import Outcome, StudyTask


def _check_name(name: str) -> str:
    if name not in STUDIES:
        raise typer.BadParameter(f"{name}: must be one of {', '.join(STUDIES)}")
    return name


def _names() -> list[str]:
    return list(STUDIES)


def study(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help=f"One of {', '.join(STUDIES)}.", callback=_check_name, autocompletion=_names
        ),
    ] = "mnist",
    data_root: DataRoot = Path("data"),
    out: Out = Path("runs"),
) -> None:
    """Train every method with every learning rate and seed, and compare the methods on test data.

    Validation data choose learning rates, under a few seeds, and then method, checkpoint and decision, under more; the
    chosen methods are trained again with fresh seeds. Runs are parallel and go to OUT/study-NAME; an interrupted study
    is resumed. Under torchrun, with one process for each machine, the machines share the runs.
    """
    from mpcs_torch.processes.world import joined

    with joined() as world:
        _study(name, data_root, out / f"study-{name}", world)


def _study(name: str, data_root: Path, folder: Path, world: "World") -> None:
    from mpcs_torch.study.figure import study_figure
    from mpcs_torch.study.results import Study, results_table, tune, verdict
    from mpcs_torch.study.tasks import tuned_tasks, tuning_tasks

    plan = STUDIES[name]
    outcomes = _finish(f"study {name}, tuning", tuning_tasks(name, plan.tuning_seeds, data_root, folder), world)
    tuned = tune(outcomes, plan)
    rates = [(arm.method, arm.learning_rate) for arm in tuned]
    more = range(plan.tuning_seeds, plan.choice_seeds)
    outcomes += _finish(f"study {name}, more seeds", tuned_tasks(name, rates, more, data_root, folder), world)
    found = Study(outcomes, tuned, plan)
    chosen = [(arm.method, arm.learning_rate) for arm in (found.baseline, *found.candidates())]
    tasks = tuned_tasks(name, list(dict.fromkeys(chosen)), plan.fresh_seeds, data_root, folder)
    confirmed = found.confirm(_finish(f"study {name}, fresh seeds", tasks, world))
    if not world.is_first:
        return
    results = [found.result(arm) for arm in found.arms()]
    table = results_table(found, results)
    text = f"{table.markdown()}\n\n{verdict(found, results, confirmed)}\n"
    (folder / "results.md").write_text(text, encoding="utf-8")
    (folder / "results.csv").write_text(table.csv(), encoding="utf-8")
    study_figure(found, results).savefig(folder / "figure.png", dpi=110)
    typer.echo(f"{text}\nwrote {folder / 'results.md'}, results.csv and figure.png")


def _finish(title: str, tasks: "list[StudyTask]", world: "World") -> "list[Outcome]":
    """Run the tasks of this process, and return the outcomes of all."""
    from mpcs_torch.cli.progress import counting_bar
    from mpcs_torch.study.tasks import run_study

    own = tasks[world.rank :: world.size]
    outcomes = []
    with counting_bar(title, len(own), shown=world.is_first) as advance:
        for outcome in run_study(own):
            outcomes.append(outcome)
            advance()
    return [outcome for told in world.told_by_all(outcomes) for outcome in told]
