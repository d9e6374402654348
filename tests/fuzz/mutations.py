"""Small random damage to the bytes of a file, as a broken disk, a wrong editor or a hostile author might do it."""

import random

# Bytes that readers trip over: text that is not UTF-8, control characters, numbers that overflow, YAML and CSV syntax.
TOKENS = (
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\x1b[31m",
    b"\r",
    b"\n\n",
    b"\t",
    b",",
    b";",
    b'"',
    b"'",
    b"{",
    b"[",
    b": ",
    b"- ",
    b"&a ",
    b"*a",
    b"!!python/object ",
    b"<script>",
    b"../",
    b"nan",
    b"-inf",
    b"1e400",
    b"-1",
    b"0",
    b"1e-300",
    b"9223372036854775809",
    b"99999999999999999999999999",
    b"0x10",
    b"1_000",
    b"true",
    b"null",
    b"\xc3\xa9",
    b"\xed\xa0\x80",
    b"\xe2\x80\xae",
)
MAX_PIECE = 64
"""In bytes: a file grows and shrinks by small amounts, so that thousands of mutations remain quick."""


def mutated(data: bytes, generator: random.Random) -> bytes:
    """Damage `data` one to four times, in ways and at places that `generator` chooses.

    The result depends only on the arguments: a mutation that breaks a reader is found again with its seed.

    Args:
        data: The bytes of a file that the reader accepts.
        generator: The source of randomness.

    Returns:
        The damaged bytes; they may be empty and, by chance, still be a valid file.
    """
    for _ in range(generator.randint(1, 4)):
        damage = generator.choice(
            (_flip, _overwrite, _cut, _truncate, _repeat, _insert, _replace_number)
        )
        data = damage(data, generator)
    return data


def _flip(data: bytes, generator: random.Random) -> bytes:
    if not data:
        return data
    at = generator.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << generator.randrange(8))]) + data[at + 1 :]


def _overwrite(data: bytes, generator: random.Random) -> bytes:
    at, size = generator.randint(0, len(data)), generator.choice((1, 2, 4, 8))
    fill = generator.choice((b"\x00", b"\xff", b"\x7f", b"\x80"))
    return data[:at] + fill * size + data[at + size :]


def _cut(data: bytes, generator: random.Random) -> bytes:
    start, end = sorted((generator.randint(0, len(data)), generator.randint(0, len(data))))
    return data[:start] + data[min(end, start + MAX_PIECE) :]


def _truncate(data: bytes, generator: random.Random) -> bytes:
    return data[: generator.randint(0, len(data))]


def _repeat(data: bytes, generator: random.Random) -> bytes:
    start = generator.randint(0, len(data))
    piece = data[start : start + generator.randint(1, MAX_PIECE)]
    return data[:start] + piece * generator.randint(2, 8) + data[start + len(piece) :]


def _insert(data: bytes, generator: random.Random) -> bytes:
    at = generator.randint(0, len(data))
    return data[:at] + generator.choice(TOKENS) + data[at:]


def _replace_number(data: bytes, generator: random.Random) -> bytes:
    digits = [at for at, byte in enumerate(data) if chr(byte).isdigit() and byte < 128]
    if not digits:
        return _insert(data, generator)
    start = end = generator.choice(digits)
    while end < len(data) and data[end : end + 1].isdigit():
        end += 1
    return data[:start] + generator.choice(TOKENS) + data[end:]
