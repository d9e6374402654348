"""Problems that keep a file from being read in one way, as data. The sentences are made here alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Code = Literal[
    "several",
    "stacked",
    "no_labels",
    "no_scores",
    "both",
    "confusion",
    "quoted_lines",
    "dictionaries",
    "many_rows",
    "not_named",
    "sums",
    "best_class",
    "above_half",
    "falling",
    "which_number",
    "which_order",
    "which_class",
    "first_number",
    "by_place",
    "one_label",
    "many_labels",
    "no_class",
    "unordered",
    "label_gap",
    "cases",
    "kinds",
    "referral",
    "disjoint",
    "other_truth",
    "cost_order",
]
SENTENCES: Mapping[Code, str] = {
    "several": "can be read in several ways",
    "stacked": "seems to have several models below each other, by {column}: its labels repeat",
    "no_labels": "has no column of labels that is known by its name or values (--label-column COLUMN names it, "
    "--labels FILE gives a file of labels)",
    "no_scores": "has no columns of scores or predicted labels that are known by their names (--score-columns or "
    "--decision-column names them)",
    "both": "column {column} cannot be labels and name groups or rows, too",
    "confusion": "seems to be a confusion matrix: --confusion",
    "quoted_lines": "has each line in quotes, which makes one column of it, {column}: remove the quotes around lines",
    "dictionaries": "{column} has dictionaries, such as {value}: write a column for each key, or each row as JSON",
    "many_rows": "{column} has the labels of several rows in each cell: write a row for each, as pandas' explode "
    "does for {columns}",
    "not_named": "no name says that {column} has {what}",
    "sums": "{columns} are not scores that sum to 1: rows sum to {low:.3g} to {high:.3g}",
    "best_class": "{column} is always the class with the highest score: are these the predicted labels?",
    "above_half": "{column} is never below 0.5: is it the score of the predicted label?",
    "falling": "{columns} fall in each row: of the best classes of each row? A score for each class is needed",
    "which_number": "labels are numbers, and {columns} have names: which class is {first}?",
    "which_order": "{columns} has no names of classes: --classes names all {size} in their order, {labels} among them",
    "which_class": "of which class is {column} the probability?",
    "first_number": "labels are never 0 and never {size}, so the first class may be 0 or 1",
    "by_place": "labels are {labels}, and columns are named {classes}",
    "one_label": "{column} has the label {labels} alone: --classes names both",
    "many_labels": "{score} is one score, which tells two classes apart, but {column} has {labels}: the rarest, "
    "{rare}, is in {number} rows",
    "no_class": "the labels {labels} of {column} are none of the classes {classes}",
    "unordered": "{column} does not order the predicted labels {decision}: it is no probability of one class",
    "label_gap": "{column} has {text}, which may be a missing value or a class: --missing drop, or --classes names all",
    "cases": "{labels} differ in case alone: write them alike, or --classes names all classes",
    "kinds": "{column} has values of several kinds, {labels}",
    "referral": "{column} has referrals: --concern FILE says what they cost, and names the classes and answers",
    "disjoint": "the predicted labels {decisions} of {column} and the labels {labels} have none in common",
    "other_truth": "the degrees of truth are for {truth}, and the scores for {classes}",
    "cost_order": "--cost-columns are in the order of the classes, which nothing in the file says: --classes or "
    "--concern names {classes} in the order of {columns}",
}


@dataclass(frozen=True)
class Problem:
    """A reason why a file, or one way to read it, is refused or doubted; its text is the sentence."""

    code: Code
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        return SENTENCES[self.code].format(**self.fields)
