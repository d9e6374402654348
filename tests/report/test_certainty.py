"""Reports of predictions draw referral by estimated risk."""

from pathlib import Path

import numpy as np
import torch

from tests.cli.shell import run
from tests.report.page import Page

CONCERN = (
    "classes: [red, yellow, green]\nreleases: [[red, yellow], [yellow, red]]\nfactor: 0.5\n"
)


def write(path: Path, classes: int, seed: int) -> None:
    target = torch.arange(60) % classes
    noise = torch.randn(60, classes, generator=torch.Generator().manual_seed(seed))
    logits = noise + 2 * torch.nn.functional.one_hot(target, classes)
    np.savez(path, preds=logits.softmax(dim=1), target=target)


def test_the_report_of_a_file_draws_its_referral_without_intervals_too(
    tmp_path: Path,
) -> None:
    (tmp_path / "concern.yaml").write_text(CONCERN)
    write(tmp_path / "a.npz", 3, 0)
    given = ("--concern", tmp_path / "concern.yaml", "--no-intervals")
    assert run("score", tmp_path / "a.npz", *given, "--html", tmp_path / "r.html") == 0
    page = Page(tmp_path / "r.html")
    assert "How sure decisions are" in page.text
    assert (
        sum(
            alt.startswith("Dangerous errors per decided sample against coverage.")
            for alt in page.alts
        )
        == 1
    )
    assert "a dangerous error are referred first" in page.text


def test_models_without_a_concern_refer_by_the_risk_of_any_error(tmp_path: Path) -> None:
    paths = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for seed, path in enumerate(paths):
        write(path, 2, seed)
    assert run("score", *paths, "--html", tmp_path / "r.html") == 0
    text, alts = Page(tmp_path / "r.html").text, Page(tmp_path / "r.html").alts
    assert "How sure decisions are" in text
    assert "estimated risk of an error are referred first" in text
    assert [
        alt for alt in alts if alt.startswith("Errors per decided sample against coverage.")
    ]
