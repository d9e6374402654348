"""The quick ways to compute MPCS give the bits of the simple one, for few and many classes, and for all batches."""

from typing import Any

import pytest
import torch
from torch import Tensor

from mpcs_torch import MetaPatternConcernScore
from mpcs_torch.functional import meta_pattern_concern_score
from mpcs_torch.functional.concern import by_class, by_row
from mpcs_torch.functional.concern.mpcs import FEW_CLASSES, pattern_scores
from mpcs_torch.functional.inputs.probabilities import flatten_given
from tests.oracles import simple_mpcs

KINDS = ["normal", "ties", "certain", "bfloat16", "probabilities", "double"]
SHAPES = [(2, 30000), (10, 200000), (10, 90), (FEW_CLASSES, 5000), (FEW_CLASSES + 1, 5000), (200, 2000), (3000, 100)]
SETTINGS: list[dict[str, Any]] = [
    {"k": 5, "t": 200, "weighted": False, "correct_concern": "sum"},
    {"k": 1, "t": 20, "weighted": True, "correct_concern": "sum"},
    {"k": 3, "t": 50, "weighted": True, "correct_concern": "count"},
    {"k": 20, "t": 10000, "weighted": True, "correct_concern": "sum"},
]


def drawn(kind: str, classes: int, size: int) -> tuple[Tensor, Tensor, bool]:
    generator = torch.Generator().manual_seed(classes + size)
    preds = 3 * torch.randn(size, classes, generator=generator)
    if kind in ("ties", "probabilities"):
        preds = torch.randint(0, 4, preds.shape, generator=generator).float()
    if kind == "probabilities":
        preds[:, 0] += 1
        preds /= preds.sum(dim=1, keepdim=True)
        preds = torch.where(preds == 0, -0.0, preds)
    dtype = {"bfloat16": torch.bfloat16, "double": torch.float64}.get(kind, torch.float32)
    preds = (20 * preds if kind == "certain" else preds).to(dtype)
    return preds, torch.randint(0, classes, (size,), generator=generator), kind != "probabilities"


@pytest.mark.parametrize(("classes", "size"), SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_have_the_bits_of_the_simple_kernel(kind: str, classes: int, size: int) -> None:
    preds, target, from_logits = drawn(kind, classes, size)
    wide = preds.float() if preds.dtype == torch.bfloat16 else preds
    probs = wide.softmax(dim=1) if from_logits else wide
    concern = 0.1 + torch.rand(classes, classes, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for setting in SETTINGS:
        settings = {**setting, "k": min(setting["k"], classes), "concern": concern if setting["weighted"] else None}
        del settings["weighted"]
        expected = simple_mpcs.scores(probs, target, **settings, by_class=classes <= FEW_CLASSES)
        settings |= {"num_classes": classes, "from_logits": from_logits, "reduction": "none"}
        assert torch.equal(meta_pattern_concern_score(preds, target, **settings), expected)


@pytest.mark.parametrize("classes", [128, 163, 3000])
@pytest.mark.parametrize("k", [1, 5, 16])
def test_the_most_probable_classes_come_in_the_order_of_a_stable_sort(classes: int, k: int) -> None:
    generator = torch.Generator().manual_seed(k)
    drawn = torch.rand(600, classes, generator=generator)
    rows = {
        "bfloat16": (20 * drawn).bfloat16().float().softmax(dim=1),
        "ties": (7 * drawn).floor() / 7,
        "apart in the last bits": 0.3 + (40 * drawn).floor() * 2**-24,
        "subnormal": 1e-42 * drawn,
        "mostly 0": torch.where(drawn < 2 / classes, drawn, 0.0),
    }
    for name, probs in rows.items():
        expected, label = probs.double().sort(dim=1, descending=True, stable=True)
        found = by_row.most_probable(probs, k)
        assert torch.equal(found[0].double(), expected[:, :k].t()), name
        assert torch.equal(found[1], label[:, :k].t()), name


@pytest.mark.parametrize("classes", [10, FEW_CLASSES + 1])
def test_a_score_does_not_depend_on_its_batch(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    preds, target, _ = drawn("normal", classes, 3001)
    settings: dict[str, Any] = {"num_classes": classes, "reduction": "none"}
    whole = meta_pattern_concern_score(preds, target, **settings)
    for size in (1, 37, 1024, 1500):
        batches = zip(preds.split(size), target.split(size), strict=True)
        parts = [meta_pattern_concern_score(*batch, **settings) for batch in batches]
        assert torch.equal(torch.cat(parts), whole)
    monkeypatch.setattr(by_class, "CPU_PART", 1000 * classes)
    monkeypatch.setattr(by_row, "CPU_PART", 1000 * classes)
    assert torch.equal(meta_pattern_concern_score(preds, target, **settings), whole)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("classes", [10, FEW_CLASSES + 1])
def test_samples_are_ignored_in_every_part(classes: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_class, "CPU_PART", 1000 * classes)
    monkeypatch.setattr(by_row, "CPU_PART", 1000 * classes)
    preds, target, _ = drawn("normal", classes, 3001)
    preds, kept = preds.to(dtype), torch.arange(3001) % 3 > 0
    expected = meta_pattern_concern_score(preds[kept], target[kept], num_classes=classes, reduction="none")
    preds[~kept], target[~kept] = float("nan"), -1
    found = meta_pattern_concern_score(preds, target, num_classes=classes, ignore_index=-1, reduction="none")
    assert torch.equal(found[kept], expected)
    assert not found[~kept].any()


@pytest.mark.parametrize("classes", [10, FEW_CLASSES + 1])
@pytest.mark.parametrize("bad", [float("nan"), -float("nan"), float("inf"), -1.0])
def test_a_bad_value_in_a_large_batch_is_named(classes: int, bad: float) -> None:
    preds, target, _ = drawn("normal", classes, 2000)
    probs = preds.softmax(dim=1)
    probs[1234, 2] = bad
    with pytest.raises(ValueError, match=r"preds must be probabilities .* but sample 1234 has"):
        meta_pattern_concern_score(probs, target, num_classes=classes, from_logits=False)
    if bad != -1:
        with pytest.raises(ValueError, match=r"preds must be logits without NaN or .inf, but sample 1234 has"):
            meta_pattern_concern_score(probs, target, num_classes=classes)


@pytest.mark.parametrize("size", [3, 3000])
@pytest.mark.parametrize("classes", [10, FEW_CLASSES + 1])
def test_unchecked_nan_gives_nan(classes: int, size: int) -> None:
    preds, target, _ = drawn("normal", classes, size)
    preds[1, 3] = float("nan")
    metric = MetaPatternConcernScore(classes, validate_args=False)
    metric.update(preds, target)
    assert metric.compute().isnan()


@pytest.mark.parametrize("classes", [10, FEW_CLASSES + 1])
@pytest.mark.parametrize("ignore_index", [None, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_code_calls_the_same_kernel(classes: int, ignore_index: int | None, weighted: bool) -> None:
    preds, target, _ = drawn("ties", classes, 1500)
    concern = torch.arange(1.0, 1 + classes**2).reshape(classes, classes) if weighted else None

    def core(preds: Tensor, target: Tensor) -> Tensor:
        samples = flatten_given(
            preds, target, num_classes=classes, scale="logits", ignore_index=ignore_index, sample_weight=None
        )
        return pattern_scores(samples, k=3, t=20, concern=concern).by_sum

    compiled = torch.compile(core, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(preds, target), core(preds, target))
