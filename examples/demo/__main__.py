"""Train on digits, plainly and as recommended, and write a report on test data: ``python -m examples.demo``."""

import argparse
from pathlib import Path

from examples.demo.demonstration import SEEDS, demonstrate
from examples.demo.report import with_referral, without_referral, write_demo_report
from mpcs_torch.cli.console import say
from mpcs_torch.cli.progress import counting_bar


def main() -> None:
    """Train under each seed, print the results, and write the page."""
    parser = argparse.ArgumentParser("python -m examples.demo", description=(__doc__ or "").partition(":")[0])
    parser.add_argument(
        "--out", type=Path, default=Path("runs"), help="the page is OUT/demo/report.html; default: runs"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing page")
    given = parser.parse_args()
    page = given.out / "demo" / "report.html"
    if page.exists() and not given.overwrite:
        parser.error(f"{page} exists: choose another folder or pass --overwrite")
    with counting_bar("demo, seeds", len(SEEDS)) as advance:
        demonstration = demonstrate(advance)
    page.parent.mkdir(parents=True, exist_ok=True)
    write_demo_report(demonstration, page)
    sentences = f"{without_referral(demonstration)}\n{with_referral(demonstration)}\n"
    say(demonstration.table(), sentences, f"wrote {page}")


if __name__ == "__main__":
    main()
