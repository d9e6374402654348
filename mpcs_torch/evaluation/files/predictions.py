"""Read files of predictions: probabilities or decisions, with labels. Every value is checked."""

import shlex
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.concern.checks import MAX_CLASSES
from mpcs_torch.errors import Rule, listed, quoted, span
from mpcs_torch.evaluation.files.decision_columns import CLASS
from mpcs_torch.evaluation.files.facts import Facts
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.joined_labels import with_labels
from mpcs_torch.evaluation.files.models import split_models
from mpcs_torch.evaluation.files.offers import ReadValues
from mpcs_torch.evaluation.files.read_options import PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.reading_choice import choose
from mpcs_torch.evaluation.files.roles import label_numbers
from mpcs_torch.evaluation.files.score_scale import (
    nominal_sum,
    probabilities_of_logits,
    probabilities_of_shares,
    rounded_decimals,
)
from mpcs_torch.evaluation.files.tables import (
    Argument,
    Column,
    FileTable,
    ReadColumns,
    distinct_texts,
    is_gap,
    take_rows,
    to_number,
    to_text,
)
from mpcs_torch.evaluation.files.words import TRUE, split_words
from mpcs_torch.evaluation.rows import MIN_UNLIKELY, checked_scores
from mpcs_torch.functional.inputs.decisions import highest_class
from mpcs_torch.functional.inputs.probabilities import MIN_PROBABILITY
from mpcs_torch.io.local_paths import local_path

COLUMN_OPTIONS: Sequence[str] = (
    "decision_column",
    "id_column",
    "by",
    "cluster",
    "crossed",
    "weight",
    "frequency",
    "unit",
    "cost_columns",
)
"""The options that name columns of a file, but for ``label_column``, which may name one of the file of labels."""
MAX_UNSEEN = 0.1
"""The share of rows decided for classes without any label above which a note says so."""
KindOfTruth = Literal["one-hot", "votes", "degrees"]
"""The kind of numbers that soft labels are in all rows: labels, counts of votes, or numbers from 0 to 1."""
NO_LABEL = -100
"""The number that replaces a missing label: the default ``ignore_index`` of PyTorch's losses."""


class PredictedRows(NamedTuple):
    """The rows that were read from a file of predictions, except rows left out because a value is missing."""

    numbers: Tensor
    """(N,), int64: the numbers of the rows in the file, from 1."""
    scores: Tensor
    """(N, C): the probabilities or logits; (N, 1) for decisions."""
    target: Tensor
    """(N,) labels as class indices, or (N, C) soft labels; (N, 0) if the file has no labels."""
    others: ReadColumns
    """The other columns that were requested, with N values each."""

    @property
    def is_soft(self) -> bool:
        """Whether ``target`` has soft labels (N, C): for each class, the degree to which it is true."""
        return has_soft_labels(self.target)

    def spread(self, columns: Mapping[str, Column], read: ReadColumns) -> dict[str, Column]:
        """Expand ``columns`` of N values to all rows of ``read``; in left-out rows, values are missing."""
        places = np.full(read.rows, -1, dtype=np.int32)
        places[self.numbers.numpy() - 1] = np.arange(len(self.numbers))
        return {name: take_rows(values, places) for name, values in columns.items()}


def has_soft_labels(target: Tensor) -> bool:
    """Return whether ``target`` has soft labels (N, C); not labels (N,), or (N, 0) because there are none."""
    return target.ndim == 2 and target.shape[1] > 0


