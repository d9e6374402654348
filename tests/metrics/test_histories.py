"""Whatever is done to a metric, it has the value of a fresh one that was given the good batches."""

import pytest

from tests.metrics.cases import BY_NAME
from tests.metrics.histories import History


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", BY_NAME)
def test_a_history_loses_no_batch(name: str, seed: int) -> None:
    History(BY_NAME[name], seed).run()
