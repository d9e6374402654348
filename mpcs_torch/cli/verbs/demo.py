"""``mpcs demo``: the recommended recipe beside a plain run, on a data set of scikit-learn."""

from pathlib import Path

from mpcs_torch.cli.console import COMMAND_LINE, counting_bar, note, print_result, say
from mpcs_torch.cli.options import Out, shared


@shared("overwrite", "json", "quiet")
def demo(out: Out = Path("runs")) -> None:
    """Train on digits, plainly and as recommended, and write a report on test data to OUT/demo/report.html."""
    from mpcs_torch.report.demo import with_referral, without_referral, write_demo_report
    from mpcs_torch.report.demonstration import SEEDS, demonstrate

    folder = out / "demo"
    report = folder / "report.html"
    if report.exists() and not COMMAND_LINE.overwrite:
        raise FileExistsError(f"{report} exists: choose another folder or pass --overwrite")
    with counting_bar("demo, seeds", len(SEEDS)) as advance:
        found = demonstrate(advance)
    folder.mkdir(parents=True, exist_ok=True)
    write_demo_report(found, report)
    tallies = {
        name: [tally._asdict() for tally in found.tallies(name)]
        for name in found.seeds[0].decisions
    }
    print_result({"report": report, "by_seed": tallies})
    if not COMMAND_LINE.json:
        say(found.table(), f"{without_referral(found)}\n{with_referral(found)}\n")
    note(f"wrote {report}")
