"""Downloads over HTTP: checked before a file gets its name, and resumed where the server allows it."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mpcs_torch.errors import DataError

Progress = Callable[[str, int, int | None], None]
"""Told the name of a file, the bytes of it that are here, and how many there are in all, if the server says."""

ATTEMPTS = 4
TIMEOUT_SECONDS = 30.0
CHUNK_BYTES = 1 << 16


def download(url: str, path: Path, *, known_hash: str | None, progress: Progress) -> None:
    """Download a file to a path where nothing is yet.

    A broken connection is resumed where it broke. When all attempts have failed, or the user stops them, the partial
    file stays as ``<path>.part`` if the server can resume it, and is deleted otherwise.

    Args:
        url: The address of the file.
        path: The path of the file once it is whole and its checksum is right.
        known_hash: ``sha256:...`` or ``md5:...``.
        progress: Called with each chunk.

    Raises:
        DataError: If there is no such file or no network, or its checksum is wrong.
    """
    import pooch  # this and requests take a while to import, and only downloads need them
    import requests

    pooch.get_logger().setLevel("WARNING")
    fetch = partial(_fetch_resuming, part=path.with_name(f"{path.name}.part"), progress=progress)
    try:
        pooch.retrieve(url, known_hash, fname=path.name, path=path.parent, downloader=fetch)
    except requests.RequestException as error:
        raise DataError(f"{url} cannot be downloaded: {error}") from error
    except ValueError as error:  # how pooch says that the checksum is wrong
        raise DataError(f"{url} is not the published file: {error}") from error


def _fetch_resuming(url: str, output_file: str, pooch: object, *, part: Path, progress: Progress) -> None:  # noqa: ARG001  # pooch's downloader
    import requests

    can_resume = part.exists()
    try:
        for attempt in range(1, ATTEMPTS + 1):
            here = part.stat().st_size if part.exists() else 0
            headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={here}-"} if here else {})
            try:
                with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_SECONDS) as response:
                    if response.status_code == requests.codes.requested_range_not_satisfiable:
                        part.unlink()  # it is of another file
                        continue
                    response.raise_for_status()
                    sends_rest = response.status_code == requests.codes.partial_content
                    can_resume = sends_rest or response.headers.get("Accept-Ranges") == "bytes"
                    with part.open("ab" if sends_rest else "wb") as file:
                        length = response.headers.get("Content-Length")
                        total = None if length is None else file.tell() + int(length)
                        for chunk in response.iter_content(CHUNK_BYTES):
                            file.write(chunk)
                            progress(part.stem, file.tell(), total)
                break
            except requests.RequestException as error:
                if attempt == ATTEMPTS or isinstance(error, requests.HTTPError):
                    raise
                time.sleep(0.2 * attempt)
        part.replace(output_file)
    except BaseException:
        if not can_resume:
            part.unlink(missing_ok=True)
        raise
