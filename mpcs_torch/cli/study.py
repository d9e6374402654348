"""``mpcs study``: compare methods of learning with human values over many seeds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpcs_torch.cli.options import DataRoot, Out
from mpcs_torch.study.plans import STUDIES

if TYPE_CHECKING:
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
    is resumed.
    """
    from mpcs_torch.study.figure import study_figure
    from mpcs_torch.study.results import Study, results_table, tune, verdict
    from mpcs_torch.study.tasks import tuned_tasks, tuning_tasks

    plan, folder = STUDIES[name], out / f"study-{name}"
    outcomes = _finish(f"study {name}, tuning", tuning_tasks(name, plan.tuning_seeds, data_root, folder))
    tuned = tune(outcomes, plan)
    rates = [(arm.method, arm.learning_rate) for arm in tuned]
    more = range(plan.tuning_seeds, plan.choice_seeds)
    outcomes += _finish(f"study {name}, more seeds", tuned_tasks(name, rates, more, data_root, folder))
    found = Study(outcomes, tuned, plan)
    chosen = [(arm.method, arm.learning_rate) for arm in (found.baseline, *found.candidates())]
    tasks = tuned_tasks(name, list(dict.fromkeys(chosen)), plan.fresh_seeds, data_root, folder)
    confirmed = found.confirm(_finish(f"study {name}, fresh seeds", tasks))
    results = [found.result(arm) for arm in found.arms()]
    table = results_table(found, results)
    text = f"{table.markdown()}\n\n{verdict(found, results, confirmed)}\n"
    (folder / "results.md").write_text(text, encoding="utf-8")
    (folder / "results.csv").write_text(table.csv(), encoding="utf-8")
    study_figure(found, results).savefig(folder / "figure.png", dpi=110)
    typer.echo(f"{text}\nwrote {folder / 'results.md'}, results.csv and figure.png")


def _finish(title: str, tasks: "list[StudyTask]") -> "list[Outcome]":
    from mpcs_torch.cli.progress import counting_bar
    from mpcs_torch.study.tasks import run_study

    outcomes = []
    with counting_bar(title, len(tasks)) as advance:
        for outcome in run_study(tasks):
            outcomes.append(outcome)
            advance()
    return outcomes
