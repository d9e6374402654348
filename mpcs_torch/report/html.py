"""The case study's story as one HTML file that needs nothing beside it."""

import base64
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure

from mpcs_torch.paper.case_study import Pick, picks, picks_table
from mpcs_torch.paper.experiments import FinishedRun
from mpcs_torch.paper.published import BENCHMARKS
from mpcs_torch.plots import confusion_matrix
from mpcs_torch.report.figures import to_svg, trends
from mpcs_torch.trainer.records import pick


def write_report(run: FinishedRun, path: Path) -> None:
    """Write trends, the confusion matrices of the picks of accuracy and MPCS, and the table of all picks."""
    chosen = picks(run)
    by_accuracy = _of_turn(chosen, pick(run.records, "accuracy"))
    by_mpcs = _of_turn(chosen, pick(run.records, "mpcs"))
    released = run.concern.released()
    names = run.concern.class_names
    page = render(
        "case_study",
        run=run,
        benchmarks=", ".join(BENCHMARKS),
        by_accuracy=by_accuracy,
        by_mpcs=by_mpcs,
        picks=picks_table(chosen),
        released_pairs=int(released.sum()),
        trends=data_uri(trends(run.records, [by_accuracy.turn, by_mpcs.turn])),
        matrices=[
            (title, data_uri(confusion_matrix(chosen_one.confusion, released, names, title)))
            for title, chosen_one in (
                (f"Picked by accuracy: turn {by_accuracy.turn}, {by_accuracy.dangerous} dangerous", by_accuracy),
                (f"Picked by MPCS: turn {by_mpcs.turn}, {by_mpcs.dangerous} dangerous", by_mpcs),
            )
        ],
    )
    path.write_text(page, encoding="utf-8")


def _of_turn(chosen: list[Pick], turn: int) -> Pick:
    return next(chosen_one for chosen_one in chosen if chosen_one.turn == turn)


def render(template: str, **content: object) -> str:
    """A page from a template of ours."""
    environment = Environment(
        loader=PackageLoader("mpcs_torch.report", "templates"), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template(f"{template}.html.j2").render(content)


def data_uri(figure: Figure) -> str:
    """The figure as an image that a page holds itself."""
    return "data:image/svg+xml;base64," + base64.b64encode(to_svg(figure).encode()).decode()
