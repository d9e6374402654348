"""The words by which all commands recognize columns and labels."""

import re
from collections.abc import Collection, Sequence
from typing import Any

_SEPARATORS = re.compile(r"[\W_]+")  # letters with accents are letters
_CAPITAL = re.compile(r"(?<=[a-z][a-z])(?=[A-Z])")  # AnomalyScore, but neither pH nor yTrue
_ENDING = re.compile(
    r"(?<=[a-z]{3})(?=(?:predictions?|probability|truth)$)"
)  # winprobability
_OTHER = re.compile(r"[^0-9a-z+\-]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LABELS = _words(
    "target targets label labels ytrue true truelabel trueclass truth groundtruth gt gold goldlabel goldlabels actual "
    "actualclass actuallabel y class classlabel classid labelid targetlabel reference referencelabel expected "
    "expectedlabel annotation annotated obs observed istarget key ytest yval yvalid"
)
"""The usual names of a column of labels."""
DECISIONS = _words(
    "decision decisions pred preds predict prediction predictions predicted predictedlabel predictedclass predlabel "
    "predclass predictedlabels ypred yhat predid argmax top1 topclass modelprediction modeloutput output response "
    "judgement judgment verdict"
)
"""The usual names of a column of predicted labels."""
PREDICTION = _words("pred preds predict predicted prediction predictions")
"""Words by which a name says that its column was predicted, as in ``model_pred``: it has no labels."""
POSITIVE = _words(
    "probability prob probs proba p score scores yscore yscores yprob yproba yhat ypred pred preds prediction "
    "predictions predicted llr logit logits output similarity distance oofproba oofpred oof cosine predprob "
    "predproba predictedprob predictedprobability"
)
"""The usual names of a column with the probability or score of the positive class."""
IDS = _words(
    "id ids index idx rowid sampleid imageid imgid uid uuid guid filename file files path image img name utt utterance "
    "uttid trial trialid segment segmentid uniqueid"
)
IDLE = _words(
    "binary multi multiclass column col value name idx index num numeric int str encoded code all"
)
"""Words in the name of a column that do not tell its meaning, such as ``col``."""
NO_PROBABILITY = _words(
    "confidence conf max maximum top best uncertainty loss entropy margin distance dist error similarity cosine llr "
    "std sd var variance"
)
"""Words in the names of columns whose numbers are not probabilities of a class."""
NO_DECISION = _words("correct incorrect wrong error errors changed agree agreement")
"""Words in the names of columns that say something about predicted labels, such as whether they are right."""
NO_LABEL = _words("fold split seed partition")
"""Words with which the names of columns end that have no labels, unless another word says that they do."""
TRUE = _words(
    "true actual real gold gt ground truth observed expected reference label labels class target targets"
)
"""Words that may stand beside a name such as ``genre`` in that of the labels, as in ``true_genre``."""
IN_PAIRS = TRUE | _words("y is has was will")
"""Words that may stand beside the words of a score in the name of its labels: ``y_died`` beside ``p_died``."""
PREDICTED = _words(
    "predicted predict pred preds prediction predictions decision prob probs proba probability p score scores conf "
    "confidence logit logits llr output oof"
)
"""Words that may stand beside such a name in that of predicted labels or scores, as in ``predicted_genre``."""
RIGHT_OR_WRONG = _words("true false yes no 1 0")
"""The values, in lower case, of a column that says whether predictions are right."""
SCORED = _words("score scores prob probs proba probability logit logits llr")
"""Words by which a name says that its column has scores, and no labels."""
MODELS = _words(
    "model models method classifier algorithm system setting config configuration experiment architecture"
)
"""The usual names of a column that says which model made the prediction of a row."""
SPLITS = _words("train training val valid validation test testing dev eval holdout")
"""The usual names of the parts of a dataset, one of which a file of predictions should have."""
MISSING = _words("na nan n/a null none nil - . #n/a <na> ? 1:?")
"""Words that mean a missing value, unless a class has this name; 1:? is Weka's."""
CLASS_NAMES = _words("classes classnames labelnames labelsnames targetnames names")
"""The usual names of an array of class names."""
TRUTH = _words(
    "y target true truth label gt gold votes vote annotators annotator ytrue groundtruth soft"
)
"""The usual prefixes of columns of soft labels: for each class, a degree of truth or a number of votes."""
POSITIVE_CLASS = _words("1 +1 positive pos yes y true t target")
NEGATIVE_CLASS = _words("0 -1 negative neg no n false f nontarget non-target")
"""The labels whose probability a single score has (`POSITIVE_CLASS`), and the labels of the other class."""
SIGNS = {
    word: number
    for number, words in enumerate((NEGATIVE_CLASS, POSITIVE_CLASS))
    for word in words
    if word.isalpha() or word in "01"
}
"""The index of the class that each of these words means where classes are a negative and a positive one, as 0 and 1."""
TARGETS = _words(
    "1 +1 target tgt bonafide bona-fide genuine real live positive pos yes true t client mated same match"
)
NONTARGETS = _words(
    "0 -1 nontarget non-target nontgt spoof impostor imposter fake attack dead negative neg no false f nonmated "
    "non-mated different nonmatch non-match"
)
"""The usual labels of targets (`TARGETS`) and of non-targets (`NONTARGETS`), in lower case."""
TOTAL_NAMES = _words("all total totals sum support")
"""The names of the sums of a confusion matrix, in lower case."""
DECISION = "decision"
"""The name of the column of decisions that `mpcs decide apply` writes."""
WRITTEN = (DECISION, "risk", "cost", "reason", "best")
"""The names of the columns that `mpcs decide apply` adds to a file of predictions."""


