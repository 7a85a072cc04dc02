"""The event log: one writer, appended and flushed before anyone acts on an event, chained so that an edit shows."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..tools.redact import redact_value
from .events import ADAPTER, AnyEvent
from .store import CaseError

FIRST = "0" * 64
"""What the first line gives as the digest of the line before it."""

SEAL = b',"sha256":"%s"}\n'
"""The end of every line: SHA-256 over what stands before it, so that an edit shows even in the last line."""
SEAL_BYTES = len(SEAL % FIRST.encode())


@dataclass(frozen=True)
class Record:
    """One line of the log: its number from 1, when it was written (seconds since 1970), and the event."""

    number: int
    at: float
    event: AnyEvent


Listener = Callable[[Record], None]


class EventLog:
    """Appends events to one case. Only one process may hold it."""

    def __init__(self, path: Path, listen: Listener | None = None) -> None:
        """Open the log at `path`, dropping a last line that a crash cut short.

        Raises:
            CaseError: another process holds it, or it isn't what was written.
        """
        self._path, self._listen = path, listen
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._read()
        except BlockingIOError:
            os.close(self._file)
            raise CaseError(f"{path}: another sleuth is working on this case") from None
        except BaseException:
            os.close(self._file)
            raise

    def _read(self) -> None:
        """Take in what stands in the file."""
        drop_torn_line(self._file)
        self.records: list[Record] = []
        self._last = FIRST
        for record, digest in _lines(self._path):
            self.records.append(record)
            self._last = digest
        self._size = os.fstat(self._file).st_size

    def append(self, event: AnyEvent) -> Record:
        """Redact, validate, chain, write and flush one event; then tell the listener.

        Raises:
            OSError: it can't be written; what was written of it is dropped by the next append, or when the log is
                opened again.
        """
        if os.fstat(self._file).st_size != self._size:
            self._read()  # the last append was interrupted, between its write and its end
        clean = ADAPTER.validate_python(redact_value(event.model_dump(mode="json")))
        record = Record(len(self.records) + 1, round(time.time(), 3), clean)
        body = {"n": record.number, "at": record.at, "prev": self._last, "event": clean.model_dump(mode="json")}
        line, digest = sealed(body)
        self._write(line)
        self.records.append(record)
        self._last = digest
        self._size += len(line)
        if self._listen:
            self._listen(record)
        return record

    def _write(self, line: bytes) -> None:
        while line:
            line = line[os.write(self._file, line) :]

    def close(self) -> None:
        """Make everything durable and let go of the log."""
        try:
            os.fsync(self._file)
        finally:
            os.close(self._file)


def sealed(body: dict[str, Any]) -> tuple[bytes, str]:
    """A line of the log, and the digest that the next one gives as `prev`."""
    start = json.dumps(body, separators=(",", ":"))[:-1].encode()
    digest = hashlib.sha256(start).hexdigest()
    return start + SEAL % digest.encode(), digest


def drop_torn_line(file: int) -> None:
    """Cut the open file `file` back to the end of its last whole line."""
    size = whole = os.fstat(file).st_size
    while whole > 0:
        start = max(0, whole - (1 << 16))
        found = os.pread(file, whole - start, start).rfind(b"\n")
        if found >= 0:
            whole = start + found + 1
            break
        whole = start
    if whole < size:
        os.ftruncate(file, whole)


def read_log(path: Path) -> Iterator[Record]:
    """The records of a log, checked one by one; a last line that a crash cut short is passed over.

    Raises:
        CaseError: a line isn't an event, was changed, or doesn't follow from the one before it.
    """
    return (record for record, _ in _lines(path))


def _lines(path: Path) -> Iterator[tuple[Record, str]]:
    """The records, each with its line's digest."""
    previous = FIRST
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.endswith(b"\n"):
                return
            where = f"{path}:{number}"
            start, seal = line[:-SEAL_BYTES], line[-SEAL_BYTES:]
            digest = hashlib.sha256(start).hexdigest()
            if seal != SEAL % digest.encode():
                raise CaseError(f"{where}: isn't what sleuth wrote: the log was changed")
            yield _record(where, number, start + b"}", previous), digest
            previous = digest


def _record(where: str, number: int, text: bytes, previous: str) -> Record:
    try:
        body: dict[str, Any] = json.loads(text)
        if body["n"] != number or body["prev"] != previous:
            raise CaseError(f"{where}: doesn't follow from the line before it: the log was changed")
        return Record(number, body["at"], ADAPTER.validate_python(body["event"]))
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        said = str(error).splitlines()[0]
        raise CaseError(f"{where}: not an event of this version of sleuth: {said}") from error
