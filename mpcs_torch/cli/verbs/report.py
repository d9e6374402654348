"""``mpcs report``: write the report of finished training runs, or of recorded epochs."""

from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli.console import COMMAND_LINE, note, print_warnings, printed_warnings
from mpcs_torch.cli.options import DataRoot, TrustCode, check_out, demand, shared
from mpcs_torch.errors import printable


@shared("overwrite", "quiet")
def report(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER", exists=True, file_okay=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option(dir_okay=False, show_default="FOLDER/report.html for one folder"),
    ] = None,
    data_root: DataRoot = Path("data"),
    trust_code: TrustCode = False,
) -> None:
    """Write one page about finished runs or recorded epochs: the picked epoch and why, and all figures.

    For runs of mpcs train, the page has the costliest errors; several runs are compared. Test samples are predicted
    again from the checkpoints that were kept. The code that the config.yaml of a run names by import paths is run only
    with --trust-code. For folders of a CheckpointSelector, and for seeds of one setting (as in mpcs
    select), the page has the recorded metrics, and no code is run.

    Args:
        folders: Folder of a finished run, folder of a CheckpointSelector, or a folder of such folders.
        out: HTML file to write.
    """
    if out is None:
        demand(len(folders) == 1, "out_of_several", "--out")
        out = folders[0] / "report.html"
    check_out(out)

    from mpcs_torch.trainer.pooled_seeds import readings, seeds_by_setting
    from mpcs_torch.trainer.recorded_epochs import RUN, read_folders

    recorded = read_folders(folders)
    warned = [warning for folder in recorded for warning in folder.warnings()]
    settings = seeds_by_setting(recorded)
    sentences = readings(settings)
    note(*map(printable, sentences))
    print_warnings(*map(printable, warned))
    with printed_warnings():
        if recorded[0].kind == RUN and len(settings) == len(recorded):
            from mpcs_torch.report.run import write_run_report
            from mpcs_torch.trainer.result import open_trained

            trained = [
                open_trained(run.folder, data_root, trust_code=trust_code)
                for run in recorded
            ]
            write_run_report(trained, out, data_root=data_root)
        else:
            from mpcs_torch.report.epochs import write_epochs_report

            write_epochs_report(
                settings, out, notes=[*sentences, *warned], command=str(COMMAND_LINE)
            )
    note(f"wrote {out}")