def split_words(name: str) -> list[str]:
    """Split ``name`` at other characters than letters and digits, and before capitals; return words in lower case.

    Words such as ``winprobability`` are two.
    """
    parted = _CAPITAL.sub(" ", name)
    words = _SEPARATORS.split(parted.lower())
    return " ".join(_ENDING.sub(" ", word) for word in words).split()


def plain(name: str) -> str:
    """Return a name in lower case, without separators and `IDLE` words: ``True_Label_Idx`` becomes ``truelabel``."""
    words = split_words(name)
    return "".join([word for word in words if word not in IDLE] or words)


PERSONS = (
    "patient",
    "subject",
    "speaker",
    "person",
    "participant",
    "individual",
    "donor",
    "user",
    "customer",
    "driver",
    "family",
    "household",
    "animal",
)
"""Words for those who may have several rows, in names of columns."""


def is_person(name: str) -> bool:
    """Return whether ``name`` is a word for persons alone, perhaps with that for an id: ``patient``, ``subject_id``."""
    words = [word for word in split_words(name) if word not in IDLE and word not in IDS]
    return len(words) == 1 and words[0].removesuffix("s") in PERSONS


ROW_NAMES = ("Unnamed: 0", "__index_level_")
"""With what the names begin that columns of row numbers have when nobody names them."""


def is_index(name: str) -> bool:
    """Return whether ``name`` is usual for a column of ids or of row numbers, or missing in the first column."""
    return plain(name) in IDS or name.startswith(ROW_NAMES)


def is_column_name(name: str) -> bool:
    """Return whether ``name`` is a usual name for a column of labels, predictions, scores or ids."""
    return plain(name) in LABELS | DECISIONS | POSITIVE | IDS


def is_label(name: str) -> bool:
    """Return whether ``name`` is usual for a column of labels, as ``target`` or ``gt_label``."""
    return plain(name) in LABELS or (len(split_words(name)) > 1 and not stem(name, TRUE))


def is_predicted(name: str) -> bool:
    """Return whether ``name`` is usual for predicted labels, or has a word in `PREDICTION`."""
    return plain(name) in DECISIONS or has_prediction(name)


def has_prediction(name: str) -> bool:
    """Return whether ``name`` has a word in `PREDICTION`."""
    return not PREDICTION.isdisjoint(split_words(name))


def named_as(names: Sequence[str], words: frozenset[str]) -> list[str]:
    """Return the names whose `plain` form is among ``words``."""
    return [name for name in names if plain(name) in words]


def shorter_names(name: str) -> list[tuple[str, ...]]:
    """Return the words with which ``name`` begins or ends, but not all: ``died`` and ``predit`` of ``died_predit``."""
    words = tuple(split_words(name))
    sizes = range(1, len(words))
    return [words[:size] for size in sizes] + [words[-size:] for size in sizes]


def stem(name: str, words: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Return the words of ``name`` in lower case, without those in ``words`` and in `IDLE`."""
    return tuple(
        word for word in split_words(name) if word not in words and word not in IDLE
    )


def predicted_thing(name: str) -> tuple[str, ...]:
    """Return of what a column has predictions by its ``name``: ``died`` of ``p_died``; () if it says nothing."""
    thing = stem(name, PREDICTED)
    return () if thing == stem(name) else thing


def is_positive(value: str) -> bool | None:
    """Return True for a label in `POSITIVE_CLASS`, False for one in `NEGATIVE_CLASS`, else None."""
    text = value.strip().lower()
    if text in POSITIVE_CLASS:
        return True
    return False if text in NEGATIVE_CLASS else None


def is_negated(text: str) -> bool:
    """Return whether a label says that something is not so, as ``not_hateful`` does."""
    return not {"not", "non", "no"}.isdisjoint(split_words(text)[:1])


def signed_labels(texts: Collection[str]) -> tuple[str, ...]:
    """Return a negative and a positive label, such as false and true, in this order; () for other ``texts``."""
    names = sorted(texts, key=lambda name: is_positive(name) is True)
    return tuple(names) if [*map(is_positive, names)] == [False, True] else ()


def target_or_not(value: Any) -> int | None:
    """Return 1 if ``value`` is a word in `TARGETS`, 0 if it is in `NONTARGETS`, else None."""
    text = (
        ""
        if value is None
        else _OTHER.sub("", str(value).strip().lower().removesuffix(".0"))
    )
    if text in TARGETS:
        return 1
    return 0 if text in NONTARGETS else None
