"""Read files of predictions, in the format that their suffix names, check every value, and write them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.errors import quoted, shown
from mpcs_torch.evaluation.files.arrays import LABELS, SCORES, ArrayFile
from mpcs_torch.evaluation.files.chunks import Chunk, PredictionsError, reading
from mpcs_torch.evaluation.files.columns import LABEL, ColumnFile, ColumnOptions, check_texts, names_in
from mpcs_torch.evaluation.files.columns import LABELS as LABEL_NAMES
from mpcs_torch.evaluation.files.tables import write_csv_rows
from mpcs_torch.io.atomic_files import replace_whole
from mpcs_torch.processes.world import World

DECIMALS = range(2, 7)
"""The decimals that may be shown: with 1, rounding could explain nearly any sum; with 7, sums are exact enough."""
LOWEST = 0.5
"""The lowest sum that is accepted, since more than half of the probability would be guessed."""


class Rounding(NamedTuple):
    """The sums of rows that are not 1, because the numbers of the file are rounded."""

    decimals: int = 0
    """As shown in the file."""
    lowest: float = 1.0
    """Of the sums."""
    highest: float = 1.0
    rows: int = 0

    @classmethod
    def of(cls, scores: Tensor, total: Tensor, off: Tensor) -> Self | None:
        """Return the rounding that explains the sums of all rows that are off; None if there is none.

        A sum is explained if it is within half a unit of the last decimal for each number. What lifts a sum above 1
        has been rounded up, so zeros do not count there.

        Args:
            scores: ``(n, C)`` probabilities as the file has them.
            total: ``(n, 1)``, float64: their sums.
            off: ``(n,)``: the rows whose sum is not 1.
        """
        # A whole number divided by a power of ten is rounded as the decimal number that was read.
        wide, units = scores.double(), ((decimals, 10.0**decimals) for decimals in DECIMALS)
        fits = (decimals for decimals, u in units if torch.equal(((wide * u).round() / u).to(scores.dtype), scores))
        decimals = next(fits, None)
        if decimals is None:
            return None
        half, sums, rows = 0.5 * 10.0**-decimals, total.squeeze(1)[off], scores[off]
        room = 1e-9  # for the sums of floating point numbers
        most = 1 + half * (rows > 0).sum(dim=1) + room
        least = max(LOWEST, 1 - half * scores.shape[1] - room)
        is_explained = bool(((sums >= least) & (sums <= most)).all())
        return cls(decimals, sums.min().item(), sums.max().item(), len(sums)) if is_explained else None

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the rounding of several parts of a file."""
        decimals, lowest, highest, rows = zip(*parts, strict=True)
        return cls(max(decimals), min(lowest), max(highest), sum(rows))

    def notes(self) -> list[str]:
        """Say which sums were accepted, unless all were 1."""
        if not self.rows:
            return []
        shown = f"probabilities are rounded to {self.decimals} decimals"
        span = f"{self.lowest:.4g} to {self.highest:.4g}"
        return [f"The {shown}: {self.rows} rows sum to {span}, and were divided by their sum."]


ARRAYS, COLUMNS = (".npz", ".npy", ".pt"), (".csv", ".parquet")
SUM_TOLERANCE = 1e-3
"""How far a sum of probabilities may be from 1, for files with rounded decimals; the metrics allow the same."""
MIN_PROBABILITY = 1e-12
"""The smallest probability whose logarithm is taken; scikit-learn's temperature scaling adds the same number."""


