"""``mpcs demo``: the paper's case study on a data set of scikit-learn."""

from pathlib import Path

import typer

from mpcs_torch.cli.options import Out, Overwrite


def demo(out: Out = Path("runs"), overwrite: Overwrite = False) -> None:
    """Train on digits, pick a turn by MPCS and by the usual metrics, and write a report to OUT/demo/report.html."""
    from mpcs_torch.cli.progress import progress_bar
    from mpcs_torch.paper.case_study import picks, picks_table
    from mpcs_torch.paper.experiments import experiment_config, finish_run
    from mpcs_torch.report.case_study import write_report

    config = experiment_config("demo")
    with progress_bar("demo", config.turns.count) as bar:
        run = finish_run(config, config.data.load(Path("data")), out / "demo", [bar], overwrite=overwrite)
    write_report(run, out / "demo" / "report.html")
    typer.echo(picks_table(picks(run)).markdown())
    typer.echo(f"\nwrote {out / 'demo' / 'report.html'}")
