"""Read what ripgrep printed, of any size, without holding it in memory."""

from __future__ import annotations

import base64
import itertools
import json
import os
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .inside.paths import to_shown

LONG_LINE = 1 << 20
"""Bytes of one JSON line from which a hit's text isn't decoded any more."""
SHOWN = 400
"""Characters of a matching line that are shown."""


@dataclass(frozen=True)
class RawHit:
    """One matching line."""

    file: str
    line: int
    text: str


class Matches:
    """The matches in one `rg --json` output (format: grep_printer::JSON), read in path order whatever order rg ran in.

    Attributes:
        counts: matching lines per file.
        total: matching lines in all.
        finished: rg came to its end; a last line that was cut short is dropped.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.total, self.finished = 0, False
        self._offsets: dict[str, array[int]] = {}
        self._index()
        self.counts = {file: len(offsets) for file, offsets in sorted(self._offsets.items()) if offsets}

    def _index(self) -> None:
        offset, current = 0, ""
        with self.path.open("rb") as stream:
            for raw in stream:
                if not raw.endswith(b"\n"):
                    break
                if raw.startswith(b'{"type":"match"'):
                    self.total += 1
                    self._offsets[current].append(offset)
                else:
                    current = self._message(json.loads(raw), current)
                offset += len(raw)

    def _message(self, message: dict[str, Any], current: str) -> str:
        kind, data = message["type"], message["data"]
        if kind == "begin":
            current = _name(_bytes(data["path"]))
            self._offsets.setdefault(current, array("Q"))
        elif kind == "summary":
            self.finished = True
        return current

    def hits(self, limit: int | None = None) -> list[RawHit]:
        """The first `limit` matching lines, by path and line number."""
        return list(itertools.islice(self._each(), limit))

    def _each(self) -> Iterator[RawHit]:
        with self.path.open("rb") as stream:
            for file, offsets in sorted(self._offsets.items()):
                for offset in offsets:
                    stream.seek(offset)
                    yield _hit(stream.readline(), file)

    def write(self, target: Path) -> Path:
        """Write every match as `file:line: text` to `target`."""
        with target.open("w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.writelines(f"{hit.file}:{hit.line}: {hit.text}\n" for hit in self._each())
        return target


@dataclass(frozen=True)
class Counts:
    """Matching lines per file, and in all."""

    files: dict[str, int]
    total: int


def _hit(raw: bytes, file: str) -> RawHit:
    if len(raw) > LONG_LINE:
        line = re.search(rb'"line_number":(\d+)', raw)  # in the text itself quotes are escaped
        return RawHit(file, int(line[1]) if line else 0, f"(a line of about {len(raw):,} bytes)")
    data = json.loads(raw)["data"]
    text = _text(data["lines"]).rstrip("\r\n")
    shown = text if len(text) <= SHOWN else f"{text[:SHOWN]} … ({len(text):,} characters)"
    return RawHit(file, data["line_number"] or 0, shown)


def _bytes(value: dict[str, Any]) -> bytes:
    """rg writes what isn't UTF-8 as base64."""
    return base64.b64decode(value["bytes"]) if "bytes" in value else str(value["text"]).encode()


def _text(value: dict[str, Any]) -> str:
    r"""A line's text; bytes that aren't UTF-8 are shown as `\xNN`."""
    return str(value["text"]) if "text" in value else _bytes(value).decode("utf-8", "backslashreplace")


def _name(raw: bytes) -> str:
    """A file's name, relative to the clone's root, as it is shown."""
    return to_shown(os.fsdecode(raw).removeprefix("./"))


def read_counts(path: Path) -> Counts:
    """Parse `rg --count --null` output: `file NUL count` lines."""
    files: dict[str, int] = {}
    for name, count in re.findall(rb"([^\0]+)\0(\d+)\n", path.read_bytes()):
        files[_name(name)] = int(count)
    return Counts(files, sum(files.values()))