class Predictions:
    """Read the rows of a file as probabilities and labels.

    Args:
        path: ``.npz`` or ``.pt`` with ``preds`` (N, C) and ``target``; ``.npy`` with scores (N, C); ``.csv`` or
            ``.parquet`` with a column for each class, named after it or numbered from 0, and ``target`` or
            ``target_NAME`` columns.
        target: The labels of an ``.npy`` file: (N,) integer classes, or (N, C) soft labels.
        from_logits: Whether the scores are logits, to which softmax is applied, instead of probabilities.
        class_names: The classes in index order. Default: the columns of scores in their order.
        needs_labels: Whether a file without labels is refused. Otherwise its chunks have targets (n, 0).
        texts: Columns of a ``.csv`` or ``.parquet`` file that are neither scores nor labels, such as a patient. Chunks
            hold those that the file has.
        columns: What the user says of the columns of such a file; errors then name options of ``mpcs score``.
        decisions: The numbers of decisions by name, for files with a column of decisions instead of scores. Their
            chunks have them, int64 (n, 1), in place of probabilities.

    Raises:
        PredictionsError: If the file cannot be read; the message names row and column if they are known.
    """

    def __init__(
        self,
        path: Path,
        *,
        target: Path | None = None,
        from_logits: bool,
        class_names: Sequence[str] | None = None,
        needs_labels: bool = True,
        texts: Sequence[str] = (),
        columns: ColumnOptions | None = None,
        decisions: Mapping[str, int] | None = None,
    ) -> None:
        if path.suffix not in (*ARRAYS, *COLUMNS):
            raise PredictionsError(path, f"must be one of {', '.join((*ARRAYS, *COLUMNS))}")
        if path.suffix in COLUMNS and target is not None:
            raise PredictionsError(path, "contains its own labels: --target is only for npy files")
        self.path, self.from_logits = path, from_logits
        self.takes_any_column = from_logits and class_names is None and path.suffix in COLUMNS
        """Whether a column of numbers that is no class would be taken for one: logits have no sum to tell it by."""
        with reading(path):
            self._source = (
                ArrayFile(path, target, needs_labels=needs_labels)
                if path.suffix in ARRAYS
                else ColumnFile(
                    path, class_names, needs_labels=needs_labels, texts=texts, options=columns, decisions=decisions
                )
            )
        self.is_decided = isinstance(self._source, ColumnFile) and self._source.is_decided
        """Whether the file has decisions instead of scores."""
        self._rounded = Rounding()
        self._names_ignore = columns is not None and path.suffix in COLUMNS
        names = self._source.columns
        if class_names is not None and len(class_names) != len(names):
            problem = f"has scores for {len(names)} classes, but {len(class_names)} are expected"
            raise PredictionsError(path, problem)
        if from_logits and len(names) == 1:
            raise PredictionsError(path, "must have at least 2 classes for logits: the softmax of a single one is 1")
        self.class_names = list(names if class_names is None else class_names)

    @property
    def rows(self) -> int | None:
        """The number of rows; None if the file must be read to count them."""
        with reading(self.path):
            return self._source.rows

    def unread(self) -> dict[str, tuple[set[str], int]]:
        """Return the distinct texts, and the number of texts, of each column that is not read, of the first rows."""
        with reading(self.path):
            return self._source.unread() if isinstance(self._source, ColumnFile) else {}

    def gather(self, world: World) -> None:
        """Add what other processes noted, who read other rows."""
        self._rounded = Rounding.joined(world.told_by_all(self._rounded))

    def notes(self) -> list[str]:
        """Return how the file was read where that was not plain, in sentences: columns left out, rounded numbers."""
        return [*self._source.notes, *self._rounded.notes()]

    def chunks(self, part: range | None = None) -> Iterator[Chunk]:
        """Yield chunks of probabilities (n, C) with labels (n,) or soft labels (n, C).

        With hard labels, the probabilities of a row are divided by their sum, which removes the rounding of the file.

        Args:
            part: The rows to read, from 0, of a file whose number of rows is known. Default: all.

        Raises:
            PredictionsError: If a value breaks a rule; the message names the first one.
        """
        for _, checked in self._read(part):
            yield checked

    def logits(self) -> Iterator[Chunk]:
        """Yield chunks of logits (n, C), float64, with labels as in `chunks`.

        They are the logits of the file, or the logarithms of its probabilities, clamped to at least 1e-12.

        Raises:
            PredictionsError: If a value breaks a rule, or the labels are soft.
        """
        for read, checked in self._read():
            if read.is_soft:
                raise PredictionsError(self.path, "has soft labels, but logits need one class for each row")
            scores = read.scores.double() if self.from_logits else checked.scores.clamp(min=MIN_PROBABILITY).log()
            yield checked._replace(scores=scores)

    def _read(self, part: range | None = None) -> Iterator[tuple[Chunk, Chunk]]:
        """Yield chunks as they are in the file, and checked."""
        chunks, row = self._source.chunks(part), 1 if part is None else part.start + 1
        self._rounded = Rounding()
        while True:
            with reading(self.path, row):
                chunk = next(chunks, None)
                if chunk is None:
                    return
                checked = self._checked(chunk)
            yield chunk, checked
            row += len(chunk.scores)

    def _checked(self, chunk: Chunk) -> Chunk:
        first, scores, target, texts = chunk
        if self.is_decided:
            return chunk._replace(target=self._checked_labels(target, first))
        if not scores.is_floating_point():
            raise PredictionsError(self.path, f"the scores must be floating point, but are {scores.dtype}")
        tolerance = max(SUM_TOLERANCE, torch.finfo(scores.dtype).eps)
        wide = scores.double()
        self._refuse_scores(wide, first, tolerance)
        probs = wide.softmax(dim=1) if self.from_logits else wide.clamp(max=1)
        if chunk.is_soft:
            degrees = target.double()
            self._refuse_values(~((degrees >= 0) & (degrees <= 1)), degrees, first, "the label must be from 0 to 1")
            return Chunk(first, probs, degrees, texts)
        total = probs.sum(dim=1, keepdim=True)
        off = ~((total - 1).abs() <= tolerance + 1e-9).squeeze(1)  # sums of three decimals may be 0.999
        rounding = Rounding.of(scores, total, off) if off.any() and not self.from_logits else None
        if rounding is not None:
            self._rounded = Rounding.joined([self._rounded, rounding])
        elif off.any():
            row = int(off.nonzero()[0])
            all_ruled_out = "the logits must not all be -inf"
            hint = "; for columns that are no classes, --ignore COLUMN" if self._names_ignore else ""
            sums = f"sum to {total[row].item():g} (for logits pass --logits{hint})"
            problem = f"the probabilities must sum to 1, but {sums}"
            raise PredictionsError(self.path, all_ruled_out if self.from_logits else problem, row=first + row)
        labels = target if target.ndim == 2 else self._checked_labels(target, first)
        return Chunk(first, probs / total, labels, texts)

    def _refuse_scores(self, scores: Tensor, first: int, tolerance: float) -> None:
        lowest, highest = scores.aminmax()  # one pass; both are NaN if a score is
        if self.from_logits and not highest < torch.inf:
            self._refuse_values(~(scores < torch.inf), scores, first, "must be a logit")
        if not self.from_logits and not (lowest >= 0 and highest <= 1 + tolerance):
            bad = ~((scores >= 0) & (scores <= 1 + tolerance))
            self._refuse_values(bad, scores, first, "must be a probability (for logits pass --logits)")

    def _checked_labels(self, target: Tensor, first: int) -> Tensor:
        if target.is_floating_point() or target.is_complex() or target.dtype == torch.bool:
            raise PredictionsError(self.path, f"the labels must be integers, but are {target.dtype}")
        labels = target.long()
        bad = (labels < 0) | (labels >= len(self.class_names))
        if bad.any():
            row = int(bad.nonzero()[0])
            problem = f"the label must be from 0 to {len(self.class_names) - 1}, but is {labels[row]}"
            raise PredictionsError(self.path, problem, row=first + row)
        return labels

    def _refuse_values(self, bad: Tensor, values: Tensor, first: int, rule: str) -> None:
        if bad.any():
            row, column = bad.nonzero()[0].tolist()
            name = self.class_names[column]
            hint = f"; if it is no class, pass --ignore {shown(name, 40)}" if self._names_ignore else ""
            problem = f"{rule}, but is {values[row, column]:g}{hint}"
            raise PredictionsError(self.path, problem, row=first + row, column=name)


