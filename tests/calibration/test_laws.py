"""Laws of all calibrations: saved, exported and called by batches, they give the same scores."""

import copy
import io
import pickle
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from mpcs_torch import calibration
from mpcs_torch.calibration import (
    LogisticCalibration,
    LogisticFusion,
    PAVCalibration,
    TemperatureScaling,
    VectorScaling,
)
from tests.calibration.data import CLASSES, logits, scores_of_systems, trials
from tests.refused import Refused


class Case(NamedTuple):
    """A calibration and the scores that it is fitted to."""

    make: Callable[
        [],
        TemperatureScaling
        | VectorScaling
        | LogisticCalibration
        | LogisticFusion
        | PAVCalibration,
    ]
    draw: Callable[[int], tuple[Tensor, Tensor]]


CASES = {
    "TemperatureScaling": Case(TemperatureScaling, logits),
    "VectorScaling": Case(lambda: VectorScaling(CLASSES), logits),
    "LogisticCalibration": Case(LogisticCalibration, trials),
    "LogisticFusion": Case(lambda: LogisticFusion(3), scores_of_systems),
    "PAVCalibration": Case(PAVCalibration, trials),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def test_every_calibration_obeys_the_laws() -> None:
    public = (getattr(calibration, name) for name in calibration.__all__)
    assert {
        kind.__name__
        for kind in public
        if isinstance(kind, type) and issubclass(kind, nn.Module)
    } == set(CASES)


def fitted_to(case: Case) -> nn.Module:
    """Return a module that is fitted to the first draw."""
    return case.make().fit(*case.draw(0))


def test_a_fit_changes_what_the_module_gives_and_returns_it(case: Case) -> None:
    module, (scores, target) = case.make(), case.draw(0)
    if isinstance(module, PAVCalibration):
        with Refused("not_fitted", "PAVCalibration"):
            module(scores)
        assert module.fit(scores, target) is module
        return
    is_of_systems = isinstance(module, LogisticFusion)
    torch.testing.assert_close(module(scores), scores.mean(1) if is_of_systems else scores)
    assert module.fit(scores, target) is module
    assert not torch.allclose(module(scores), case.make()(scores))


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64]
)
def test_half_types_are_upcast_and_others_kept(case: Case, dtype: torch.dtype) -> None:
    scores, target = case.draw(2)
    narrow = scores.to(dtype)
    fitted = case.make().fit(narrow, target)
    exact = case.make().fit(narrow.double(), target)
    torch.testing.assert_close(
        fitted.state_dict(), exact.state_dict(), rtol=1e-12, atol=1e-12
    )
    given = fitted(narrow)
    assert given.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    torch.testing.assert_close(given.double(), exact(narrow.double()), rtol=1e-5, atol=1e-5)


def test_a_fit_asks_for_no_gradient(case: Case) -> None:
    scores, target = case.draw(3)
    fitted = case.make().fit(scores.requires_grad_(), target)
    assert not any(values.requires_grad for values in fitted.state_dict().values())
    assert fitted(scores).requires_grad


def test_a_second_fit_forgets_the_first(case: Case) -> None:
    again = case.make().fit(*case.draw(1)).fit(*case.draw(0))
    torch.testing.assert_close(
        again.state_dict(), fitted_to(case).state_dict(), rtol=0, atol=0
    )


@pytest.mark.parametrize("is_fitted", [False, True])
def test_a_state_goes_through_a_file_into_another_module(
    case: Case, is_fitted: bool
) -> None:
    fitted, file = nn.Sequential(fitted_to(case)), io.BytesIO()
    torch.save(fitted.state_dict(), file)
    file.seek(0)
    inner = case.make()
    if is_fitted:
        inner.fit(*case.draw(1))
    fresh = nn.Sequential(inner)
    assert (
        str(fresh.load_state_dict(torch.load(file, weights_only=True)))
        == "<All keys matched successfully>"
    )
    scores = case.draw(2)[0]
    assert torch.equal(fresh(scores), fitted(scores))


def test_copies_and_pickles_give_the_same_scores(case: Case) -> None:
    fitted, scores = fitted_to(case), case.draw(1)[0]
    for other in (copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted))):
        assert torch.equal(other(scores), fitted(scores))


def test_an_exported_module_takes_batches_of_any_size(case: Case) -> None:
    fitted, (scores, _) = fitted_to(case), case.draw(1)
    dynamic = {"preds": {0: torch.export.Dim("batch")}}
    exported, file = (
        torch.export.export(fitted, (scores.float()[:7],), dynamic_shapes=dynamic),
        io.BytesIO(),
    )
    torch.export.save(exported, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for size in (2, 31, len(scores)):
        batch = scores.float()[:size]
        torch.testing.assert_close(loaded(batch), fitted(batch), rtol=0, atol=0)


def test_batches_give_the_same_scores_as_the_whole(case: Case) -> None:
    fitted, (scores, _) = fitted_to(case), case.draw(1)
    parts = torch.cat([fitted(part) for part in scores.split([1, 150, 249])])
    assert torch.equal(parts, fitted(scores))


def test_the_state_is_in_float64_and_has_no_parameter(case: Case) -> None:
    fitted = case.make().fit(*((case.draw(0)[0].float()), case.draw(0)[1]))
    assert not list(fitted.parameters())
    assert {values.dtype for values in fitted.state_dict().values()} == {torch.float64}
