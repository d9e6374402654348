"""Sources and checksums of the data sets that are not inside scikit-learn."""

import gzip
import hashlib
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mpcs_torch.errors import DataError
from mpcs_torch.io.untrusted_files import MOST_DATA_BYTES, FileRuleError, check_member
from mpcs_torch.trainer.sources.checksums import SHA256, UCR_SHA256
from mpcs_torch.trainer.sources.download import Progress, download
from mpcs_torch.trainer.sources.ucr_files import LAYOUTS, UcrSet, check_name, read_ucr

ADD_URL = (
    "https://raw.githubusercontent.com/FlaAI/MPCS/7a52a46e17e2b4a1c4dad6587ea2bd7b2b599c1e/"
    "Raw%20Experimental%20Records/Datasets/trajectory"
)
UCR_URL = "https://www.timeseriesclassification.com/aeon-toolkit"


def get(name: str, root: Path, progress: Progress) -> None:
    """Download ``mnist``, ``add`` or ``ucr/<set>`` to the data root; files that are there and right are kept.

    Raises:
        DataError: If there is no such set, a file there is not the published one, or the download fails.
    """
    if name in SHA256:
        for file, checksum in SHA256[name].items():
            path = root / file
            if path.exists():
                if _sha256(path) != checksum:
                    raise DataError(f"{path} is not the published file: move it away to download that one")
            elif name == "mnist":
                _get_mnist_file(path, checksum, progress)
            else:
                download(f"{ADD_URL}/{path.name}", path, known_hash=f"sha256:{checksum}", progress=progress)
    elif name.startswith("ucr/") and name.count("/") == 1 and name != "ucr/":
        _get_ucr(name.removeprefix("ucr/"), root, progress)
    else:
        raise DataError(f"data sets to get are mnist, add and ucr/NAME (a name in the UCR archive), but got {name}")


@dataclass(frozen=True)
class Status:
    """The state of a data set in a data root."""

    name: str
    state: str


def status(root: Path) -> Iterator[Status]:
    """Give the state of the sets that the paper's experiments use, and of every other UCR set in the data root."""
    for name in ("iris", "digits", "breast_cancer", "wine"):
        yield Status(name, "inside scikit-learn")
    for name, files in SHA256.items():
        missing = [file for file in files if not (root / file).exists()]
        wrong = [file for file in files if file not in missing and _sha256(root / file) != files[file]]
        if len(missing) == len(files):
            yield Status(name, "not there")
        else:
            faults = [f"{file} is missing" for file in missing]
            faults += [f"{file} is not the published file" for file in wrong]
            yield Status(name, "; ".join(faults) or "there, checksums right")
    folders = {path.name for path in (root / "UCR").glob("*") if path.is_dir() and not path.name.startswith(".")}
    for name in sorted(folders | set(UCR_SHA256)):
        yield Status(f"ucr/{name}", _ucr_state(name, root) if name in folders else "not there")


def ucr_checksum(data: UcrSet) -> str:
    """Compute the SHA-256 of the samples and labels of training and test split, as float32 and int64."""
    digest = hashlib.sha256()
    for part in (data.train, data.test):
        digest.update(part.inputs.tobytes())
        digest.update(part.labels.tobytes())
    return digest.hexdigest()


def _get_mnist_file(path: Path, checksum: str, progress: Progress) -> None:
    from torchvision.datasets import MNIST

    archive = f"{path.name}.gz"
    packed = _downloads(path.parent) / archive
    md5 = dict(MNIST.resources)[archive]
    errors = []
    for mirror in MNIST.mirrors:
        try:
            download(f"{mirror}{archive}", packed, known_hash=f"md5:{md5}", progress=progress)
            break
        except DataError as error:
            errors.append(str(error))
    else:
        raise DataError("; ".join(errors))
    content = gzip.decompress(packed.read_bytes())
    packed.unlink()
    if hashlib.sha256(content).hexdigest() != checksum:
        raise DataError(f"{archive} does not hold the published file")
    unpacked = packed.with_suffix(".unpacked")
    unpacked.write_bytes(content)
    unpacked.replace(path)
    _remove_if_empty(packed.parent)


def _downloads(folder: Path) -> Path:
    """Return the folder for unfinished downloads, which holds nothing else."""
    downloads = folder / ".downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    return downloads


def _remove_if_empty(folder: Path) -> None:
    if not any(folder.iterdir()):
        folder.rmdir()


def _get_ucr(name: str, root: Path, progress: Progress) -> None:
    """Download the zip of a set, and keep its two files in the first layout that we read."""
    check_name(name)
    folder = root / "UCR" / name
    if {path.stem for path in folder.glob(f"{name}_T*")} >= {f"{name}_TRAIN", f"{name}_TEST"}:
        read_ucr(root, name)  # says what is wrong with files that are there
        return
    url = f"{UCR_URL}/{name}.zip"
    scratch = _downloads(root / "UCR")
    packed, unpacked = scratch / f"{name}.zip", scratch / "UCR" / name
    shutil.rmtree(unpacked, ignore_errors=True)
    if not packed.exists():
        download(url, packed, known_hash=None, progress=progress)
    unpacked.mkdir(parents=True)
    try:
        _unpack_parts(packed, name, unpacked)
        data = read_ucr(scratch, name)
        if name in UCR_SHA256 and ucr_checksum(data) != UCR_SHA256[name]:
            raise DataError("it does not hold the values of the published set")
        folder.mkdir(exist_ok=True)
        for part in unpacked.iterdir():
            if (folder / part.name).exists():
                raise DataError(f"{folder / part.name} is in the way: move it away")
        for part in unpacked.iterdir():
            part.replace(folder / part.name)
    except (zipfile.BadZipFile, RuntimeError, zlib.error, EOFError, FileRuleError) as error:  # a RuntimeError is ours
        raise DataError(f"{url} is not a set of the archive: {error}") from error
    finally:
        packed.unlink()
        shutil.rmtree(scratch / "UCR")
        _remove_if_empty(scratch)


def _unpack_parts(packed: Path, name: str, folder: Path) -> None:
    """Write the two files of a set under our names, whatever kind of member they are; their checksums are checked."""
    with zipfile.ZipFile(packed) as archive:
        for layout in LAYOUTS:
            wanted = {f"{name}_{part}.{layout}" for part in ("TRAIN", "TEST")}
            members = {Path(member).name: member for member in archive.namelist() if Path(member).name in wanted}
            if len(members) == 2:
                for file, member in members.items():
                    info = archive.getinfo(member)
                    check_member(info)
                    if (size := info.file_size) > MOST_DATA_BYTES:
                        raise FileRuleError(f"{file} must have at most {MOST_DATA_BYTES} bytes, but has {size}")
                    with archive.open(info) as source, (folder / file).open("wb") as target:
                        shutil.copyfileobj(source, target)
                return
    raise DataError(f"it holds no {name}_TRAIN and {name}_TEST in one of the layouts {', '.join(LAYOUTS)}")


def _ucr_state(name: str, root: Path) -> str:
    try:
        data = read_ucr(root, name)
    except DataError as error:
        return str(error)
    if name not in UCR_SHA256:
        return "there, readable"
    return "there, checksum right" if ucr_checksum(data) == UCR_SHA256[name] else "there, not the published values"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
