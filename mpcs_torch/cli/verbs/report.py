"""``mpcs report``: write the report of finished training runs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli.console import note, printed_warnings
from mpcs_torch.cli.options import DataRoot, check_out, shared


@shared("overwrite", "quiet")
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", exists=True, file_okay=False)],
    out: Annotated[Path | None, typer.Option(dir_okay=False, show_default="RUN/report.html for a single run")] = None,
    data_root: DataRoot = Path("data"),
) -> None:
    """Write one page about finished runs: the picked epoch, the costliest errors, and all figures.

    Several runs are compared. Test samples are predicted again from the checkpoints that were kept. Import paths in the
    config.yaml of RUN run code: report only runs that you trust.

    Args:
        runs: Folders of finished runs.
        out: HTML file to write.
    """
    if out is None:
        if len(runs) > 1:
            raise typer.BadParameter("name the file for several runs", param_hint="--out")
        out = runs[0] / "report.html"
    check_out(out)
    repeated = [str(run) for place, run in enumerate(runs) if any(run.samefile(other) for other in runs[:place])]
    if repeated:
        raise typer.BadParameter(f"{repeated[0]} is given twice", param_hint="RUN")

    from mpcs_torch.report.run import write_run_report
    from mpcs_torch.trainer.result import open_trained

    sys.path.insert(0, str(Path.cwd()))  # where the user's own modules are, which a config names by import path
    with printed_warnings():
        trained = [open_trained(run, data_root) for run in runs]
        write_run_report(trained, out, data_root=data_root)
    note(f"wrote {out}")
