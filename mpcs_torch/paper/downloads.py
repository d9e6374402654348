"""Download the data sets of the paper's experiments that scikit-learn does not contain, and verify their values."""

import hashlib
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mpcs_torch.errors import DataError, shown

if TYPE_CHECKING:  # torch is slow to import
    from mpcs_torch.trainer.data import DataSplits

ADD_URL = (
    "https://raw.githubusercontent.com/FlaAI/MPCS/7a52a46e17e2b4a1c4dad6587ea2bd7b2b599c1e/"
    "Raw%20Experimental%20Records/Datasets/trajectory/"
)
ADD_FILES = {
    "X_train.npy": "bd400d992a4365cb8cdb559fa049e47e5082546619c33d152f06ca61000d8652",
    "Y_train.npy": "efb8eab9103560245b31402b0da82d6ba86f66a8fd45cd5801ffa205cce78886",
    "X_test.npy": "a84b040fdcfa32b41a902c2b77e8d8731c9692f8969f6aa2c266921894f0b96b",
    "Y_test.npy": "1f090f71545a32b5a14bd26f923d5ba0e7ddeaf55181839986dfccf257e32cf1",
}
"""The SHA-256 of each file of the data set ADD, by name in the authors' repository."""
UCR_URL = "https://www.timeseriesclassification.com/aeon-toolkit/"
CHECKSUMS = {
    "mnist": "55c41ac0f5a8c45648c69c8349247c8db8573ea50fafdc37b5123844f825fae0",
    "add": "1e7547b2987ddc8e42b308dc2a2e101f0ee809c59e9e2b6171b25f0bc061e187",
    "ucr/Chinatown": "336103785243d3c04d1a343f81061e73e6e7a7792f003867630e725556589b5c",
    "ucr/SmoothSubspace": "7873f06b370102aed8f8efd678c9588056769e97becbdd3aadd4f410b2dcedb1",
}
"""The published `checksum` of each downloadable data set, by name."""


def is_known(name: str) -> bool:
    """Return whether ``name`` is a data set to download: ``mnist``, ``add``, or ``ucr/`` and the name of a UCR set."""
    return name in ("mnist", "add") or re.fullmatch(r"ucr/[A-Za-z0-9_-]+", name) is not None


def get(name: str, root: Path) -> None:
    """Download the missing files of the data set ``name`` to the folder ``root``, and verify the values.

    Raises:
        DataError: If there is no such data set, the download fails, or the values are not the published values.
    """
    if not is_known(name):
        raise DataError("data_set", name=name)
    if name == "add":
        _fetch(ADD_URL, root / "ADD", ADD_FILES)
    elif name == "mnist":
        from torchvision.datasets import MNIST

        with _downloading("MNIST", MNIST.mirrors[0]):
            MNIST(root, download=True)
    elif not _folder(name, root).exists():
        _get_ucr(name, root)
    _check_values(name, root)


def status(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the state (as text) of each data set of the paper, and of each other UCR set in ``root``."""
    for name in ("iris", "digits", "breast_cancer"):
        yield name, "inside scikit-learn"
    ucr = sorted(f"ucr/{path.name}" for path in (root / "UCR").glob("*") if path.is_dir())
    for name in dict.fromkeys([*CHECKSUMS, *filter(is_known, ucr)]):
        state = "not there"
        try:
            if _folder(name, root).exists():
                state = _check_values(name, root)
        except DataError as error:
            state = str(error)
        yield name, state


def checksum(data: "DataSplits") -> str:
    """Return the SHA-256 of the inputs (float32) and labels (int64) of the training and test splits, as hex digits."""
    digest = hashlib.sha256()
    for part in (data.train, data.test):
        digest.update(part.inputs.numpy().tobytes())
        digest.update(part.labels.numpy().tobytes())
    return digest.hexdigest()


def _loader_and_set(name: str) -> tuple[str, str]:
    """Return the name of the loader of a data set, and of the UCR set that it loads, empty for other loaders."""
    loader, _, ucr_set = name.partition("/")
    return loader, ucr_set


def _folder(name: str, root: Path) -> Path:
    loader, ucr_set = _loader_and_set(name)
    return root / loader.upper() / ucr_set


def _check_values(name: str, root: Path) -> str:
    """Load a data set; return that it is there, or raise a `DataError` if it is not readable or not the published."""
    from mpcs_torch.trainer.data import DATASETS

    loader, ucr_set = _loader_and_set(name)
    arguments = {"set": ucr_set} if ucr_set else {}
    data = DATASETS[loader](root, **arguments)
    if name not in CHECKSUMS:
        return "there, readable"
    if checksum(data) != CHECKSUMS[name]:
        raise DataError("published_values", str(_folder(name, root)))
    return "there, checksum right"


@contextmanager
def _downloading(names: str, address: str) -> Iterator[None]:
    """Turn an error of the with block, which downloads the files ``names``, into a `DataError`."""
    try:
        yield
    # pooch raises a ValueError for a wrong hash, and torchvision a RuntimeError.
    except (OSError, zipfile.BadZipFile, ValueError, RuntimeError) as error:
        cause = shown(str(error), 500)
        raise DataError("cannot_download", names, address=address, cause=cause) from error


def _fetch(
    address: str, folder: Path, files: Mapping[str, str | None], processor: Any = None
) -> None:
    """Download the files that are missing in ``folder``; ``files`` has the hash of each file (or None), by name."""
    import pooch  # slow to import

    pooch.get_logger().setLevel("WARNING")
    fetcher = pooch.create(
        folder, address, registry=dict(files), allow_updates=False, retry_if_failed=3
    )
    with _downloading(", ".join(files), address):
        for file in files:
            fetcher.fetch(file, processor=processor)


def _get_ucr(name: str, root: Path) -> None:
    import pooch

    _, ucr_set = _loader_and_set(name)
    (root / "UCR").mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=root / "UCR", prefix=".") as scratch:
        files = [f"{ucr_set}_{part}.ts" for part in ("TRAIN", "TEST")]
        unzip = pooch.Unzip(members=files, extract_dir=f"UCR/{ucr_set}")
        _fetch(UCR_URL, Path(scratch), {f"{ucr_set}.zip": None}, unzip)
        _check_values(name, Path(scratch))
        _folder(name, Path(scratch)).rename(_folder(name, root))
