"""``mpcs demo``: the recommended recipe beside a plain run, on a data set of scikit-learn."""

from pathlib import Path

import typer

from mpcs_torch.cli.options import Out, Overwrite


def demo(out: Out = Path("runs"), overwrite: Overwrite = False) -> None:
    """Train on digits, plainly and as recommended, and write a report on test data to OUT/demo/report.html."""
    from mpcs_torch.cli.progress import counting_bar
    from mpcs_torch.report.demo import with_referral, without_referral, write_demo_report
    from mpcs_torch.study.demonstration import RUNS, SEEDS, demonstrate

    folder = out / "demo"
    report = folder / "report.html"
    if report.exists() and not overwrite:
        raise FileExistsError(f"{report} exists: choose another folder or pass --overwrite")
    with counting_bar("demo, runs", len(RUNS) * len(SEEDS)) as advance:
        found = demonstrate(folder, advance, overwrite=overwrite)
    write_demo_report(found, report)
    typer.echo(f"{found.table().markdown()}\n\n{without_referral(found)}\n{with_referral(found)}\n\nwrote {report}")