class ReadOptions(NamedTuple):
    """What the user says of how to read files of predictions: arguments of `Predictions`."""

    target: Path | None = None
    from_logits: bool = False
    columns: ColumnOptions | None = None


def open_with_columns(
    path: Path,
    reading: ReadOptions,
    *,
    class_names: Sequence[str] | None = None,
    needs_labels: bool = True,
    needed: Sequence[str] = (),
) -> Predictions:
    """Open `Predictions` with all of their columns that are neither scores nor labels, to keep them.

    A file that lacks one of the columns that are ``needed`` is refused.
    """
    target, from_logits, options = reading
    opened = partial(
        Predictions, path, target=target, from_logits=from_logits, class_names=class_names, needs_labels=needs_labels
    )
    if path.suffix not in COLUMNS:
        if needed:
            raise PredictionsError(path, f"must be a csv or parquet file with the column {quoted(needed[0])}")
        return opened(columns=options)
    check_texts(path, needed)
    chosen = options or ColumnOptions()
    classes = opened(columns=options).class_names if class_names is None else class_names
    names, numbered = names_in(path), set(map(str, range(len(classes))))
    if not (numbered <= set(names) or set(classes) <= set(names)):
        return opened(columns=options)  # which says what is missing
    usual = (LABEL,) if LABEL in names else LABEL_NAMES
    no_texts = {*classes, *numbered, *(usual if chosen.target is None else (chosen.target,))}
    texts = [name for name in names if name not in no_texts and name.lower() not in no_texts]
    wrong = [name for name in needed if name not in texts]
    if wrong:
        raise PredictionsError(path, f"column {quoted(wrong[0])} holds scores or labels, so it cannot name groups")
    kept = [name for name in texts if name in needed or name not in chosen.ignored]
    ignored = [name for name in chosen.ignored if name not in kept]
    return opened(texts=kept, columns=None if options is None else chosen._replace(ignored=ignored))


