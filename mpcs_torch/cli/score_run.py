"""The work of ``mpcs score`` between its options and its output."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mpcs_torch.cli.progress import counting_bar, row_counter
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.processes.world import World
from mpcs_torch.scoring import Predictions, PredictionsError, score
from mpcs_torch.scoring.model_files import ModelFiles, open_models
from mpcs_torch.scoring.model_intervals import with_intervals
from mpcs_torch.scoring.model_scores import INDEPENDENT, ModelScores
from mpcs_torch.scoring.models import score_models
from mpcs_torch.scoring.own_intervals import own_intervals
from mpcs_torch.scoring.row_means import RowMeans
from mpcs_torch.scoring.row_risks import RowRisks

if TYPE_CHECKING:
    from mpcs_torch.metrics.by_name import MetricEntry

RESAMPLES = 200
"""Of rows or clusters, for several files or clusters: it takes several times as long as scoring."""


def scored(
    files: ModelFiles,
    concern: ConcernSpec | None,
    world: World,
    *,
    entries: "Sequence[MetricEntry] | None",
    settings: Mapping[str, Any],
    development: Path | None,
    resamples: int | None,
    keeps_risks: bool,
) -> ModelScores:
    """Score the files, and compare them if they are several; with `keeps_risks`, figures of certainty can be drawn."""
    if world.size > 1 and (len(files.paths) > 1 or files.columns):
        problem = "several processes score one file, without --by and --cluster"
        raise typer.BadParameter(problem, param_hint="PREDICTIONS")
    opened = open_models(files, None if concern is None else concern.classes)
    risks = {name: RowRisks() for name in opened} if keeps_risks and world.is_first else {}
    learned = None if development is None else Predictions(development, from_logits=files.from_logits)
    shown = f"score {', '.join(path.name for path in files.paths)}"
    with row_counter(shown, files.paths, shown=world.is_first) as advance:
        if len(opened) == 1 and not files.columns:
            means = None if resamples == 0 or not world.is_first else RowMeans(resamples or RESAMPLES)
            [(name, predictions)] = opened.items()
            alone = score(
                predictions,
                concern,
                advance,
                entries=entries,
                settings=settings,
                world=world,
                development=learned,
                listeners=[*([] if means is None else [means]), *risks.values()],
            )
            if means is not None:
                alone = own_intervals(alone, concern, means, resamples)
            return ModelScores({name: alone}, notes=[INDEPENDENT] if alone.intervals else [], risks=risks)
        resamples = RESAMPLES if resamples is None else resamples
        found, kept = score_models(
            opened,
            concern,
            advance,
            entries=entries,
            settings=settings,
            development=learned,
            by=files.by,
            cluster=files.cluster,
            identifier=files.options.identifier if len(opened) > 1 else None,
            resamples=resamples,
            listeners={name: [of_model] for name, of_model in risks.items()},
        )
    found = found._replace(risks=risks)
    if kept is None:
        return found
    with counting_bar("bootstrap", resamples * (1 + (len(opened) > 1))) as advance_resamples:
        try:
            return with_intervals(found, kept, cluster=files.cluster, resamples=resamples, advance=advance_resamples)
        except ValueError as error:
            raise PredictionsError(files.paths[0], f"{error} Pass --resamples 0 to leave it out.") from None
