"""Reports of predictions draw referral by estimated risk, and the errors of two classes."""

from pathlib import Path

import pytest
import torch

from mpcs_torch.scoring import write_predictions
from tests.cli.test_cli import run
from tests.report.page import Page

CONCERN = "classes: [red, yellow, green]\nreleases: [[red, yellow], [yellow, red]]\nfactor: 0.5\n"


def write(path: Path, names: list[str], seed: int) -> None:
    target = torch.arange(60) % len(names)
    noise = torch.randn(60, len(names), generator=torch.Generator().manual_seed(seed))
    logits = noise + 2 * torch.nn.functional.one_hot(target, len(names))
    write_predictions(path, logits.softmax(dim=1), target, names)


def alts(path: Path) -> list[str]:
    return [str(attributes["alt"]) for tag, attributes in Page(path).elements if tag == "img"]


@pytest.mark.parametrize("options", [(), ("--by", "0"), ("--resamples", "0")], ids=["alone", "by", "no resamples"])
def test_the_report_of_a_file_draws_its_referral(options: tuple[str, ...], tmp_path: Path) -> None:
    path, page = tmp_path / "a.npz", tmp_path / "r.html"
    (tmp_path / "concern.yaml").write_text(CONCERN)
    if "--by" in options:
        path, options = tmp_path / "a.csv", ("--by", "city")
        rows = [f"0.7,0.2,0.1,{name},{row % 2}\n" for row, name in enumerate(["red", "yellow", "green"] * 9)]
        path.write_text("".join(["red,yellow,green,target,city\n", *rows]))
    else:
        write(path, ["red", "yellow", "green"], 0)
    assert run("score", path, "--concern", tmp_path / "concern.yaml", *options, "--html", page) == 0
    assert "How sure the model is" in Page(page).text
    told = [alt for alt in alts(page) if alt.startswith("Dangerous errors per decided sample against coverage.")]
    assert len(told) == 1
    assert "a dangerous error are referred first" in Page(page).text


def test_models_of_two_classes_have_det_curves_too(tmp_path: Path) -> None:
    paths = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for seed, path in enumerate(paths):
        write(path, ["0", "1"], seed)
    assert run("score", *paths, "--html", tmp_path / "r.html") == 0
    text = Page(tmp_path / "r.html").text
    assert "How sure the models are" in text
    assert "estimated risk of an error are referred first" in text
    assert [alt for alt in alts(tmp_path / "r.html") if alt.startswith("DET curves with 1 as the target.")]
    assert [alt for alt in alts(tmp_path / "r.html") if alt.startswith("Errors per decided sample against coverage.")]
