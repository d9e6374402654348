"""Take paths from users: expand ``~``, and refuse addresses of remote storage."""

import os
import re
from pathlib import Path

from mpcs_torch.errors import ArgumentsError, InvalidValueError, quoted

ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:[/\\]")
"""A pattern for the start of an address such as ``s3://bucket``, which `Path` turns into ``s3:/bucket``. The scheme has
at least two letters, because a single letter is a drive of Windows."""


def local_path(path: str | os.PathLike[str], argument: str) -> Path:
    """Return ``path`` with ``~`` and ``~user`` expanded; refuse addresses such as ``s3://bucket/run``.

    Each public function that takes a path calls this first. Otherwise, ``s3://bucket/run`` would become a local folder
    ``s3:``, and ``~/run`` a folder ``~``. Such a local folder can still be named by ``./~/run``.

    Args:
        path: The path as the user wrote it.
        argument: The name of the argument, for the error message.

    Raises:
        ValueError: If ``path`` is empty, begins with a scheme, ``file://`` included, or begins with ``~user`` and there
            is no such user.

    Example:
        >>> local_path("runs/digits", "folder").as_posix()
        'runs/digits'
    """
    if not isinstance(path, str | os.PathLike):
        raise ArgumentsError("instance", argument, path, type="str or os.PathLike")
    if not str(path):
        raise InvalidValueError("empty_path", argument)
    text = str(path)  # os.fspath would download the file of some paths in remote storage
    if ADDRESS.match(text):
        raise InvalidValueError("local_folder", argument, text)
    expanded = os.path.expanduser(text)
    if expanded.startswith("~"):
        raise InvalidValueError("known_user", argument, text, way=quoted(f"./{text}"))
    local = Path(expanded)
    # `Path` drops the "./" of "./~" and "./s3:/", so that a second call would change or refuse the path.
    is_ambiguous = str(local).startswith("~") or ADDRESS.match(str(local))
    return local.absolute() if is_ambiguous else local
