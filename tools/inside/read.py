"""Read some lines of one file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from .fail import InsideError
from .paths import regular

PROBE = 8192
LONG_LINE = 4000
PIECE = 1 << 20
"""Bytes read at once: a file without line ends is never held whole."""


def run(request: dict[str, Any]) -> dict[str, Any]:
    """`{"path", "start", "lines"}` → the lines from `start` (from 1), the file's line count, size and SHA-256.

    Raises:
        InsideError: no such file, not a regular or not a text file, or `start` is past its end.
    """
    name, start, wanted = request["path"], request["start"], request["lines"]
    path = regular(request["root"], name)
    digest, count, shown = hashlib.sha256(), 0, []
    with open(path, "rb") as stream:
        head = stream.read(PROBE)
        if b"\0" in head:
            raise InsideError(f"{name}: a binary file (NUL byte at offset {head.index(0)}); only text can be read")
        stream.seek(0)
        for raw, length in _lines(stream, digest):
            count += 1
            if start <= count < start + wanted:
                shown.append(_line(raw, length))
        size = stream.tell()
    if start > max(count, 1):
        raise InsideError(f"{name}: has {count} lines; nothing stands at line {start}")
    return {"lines": shown, "total_lines": count, "size": size, "sha256": digest.hexdigest()}


def _lines(stream: BinaryIO, digest: hashlib._Hash) -> Iterator[tuple[bytes, int]]:
    """The first piece of each line, and the bytes in all of it."""
    first, length = b"", 0
    while piece := stream.readline(PIECE):
        digest.update(piece)
        first, length = first or piece, length + len(piece)
        if piece.endswith(b"\n"):
            yield first, length
            first, length = b"", 0
    if length:
        yield first, length


def _line(raw: bytes, length: int) -> str:
    text = raw.rstrip(b"\r\n").decode("utf-8", "backslashreplace")
    return text if len(text) <= LONG_LINE else f"{text[:LONG_LINE]} … ({length:,} bytes in this line)"
