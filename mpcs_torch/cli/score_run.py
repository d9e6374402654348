"""The work of ``mpcs score`` between its options and its output."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpcs_torch.cli.progress import row_counter
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.evaluation.classifier_files import ModelFiles, RowRisks, open_models, score_models
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.processes.world import World

if TYPE_CHECKING:
    from mpcs_torch.evaluation import Result
    from mpcs_torch.evaluation.classifier_scores import ClassifierScores
    from mpcs_torch.metrics.by_name import MetricEntry


def scored(
    files: ModelFiles,
    concern: ConcernSpec | None,
    world: World,
    *,
    entries: "Sequence[MetricEntry] | None",
    settings: Mapping[str, Any],
    development: Path | None,
    intervals: bool,
    keeps_risks: bool,
) -> "tuple[Result[ClassifierScores], dict[str, RowRisks]]":
    """Evaluate the files, and compare them if they are several.

    Returns:
        The result, and if asked for the risks of the rows of each model, for figures of certainty.
    """
    opened = open_models(files, None if concern is None else concern.classes)
    risks = {name: RowRisks() for name in opened} if keeps_risks else {}
    learned = None if development is None else Predictions(development, from_logits=files.from_logits)
    shown = f"score {', '.join(path.name for path in files.paths)}"
    with row_counter(shown, files.paths, shown=world.is_first) as advance:
        found = score_models(
            opened,
            concern,
            advance,
            entries=entries,
            settings=settings,
            development=learned,
            by=files.by,
            cluster=files.cluster,
            identifier=files.options.identifier if len(opened) > 1 else None,
            intervals=intervals,
            world=world,
            risks=risks,
        )
    return found, risks
