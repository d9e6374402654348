"""Read files of predictions, in the format that their suffix names, and check every value."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from mpcs_torch.errors import shown
from mpcs_torch.processes.world import World
from mpcs_torch.scoring.arrays import ArrayFile
from mpcs_torch.scoring.chunks import Chunk, PredictionsError, reading
from mpcs_torch.scoring.column_roles import ColumnOptions
from mpcs_torch.scoring.columns import ColumnFile
from mpcs_torch.scoring.rounded_sums import RoundedSums

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
                else ColumnFile(path, class_names, needs_labels=needs_labels, texts=texts, options=columns)
            )
        self._rounded = RoundedSums()
        self._names_ignore = columns is not None and path.suffix in COLUMNS
        found = self._source.columns
        if class_names is not None and len(class_names) != len(found):
            problem = f"has scores for {len(found)} classes, but {len(class_names)} are expected"
            raise PredictionsError(path, problem)
        if from_logits and len(found) == 1:
            raise PredictionsError(path, "must have at least 2 classes for logits: the softmax of a single one is 1")
        self.class_names = list(found if class_names is None else class_names)

    @property
    def rows(self) -> int | None:
        """The number of rows; None if the file must be read to count them."""
        with reading(self.path):
            return self._source.rows

    def gather(self, world: World) -> None:
        """Add what other processes noted, who read other rows."""
        self._rounded = RoundedSums.joined(world.told_by_all(self._rounded))

    def notes(self) -> list[str]:
        """Return how the file was read where that was not plain, in sentences: columns left out, rounded numbers."""
        rounded = self._rounded.note()
        return [*self._source.notes, *([] if rounded is None else [rounded])]

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
        self._rounded = RoundedSums()
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
        if off.any() and (self.from_logits or not self._rounded.accepts(scores, total, off)):
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
