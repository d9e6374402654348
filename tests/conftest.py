"""Fixtures for data files: published files stay outside the repository, and tests that need them say so."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# In a background job of a shell, tests of Ctrl-C would fail.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("noisy machines", deadline=None)
settings.load_profile("noisy machines")

ORACLES = Path(__file__).parent / "oracles" / "data"


def load_oracle(name: str) -> Any:
    return json.loads((ORACLES / f"{name}.json").read_text())


def details(metric: Any, *batch: Any) -> Any:
    """Update a metric with a batch, and return its details."""
    metric.update(*batch)
    return metric.details()


def _folder(variable: str) -> Path:
    if variable not in os.environ:
        pytest.skip(
            f"{variable} is not set: it names a folder with files that the repository does not hold"
        )
    folder = Path(os.environ[variable])
    assert folder.is_dir(), f"{variable} is set to {folder}, which is no folder"
    return folder


@pytest.fixture(autouse=True, scope="session")
def _state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what the package remembers of runs out of the home folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Data files in the layout of the project's data root."""
    return _folder("MPCS_DATA_ROOT")


@pytest.fixture(scope="session")
def published_records() -> Path:
    """Published per-epoch records."""
    return _folder("MPCS_RECORDS_ROOT")
