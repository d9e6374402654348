"""``mpcs demo``: the recommended recipe beside a plain run, on a data set of scikit-learn."""

from pathlib import Path

from mpcs_torch.cli.console import COMMAND_LINE, counting_bar, note, print_result, say
from mpcs_torch.cli.options import Out, shared
from mpcs_torch.errors import ExistsError


@shared("overwrite", "json", "quiet")
def demo(out: Out = Path("runs")) -> None:
    """Train on digits, plainly and as recommended, and write a report on test data to OUT/demo/report.html."""
    import torch

    from mpcs_torch.report.demo import with_referral, without_referral, write_demo_report
    from mpcs_torch.report.demonstration import SEEDS, demonstrate

    folder = out / "demo"
    report = folder / "report.html"
    if report.exists() and not COMMAND_LINE.overwrite:
        raise ExistsError("exists", str(report))
    with counting_bar("demo, seeds", len(SEEDS)) as advance:
        shown = demonstrate(advance)
    folder.mkdir(parents=True, exist_ok=True)
    write_demo_report(shown, report)
    by_seed = dict[str, list[dict[str, int]]]()
    for way in shown.seeds[0].decisions:
        counts = shown.counts(way)
        rows = torch.stack(counts, dim=1).long().tolist()
        by_seed[way] = [dict(zip(counts._fields, row, strict=True)) for row in rows]
    print_result({"report": report, "by_seed": by_seed})
    if not COMMAND_LINE.json:
        say(shown.table(), f"{without_referral(shown)}\n{with_referral(shown)}\n")
    note(f"wrote {report}")