class Predictions:
    """Read the rows of a file as probabilities and labels.

    Args:
        path: The file, in any format of `open_table`.
        options: Options for reading, such as the name of the column of labels.
        class_names: The class names in index order. Default: the names in ``options`` or in the file.
        needs_labels: Whether missing labels are an error. If not, a missing label is read as `NO_LABEL`, and a file
            without labels has targets (n, 0).
        texts: Further columns to read as text, such as patients. Columns that the file lacks are ignored.
        numbers: Further columns to read as numbers.
        decisions: The index of each possible decision, by name (see `decision_numbers`). Default: only the classes.
        table: The table of ``path``, if it is already open.
        facts: The facts of the columns in ``options``, if they are known, as in the trial of an offer. Errors then have
            no offers of their own.
    """

    def __init__(
        self,
        path: str | Path,
        options: ReadOptions | None = None,
        *,
        class_names: Sequence[str] | None = None,
        needs_labels: bool = True,
        texts: Sequence[str] = (),
        numbers: Sequence[str] = (),
        decisions: Mapping[str, int] | None = None,
        table: FileTable | None = None,
        facts: Facts | None = None,
    ) -> None:
        self.path = local_path(path, "path")
        self.options = options or ReadOptions()
        if facts is None:
            self.table, _ = with_labels(table or open_table(self.path), self.options)
        else:
            self.table = facts.table
        if len(self.options.models) == 1:
            [(self.table, self.options)] = split_models(self.table, self.options).values()
        self._needs_labels = needs_labels
        self._read_again = partial(
            Predictions,
            path,
            class_names=class_names,
            needs_labels=needs_labels,
            decisions=decisions,
        )
        self.notes: list[str] = []
        """Sentences on changed values and left-out rows, once rows are read."""
        self._whole = 1.0
        """The sum of the scores of a row: 1, or 100 for percentages."""
        self._beside = ""
        """A phrase on predicted labels that differ from the most probable classes, once rows are read."""
        self._check_columns()
        texts = [*texts, *self.options.columns]
        numbers = [*numbers, *self.options.numbers]
        self.texts = [name for name in self.table.names if name in texts]
        """The names of the columns that are read as text, besides labels and decisions."""
        self._numbers = [name for name in self.table.names if name in numbers]
        measure = None
        if facts is None:
            others = [*self.texts, *self._numbers]
            known = self.table, self.options, class_names, others
            facts = Facts(*known, needs_labels=needs_labels)
            measure = self._measured
        self.roles = choose(facts, measure)
        self._check_classes()
        if facts.class_names is None:
            self._check_cost_order()
        self.class_names = list(self.roles.classes)
        self.decides = self.roles.form == "decisions"
        """Whether `rows` returns decisions (class indices): for a file of scores, the most probable classes."""
        self.has_shares = False
        """Whether soft labels are shares of annotators. Shares and probabilities must then sum to 1 in each row."""
        if not decisions:
            decisions = {name: number for number, name in enumerate(self.class_names)}
        self._decisions = decisions
        self._truth: KindOfTruth | None = None
        """The kind of the soft labels; None if the file has none."""
        if self.roles.truth:
            self._truth = self._kind_of_truth()
        # Beside degrees or votes, scores are degrees or shares, which are no percentages.
        has_hard_labels = self._truth in (None, "one-hot")
        if has_hard_labels and not self.decides and not self.options.from_logits:
            self._whole = self._first_sum() or 1.0

    def _check_columns(self) -> None:
        """Refuse options that name no column of the file, or one column for two uses."""
        table = self.table
        options = self.options
        names = list(COLUMN_OPTIONS)
        if options.labels is None:  # else --label-column may name a column of that file
            names.insert(0, "label_column")
        table.check_options(options, *names)
        label = table.label or options.label_column
        for name in (label, options.decision_column):
            if name in options.columns:
                raise PredictionsError(table.path, Rule("both", column=name))
        if label is not None and label in (*options.score_columns, options.decision_column):
            raise PredictionsError(self.path, Rule("labels_alone"), column=label)

    def _measured(self, facts: Facts, options: ReadOptions) -> ReadValues:
        """Return what other ``options`` measure on all rows of the file, for an offer.

        As the command does, it refuses models whose rows, in order or by ids, have different labels.
        """
        accuracies: dict[str, float] = {}
        rows = 0
        classes: list[str] = []
        first: list[Any] = []
        for model, (table, of_model) in split_models(facts.table, options).items():
            predictions = self._read_again(of_model, facts=facts.asked(of_model, table))
            predictions.decides = True
            classes = predictions.class_names
            read = predictions.rows()
            if len(classes) < 2 and not read.is_soft:
                raise PredictionsError(self.path, Rule("several_classes"))
            target = read.target
            # Of soft labels, the class that is true to the highest degree.
            if target.ndim != 1:
                target = target.argmax(dim=1)
            is_right = read.scores.squeeze(1) == target
            accuracies[model] = is_right.double().mean().item()
            rows = len(is_right)
            labels = [classes[number] for number in target.tolist() if number >= 0]
            compared: list[Any] = labels
            if options.id_column is not None:  # the rows of models may be in other orders
                ids = map(to_text, read.others.columns[options.id_column].to_pylist())
                compared = sorted(zip(ids, labels, strict=True))
            if not first:
                first = compared
            if compared != first:
                raise PredictionsError(self.path, Rule("labels_of_models", model=model))
        return ReadValues(accuracies, rows, f"classes {span(classes)}")

    @cached_property
    def refers(self) -> bool:
        """Whether any decision in the file is not a class, but a referral or a set of classes."""
        further = {*self._decisions} - {*self.class_names}
        if self.roles.form != "decisions" or not further:
            return False
        texts = distinct_texts(self.table, self.roles.scores[0], MAX_CLASSES)
        return not further.isdisjoint(texts)

    def how(self) -> str:
        """Describe in one line how the file was read."""
        dialect = f" ({self.table.dialect})" if self.table.dialect else ""
        form = self.roles.form
        words = self.roles.in_words(has_shares=self.has_shares)
        if self._whole != 1:
            words.append("percentages, divided by 100")
        if self._truth == "votes":
            words.append("votes, divided by their sum")
        if self._truth == "one-hot":
            words.append("one-hot, so labels")
        words += self.options.how_counted()
        if self.options.cost_columns:
            words.append(self._costs_in_words())
        if not self.table.has_names and form != "lists":
            words.append("the file has no names: by place")
        if self.decides and form != "decisions":
            words.append("compared by their most probable classes")
        if self._beside:
            words.append(self._beside)
        return f"{self.path.name}{dialect}: {'; '.join(words)}"

    def _costs_in_words(self) -> str:
        columns = self.options.cost_columns
        classes = self.class_names
        deciding = "deciding wrongly for" if self.options.costs_if_wrong else "deciding"
        if len(columns) == len(classes):
            pairs = zip(classes, columns, strict=True)
            costs = listed([f"{label}: {column}" for label, column in pairs])
        else:
            kind = "lists" if len(columns) == 1 else "by true class,"
            costs = f"{span(classes)}: {kind} {listed(columns)}"
        return f"costs of {deciding} {costs}"

    def rows(self) -> PredictedRows:
        """Read probabilities (N, C), or decisions int64 (N, 1), with labels (N,) or soft labels (N, C).

        With hard labels, the probabilities of each row are divided by their sum, to undo rounding in the file.
        """
        _, rows = self._read()
        if not self.decides or self.roles.form == "decisions":
            return rows
        return rows._replace(scores=highest_class(rows.scores)[1].unsqueeze(1))

    def logits(self) -> PredictedRows:
        """Read logits (N, C), float64, with labels as in `rows`.

        For a file of probabilities, the logits are logarithms of the probabilities, clamped to at least 1e-12.
        """
        if self.decides:
            raise PredictionsError(self.path, Rule("scores_of_classes"))
        scores, rows = self._read()
        if rows.is_soft:
            raise PredictionsError(self.path, Rule("classes_for_logits"))
        if self.options.from_logits:
            return rows._replace(scores=scores.double())
        return rows._replace(scores=rows.scores.clamp(min=MIN_PROBABILITY).log())

    def _check_classes(self) -> None:
        """Refuse scores of too few classes, or of too many."""
        # With soft labels, one class is enough; but the softmax of a single logit is 1.
        minimum = 1 if self.roles.truth and not self.options.from_logits else 2
        count = len(self.roles.classes)
        if self.roles.form != "decisions" and not minimum <= count <= MAX_CLASSES:
            rule = Rule(
                "number_of_classes_of_file",
                minimum=minimum,
                maximum=MAX_CLASSES,
                number=count,
                classes=self.roles.classes,
            )
            raise PredictionsError(self.path, rule)

    def _check_cost_order(self) -> None:
        """Refuse costs of classes whose order is that of the alphabet, because only labels name them."""
        columns = self.options.cost_columns
        classes = self.roles.classes
        has_order = self.roles.form == "columns" or None not in map(to_number, classes)
        if columns and not has_order:
            raise PredictionsError(
                self.path, Rule("cost_order", classes=classes, columns=columns)
            )

    def _read(self) -> tuple[Tensor, PredictedRows]:
        """Return the scores as they are in the file, and the checked rows. Neither has rows that are left out."""
        roles = self.roles
        is_decided = roles.form == "decisions"
        beside = roles.decided if self._needs_labels else None
        numbers = [*roles.truth, *self._numbers]
        texts = [*self.texts]
        if roles.label is not None:
            texts.append(roles.label)
        if beside is not None:
            texts.append(beside)
        if is_decided:
            texts += roles.scores
        else:
            numbers += roles.scores
        read = self.table.read([*numbers, *texts], numbers={*numbers} - {*texts})
        target = self._target(read)
        if is_decided:
            rule = Rule("decision_of", decisions=[*self._decisions])
            scores = self._codes(read, roles.scores[0], self._decisions, rule).unsqueeze(1)
        else:
            scores = self._matrix(read)
        kept = self._kept(scores, target, read)
        self.notes = []
        if not kept.all():
            scores = scores[kept]
            target = target[kept]
            read = read.where(kept.numpy())
        if not len(scores):
            raise PredictionsError(self.path, Rule("rows"))
        probs = scores
        if not is_decided:
            probs, target = self._checked(scores, target, read)
        self._note_unlikely(scores, probs, target)
        self._note_dropped(int((~kept).sum()))
        if beside is not None:
            self._compare(probs, read, beside)
        others = {name: read.columns[name] for name in (*self.texts, *self._numbers)}
        row_numbers = kept.nonzero().squeeze(1) + 1
        rows_read = PredictedRows(row_numbers, probs, target, read._replace(columns=others))
        return scores, rows_read

    def _note_dropped(self, dropped: int) -> None:
        """Note how many rows were left out, if any were."""
        if dropped == 0:
            return
        rows = "1 row" if dropped == 1 else f"{dropped} rows"
        without = f"{rows} without a label, prediction, cluster, unit, weight or cost"
        self.notes.append(f"{without} left out: values are those of the others.")

    def _note_unlikely(self, scores: Tensor, probs: Tensor, target: Tensor) -> None:
        """Note what is unlikely about known labels: that all or none are right, or that their probability is 0."""
        if target.ndim != 1 or (target == NO_LABEL).any():
            return
        is_decided = self.roles.form == "decisions"
        most = probs.squeeze(1) if is_decided else highest_class(probs)[1]
        is_right = most == target
        if is_decided:
            self._note_unseen(most, target)
        elif len(target) >= MIN_UNLIKELY:
            self._note_separated(probs, target, is_right)
        if len(target) >= MIN_UNLIKELY and not is_right.any():
            self.notes.append(
                f"None of the {len(target)} rows is right: are they a list of errors, or are classes in another order?"
            )
        if not self.decides:
            self._note_impossible(scores, probs, target)

    def _note_separated(self, probs: Tensor, target: Tensor, is_right: Tensor) -> None:
        """Note that scores tell the labels without any error, unless the name of the labels says that they are true."""
        label = str(self.roles.label)
        if {*split_words(label)} & (TRUE - CLASS):
            return
        is_separated = bool(is_right.all())
        if self.roles.form == "positive" and not is_separated:
            of_first = probs[target == 0, 0]
            of_last = probs[target != 0, 0]
            occur = len(of_first) > 0 and len(of_last) > 0
            is_separated = occur and bool(of_first.min() > of_last.max())
        if is_separated:
            self.notes.append(
                f"The scores tell the labels without any error in all {len(target)} rows: does {quoted(label)} have "
                "predicted labels?"
            )

    def _note_unseen(self, decisions: Tensor, target: Tensor) -> None:
        """Note in how many rows the decision is a class that no row has as its label, if they are many."""
        is_class = (decisions >= 0) & (decisions < len(self.class_names))
        unseen = int((is_class & ~torch.isin(decisions, target)).sum())
        if unseen > MAX_UNSEEN * len(target):
            self.notes.append(
                f"In {unseen} of {len(target)} rows, the predicted label is one that no row has as its label."
            )

    def _note_impossible(self, scores: Tensor, probs: Tensor, target: Tensor) -> None:
        """Note in how many rows the label has the probability 0, which makes the cross entropy infinite."""
        number = int((probs.gather(1, target.unsqueeze(1)) == 0).sum())
        if number:
            decimals = None if self.options.from_logits else rounded_decimals(scores, 0)
            rounded = f", in a file with {decimals} decimals" if decimals else ""
            self.notes.append(
                f"The label has the probability 0 in {number} of {len(target)} rows{rounded}."
            )

    def _compare(self, probs: Tensor, read: ReadColumns, beside: str) -> None:
        """Note in how many rows the predicted labels in the column ``beside`` are not the most probable classes."""
        predicted = read.groups(beside, "")
        class_number = label_numbers(self.roles, has_signs=True)
        class_of_name = list[int]()
        for name in predicted.names:
            number = class_number(name)
            # A name that is no class, or is missing, is never the most probable class.
            class_of_name.append(NO_LABEL if number is None else number)
        most_probable = highest_class(probs)[1]
        decided = torch.tensor(class_of_name)[predicted.codes]
        differing = int((decided != most_probable).sum())
        if differing:
            rows = f"{differing} of {len(most_probable)} rows"
            way = f"--decision-column {shlex.quote(beside)} measures it"
            self._beside = (
                f"{quoted(beside)} is not the most probable class in {rows} ({way})"
            )

    def _kept(self, scores: Tensor, target: Tensor, read: ReadColumns) -> Tensor:
        """Return a mask (n,): all rows; if `missing` is "drop", those that lack nothing that is needed of a row."""
        kept = torch.ones(len(scores), dtype=torch.bool)
        options = self.options
        if options.missing == "error":
            return kept
        for name in self.texts:
            if name in (options.cluster, options.crossed, options.unit):
                kept &= read.codes(name, is_gap, Rule("has_name")) == 0
        needed = [read.matrix([name]) for name in self._numbers if name in options.numbers]
        needed.append(scores)
        if self._needs_labels:
            needed.append(target)
        for values in needed:
            is_missing = values == NO_LABEL
            if values.is_floating_point():
                is_missing = values.isnan()
            in_columns = is_missing.unsqueeze(-1).flatten(1)  # (n,) or (n, k) as (n, k)
            kept &= ~in_columns.any(dim=1)
        return kept

    def _matrix(self, read: ReadColumns) -> Tensor:
        """Return the scores of all classes, (n, C). If the file has those of one of two classes, compute the others."""
        scores = read.matrix(self.roles.scores)
        if self.roles.form == "positive":
            is_logit = self.options.from_logits
            is_outside = (scores < 0) | (scores > self._whole)
            if is_outside.any() and not is_logit:
                place = int(is_outside.nonzero()[0, 0])
                rule = Rule("one_probability", highest=f"{self._whole:g}")
                column = self.roles.scores[0]
                raise read.error(rule, place, column, scores[place].item())
            other = torch.zeros_like(scores) if is_logit else self._whole - scores
            pair = [other, scores] if self.roles.of_class else [scores, other]
            return torch.cat(pair, dim=1)
        number = scores.shape[1]
        size = len(self.roles.classes)
        if number != size:
            raise read.error(
                Rule("number_of_scores", size=size, number=number), 0, self.roles.scores[0]
            )
        return scores if scores.is_floating_point() else scores.double()

    def _target(self, read: ReadColumns) -> Tensor:
        """Return labels (n,) or soft labels (n, C); (n, 0) if the file has neither."""
        roles = self.roles
        if roles.truth:
            return self._degrees(read)
        if roles.label is None:
            return torch.empty(read.rows, 0)
        rule = Rule("label_of", classes=roles.called or roles.classes)
        return self._codes(read, roles.label, {}, rule, may_lack=not self._needs_labels)

    def _codes(
        self,
        read: ReadColumns,
        column: str,
        answers: Mapping[str, int],
        rule: Rule,
        *,
        may_lack: bool = False,
    ) -> Tensor:
        """Map ``column`` to ``answers`` or classes: int64 (n,). Missing values that are allowed give `NO_LABEL`."""
        of_class = label_numbers(self.roles)
        may_lack = may_lack or self.options.missing == "drop"

        def number(value: Any) -> int | None:
            known = answers.get(to_text(value), of_class(value))
            if known is None and may_lack and is_gap(value):
                return NO_LABEL
            return known

        return read.codes(column, number, rule)

    def _degrees(self, read: ReadColumns) -> Tensor:
        """Return soft labels (n, C), with votes divided by their sum; of one-hot ones, labels (n,)."""
        degrees = read.matrix(self.roles.truth).double()
        if self._truth == "one-hot":
            return degrees.argmax(dim=1)
        if self._truth == "votes":
            return degrees / degrees.sum(dim=1, keepdim=True)
        return degrees

    def _kind_of_truth(self) -> KindOfTruth:
        """Return the kind of the soft labels in all rows."""
        names = self.roles.truth
        degrees = self.table.read(names, numbers=names).matrix(names).double()
        if (degrees % 1 != 0).any():
            return "degrees"
        if (degrees > 1).any():
            return "votes"
        is_one_hot = (degrees >= 0).all() and (degrees.sum(dim=1) == 1).all()
        has_sum = self.options.from_logits or self._first_sum() is not None
        is_label = is_one_hot and has_sum and len(self.roles.classes) > 1
        return "one-hot" if is_label else "degrees"

    def _first_sum(self) -> float | None:
        """Return 100 if the scores in the first rows are percentages, 1 if they are probabilities, else None."""
        if self.roles.form == "positive":
            return 100.0 if self.roles.is_percent else 1.0
        return nominal_sum(self.roles.first_scores.sum(axis=1), len(self.roles.classes))

    def _checked(
        self, scores: Tensor, target: Tensor, read: ReadColumns
    ) -> tuple[Tensor, Tensor]:
        """Return ``scores`` as probabilities, and ``target``, once they have passed the checks of tensors."""
        size = len(self.roles.classes)
        is_soft = has_soft_labels(target)
        # The codes of labels were checked when they were read; any valid class stands for a missing one here.
        labels = target
        if target.ndim == 1:
            labels = target.clamp(min=0)
        elif not is_soft:
            labels = torch.zeros(len(scores), dtype=torch.int64)
        has_degrees = is_soft and not self.has_shares
        with read.naming(self._arguments()):
            if self.options.from_logits:
                probs = probabilities_of_logits(scores, self.path.name)
            elif has_degrees:
                probs = scores
            else:
                probs, note = probabilities_of_shares(scores, self._whole)
                if note:
                    self.notes.append(note)
            probs, labels = checked_scores(
                probs, labels, size, is_soft=is_soft, has_shares=self.has_shares
            )
        if has_degrees:
            return probs, labels
        probs = probs / probs.sum(dim=1, keepdim=True)
        if is_soft:
            return probs, labels
        return probs, target  # missing labels are missing again

    def _arguments(self) -> dict[str, Argument]:
        """Return the columns from which the predictions and labels come, for errors about these."""
        roles = self.roles
        size = len(roles.classes)
        advice = "other_logits" if self.options.from_logits else "other_scores"
        scores = roles.scores
        if roles.form == "lists":
            scores = _items(scores[0], size)
        truth = roles.truth
        if len(truth) != size:  # one column of lists, or none
            truth = _items(truth[0] if truth else "", size)
        return {
            "preds": Argument(scores, advice),
            "target": Argument(truth, "metrics_of_degrees" if self.has_shares else ""),
        }


def _items(column: str, size: int) -> list[str]:
    """Return names for the values in a column of lists."""
    return [f"{column}[{place}]" for place in range(size)]