SUFFIXES = (".csv", ".npz", ".pt")


def write_predictions(
    path: Path,
    scores: Tensor,
    target: Tensor,
    class_names: Sequence[str],
    texts: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write scores (N, C) and labels (N,) in the format that the suffix names; labels (N, 0) are left out.

    Further columns of text, by name, are written to csv alone.

    Raises:
        PredictionsError: If the suffix is not one of `SUFFIXES`.
    """
    scores = scores.contiguous()  # the readers read arrays row by row
    arrays = {SCORES: scores, **({LABELS: target} if target.ndim == 1 else {})}
    if path.suffix == ".csv":
        replace_whole(path, lambda file: _write_csv(file, scores, target, class_names, texts or {}))
    elif path.suffix == ".npz":
        numbers: dict[str, Any] = {name: each.numpy() for name, each in arrays.items()}
        replace_whole(path, lambda file: np.savez(file, **numbers))
    elif path.suffix == ".pt":
        replace_whole(path, lambda file: torch.save(arrays, file))
    else:
        raise PredictionsError(path, f"must be one of {', '.join(SUFFIXES)}")


def _write_csv(
    file: BinaryIO, scores: Tensor, target: Tensor, class_names: Sequence[str], texts: Mapping[str, Sequence[str]]
) -> None:
    is_labelled = target.ndim == 1
    write_csv_rows(file, [[*texts, *class_names, *([LABEL] if is_labelled else [])]])
    for start in range(0, len(scores), 2**14):
        part = slice(start, start + 2**14)
        columns: list[Sequence[object]] = [*(column[part] for column in texts.values()), *scores[part].T.tolist()]
        columns += [[class_names[label] for label in target[part].tolist()]] if is_labelled else []
        write_csv_rows(file, zip(*columns, strict=True))
