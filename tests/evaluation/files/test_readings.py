"""Files by people who tried to break the reader: read as meant, or refused with options that read them.

``read.yaml`` has the content of each file, options, and the accuracy; ``refused.yaml`` has the code of the refusal, and
the accuracies of each way to read the file that it offers.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.evaluation import Result
from mpcs_torch.evaluation.classifier_files import open_models, score_models
from mpcs_torch.evaluation.files.offers import UnclearFileError
from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import ReadOptions

FOLDER = Path(__file__).parent
READ = yaml.safe_load((FOLDER / "read.yaml").read_text(encoding="utf-8"))
REFUSED = yaml.safe_load((FOLDER / "refused.yaml").read_text(encoding="utf-8"))
LONG = {
    "a fraction after row 100": "y_true,y_pred\n" + "1,1\n0,0\n" * 60 + "1,0.4\n",
    "sorted by a probability": "label,risk_score\n"
    + "".join(f"{int(row % 4 != 0)},{1 - row / 300:.3f}\n" for row in range(300)),
    "labels of another case in sorted rows": "true_label,prob_normal,prob_ill\n"
    + "NORMAL,.9,.1\n" * 110
    + "ILL,.6,.4\n",
    "a label after row 100": "red,yellow,green,label\n"
    + ".7,.2,.1,1\n" * 150
    + ".2,.3,.5,3\n",
    "a label 0 after row 100, so the first class is 0": "red,yellow,green,label\n"
    + ".2,.7,.1,1\n" * 150
    + ".2,.3,.5,0\n"
    + ".2,.7,.1,1\n" * 150,
    "a label 3 after row 100, so the first class is 1": "red,yellow,green,label\n"
    + ".2,.7,.1,1\n" * 150
    + ".2,.3,.5,3\n"
    + ".2,.7,.1,1\n" * 150,
    "classes that begin after row 100": "y_true,lr,svm\n"
    + "1,1,2\n2,1,2\n3,3,2\n" * 40
    + "1,2,3\n2,2,1\n",
    "predicted labels of many classes, of which some are in one column alone": "label,ai_code\n"
    + "".join(f"{row},{row + 50 * (row % 2 == 0)}\n" for row in range(30)) * 2,
}
"""The content of files with many rows."""


class Case:
    """A file of a table, with its options and its concern."""

    def __init__(self, table: dict[str, dict[str, Any]], name: str, folder: Path) -> None:
        case = table[name]
        self.path = folder / case.get("file", "p.csv")
        self.path.write_text(LONG.get(name) or case["content"])
        options = case.get("options", {})
        if "labels" in case:
            options = {**options, "labels": folder / "labels.csv"}
            options["labels"].write_text(case["labels"])
        self.options = ReadOptions(**options)
        self.concern = ConcernSpec(case["concern"]) if "concern" in case else None

    def measured(self, options: ReadOptions) -> Result[Any]:
        opened = open_models([self.path], options, self.concern)
        return score_models(opened, self.concern, intervals=False)


@pytest.mark.parametrize("name", READ)
def test_a_file_is_read_as_it_is_meant(name: str, tmp_path: Path) -> None:
    case = Case(READ, name, tmp_path)
    accuracy = case.measured(case.options).value("accuracy")
    assert accuracy == pytest.approx(READ[name]["accuracy"], abs=5e-4)


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_mean_two_things_is_refused_with_ways_that_work(
    name: str, tmp_path: Path
) -> None:
    case, expected = Case(REFUSED, name, tmp_path), REFUSED[name]
    with pytest.raises(UnclearFileError) as refused:
        open_models([case.path], case.options, case.concern)
    assert refused.value.code == expected["code"]
    assert [offer.words for offer in refused.value.offers] == [*expected["offers"]]
    for offer in refused.value.offers:
        models = case.measured(offer.options).models.values()
        values = [scores.values["accuracy"] for scores in models]
        assert values == pytest.approx([*offer.measured.values.values()])
        assert values == pytest.approx(expected["offers"][offer.words], abs=5e-4)


def test_scores_that_do_not_sum_to_1_are_named_once(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    rows = "1,0,1,.9,.8\n" * 150 + "2,1,1,.1,.1\n"
    path.write_text(f"id,label,pred,prob_0,prob_1\n{rows}")
    how = Predictions(path).how()
    assert how.endswith(
        "; not used: id; prob_0, prob_1 are not scores that sum to 1: the first rows sum to 1.7 to 1.7"
    )


def test_ways_that_were_not_tried_are_counted(tmp_path: Path) -> None:
    case = Case(REFUSED, "many models with predicted labels alone", tmp_path)
    with pytest.raises(
        UnclearFileError, match=r"and 3 more, which were not tried$"
    ) as refused:
        open_models([case.path], case.options)
    assert refused.value.untried == 3
