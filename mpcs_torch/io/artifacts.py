"""Files that carry a promise, such as decision rules and calibrations: they know whether they are whole.

The last line of a file is the SHA-256 of all bytes before it. A file that was changed in any byte is refused by name.
"""

import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from mpcs_torch.errors import MAX_QUOTED, InvalidValueError, printable
from mpcs_torch.io.atomic_files import replace_file
from mpcs_torch.io.untrusted_files import FileRuleError, load_tensors, read_limited

Restored = TypeVar("Restored")

MAX_BYTES = 2_000_000_000
"""The maximum size of a file that is loaded, because it is read into memory."""
SEAL = re.compile(rb"\nsha256 [0-9a-f]{64}\n", re.ASCII)
"""The end of a sealed file."""


def seal_for(content: bytes) -> bytes:
    """Return the line that `sealed` appends to ``content``; it has the same length for all contents."""
    return b"\nsha256 " + hashlib.sha256(content).hexdigest().encode() + b"\n"


SEAL_BYTES = len(seal_for(b""))


def sealed(content: bytes) -> bytes:
    """Append the SHA-256 of ``content`` to it."""
    return content + seal_for(content)


def unsealed(content: bytes) -> bytes:
    """Return ``content`` without its seal.

    Raises:
        FileRuleError: If the seal is missing, or does not fit.
    """
    payload = content[:-SEAL_BYTES]
    seal = content[-SEAL_BYTES:]
    if not SEAL.fullmatch(seal):
        raise FileRuleError("not_sealed")
    if seal != seal_for(payload):
        raise FileRuleError("changed")
    return payload


def sealed_json(plain: object) -> str:
    """Return ``plain`` as JSON text beside the SHA-256 of this text."""
    content = json.dumps(plain)
    sha256 = hashlib.sha256(content.encode()).hexdigest()
    return f'{{"sha256": "{sha256}", "content": {content}}}\n'


def unsealed_json(text: bytes) -> Any:
    """Return what `sealed_json` wrote; raise a `FileRuleError` if any byte of ``text`` is another one."""
    plain = json.loads(text)
    content = plain.get("content") if isinstance(plain, dict) else None
    # Any other text than that of this content is refused, also one that differs in a space.
    if sealed_json(content).encode() != text:
        raise FileRuleError("changed")
    return content


def save_artifact(content: Mapping[str, Any], path: Path, *, kind: str) -> None:
    """Write ``content``, of tensors and plain values, to a sealed file that `load_artifact` reads."""
    import torch

    buffer = io.BytesIO()
    torch.save({**content, "kind": kind}, buffer)
    replace_file(path, lambda file: file.write(sealed(buffer.getvalue())))


def load_artifact(
    path: Path,
    restore: Callable[[Any], Restored],
    *,
    kind: str,
    source: str,
    subject: str,
) -> Restored:
    """Load the content of a file of `save_artifact`, without running code, and return ``restore(content)``.

    Any problem except a missing file raises an `InvalidValueError`. Messages name the file, ``source`` (the command or
    class that writes such files) and ``subject`` (the content of such files).
    """
    place = f"{printable(str(path))}:"
    try:
        payload = unsealed(read_limited(path, MAX_BYTES))
        content = load_tensors(io.BytesIO(payload))
    except FileNotFoundError:
        raise
    except FileRuleError as problem:
        raise InvalidValueError(
            "not_as_written", place, source=source, cause=problem
        ) from None
    except Exception as problem:  # zip and pickle raise many kinds
        raise InvalidValueError("unreadable_file", place, source=source) from problem
    if not isinstance(content, dict) or content.get("kind") != kind:
        raise InvalidValueError("not_of_source", place, source=source)
    try:
        return restore(content)
    except Exception as problem:  # any value may have any type
        reason = str(problem)
        if isinstance(problem, KeyError):
            reason = f"has no {problem}"
        reason = printable(" ".join(reason[: 2 * MAX_QUOTED].split()))
        raise InvalidValueError(
            "damaged", place, subject=subject, reason=reason
        ) from problem
