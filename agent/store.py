"""A case on disk: its events, its artefacts, what it was opened with."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from ..sandbox.errors import SleuthError, UsageError
from ..sandbox.leftovers import end_leftovers
from ..sandbox.yamlfile import did_you_mean
from ..tools.call import Artefact

EVENTS = "events.jsonl"


class CaseError(SleuthError):
    """A case that can't be read, or was changed by something other than sleuth."""


class CaseFolder:
    """`<home>/cases/<id>/`: events.jsonl, artefacts/<sha256>, checkpoint.sqlite, inputs/, clone/ and scratch/.

    The last two exist only while a process works on the case.
    """

    def __init__(self, path: Path) -> None:
        """A case at `path`, which need not exist yet."""
        self.path = path
        self.id = path.name
        self.events = path / EVENTS
        self.artefacts = path / "artefacts"
        self.checkpoint = path / "checkpoint.sqlite"
        self.inputs = path / "inputs"
        self.layers = path / "clone"
        self.scratch = path / "scratch"

    @classmethod
    def create(cls, home: Path, name: str) -> CaseFolder:
        """Make the folder of a new case.

        Raises:
            UsageError: it can't be made there.
        """
        stamp = time.strftime("%Y%m%d-%H%M%S")
        folder = cls(home / "cases" / f"{stamp}-{name}-{secrets.token_hex(2)}")
        try:
            for path in (folder.artefacts, folder.inputs, folder.scratch):
                path.mkdir(parents=True)
        except OSError as error:
            raise UsageError(
                f"can't write cases to {home}: {error.strerror}; choose another place with --home"
            ) from error
        return folder

    def keep(self, name: str, path: Path) -> Artefact:
        """Take a finished file in as an artefact; the same content is kept once."""
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        target = self.artefacts / digest
        size = path.stat().st_size
        if not target.exists():
            part = self.artefacts / f".{digest}.{os.getpid()}"
            shutil.copyfile(path, part)
            part.rename(target)
        return Artefact(name=name, digest=digest, size=size)

    def artefact(self, digest: str) -> Path:
        """The file of an artefact, by its digest or the unambiguous start of one.

        Raises:
            UsageError: there is no such artefact, or more than one.
        """
        found = sorted(self.artefacts.glob(f"{digest}*")) if digest.isalnum() else []
        if len(found) != 1:
            raise UsageError(f"{self.id}: {len(found) or 'no'} artefacts start with {digest!r}")
        return found[0]

    def read(self, digest: str) -> bytes:
        """The content of the artefact `digest`.

        Raises:
            CaseError: it is gone, or isn't what was kept.
        """
        try:
            content = (self.artefacts / digest).read_bytes()
        except OSError as error:
            raise CaseError(f"{self.id}: the artefact {digest} can't be read: {error.strerror}") from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise CaseError(f"{self.id}: the artefact {digest} isn't what was kept: it was changed")
        return content

    @contextlib.contextmanager
    def workspace(self) -> Iterator[None]:
        """Fresh scratch and clone folders, gone again at the end; leftovers of a killed run are cleared first."""
        self.clear()
        self.scratch.mkdir()
        self.layers.mkdir()
        try:
            yield
        finally:
            self.clear()

    def clear(self) -> None:
        """Remove what exists only while a process works on the case; only that process, which holds the log, may."""
        if self.scratch.exists():
            end_leftovers(self.scratch)
        for path in (self.scratch, self.layers):
            shutil.rmtree(path, ignore_errors=True)
        for part in self.artefacts.glob(".*"):
            part.unlink(missing_ok=True)


def cases(home: Path) -> list[CaseFolder]:
    """Every case below `home`, oldest first."""
    found = [CaseFolder(path.parent) for path in (home / "cases").glob(f"*/{EVENTS}")]
    return sorted(found, key=_age)


def _age(case: CaseFolder) -> tuple[str, int, str]:
    """An id starts with the second it was made in; of two in one second, the inputs say which came first."""
    with contextlib.suppress(OSError):
        return case.id[: len("YYYYmmdd-HHMMSS")], case.inputs.stat().st_mtime_ns, case.id
    return case.id, 0, case.id


def find_case(home: Path, name: str) -> CaseFolder:
    """The case called `name`: an id, the start of one, or `last`.

    Raises:
        UsageError: none, or several.
    """
    known = {case.id: case for case in cases(home)}
    if name == "last" and known:
        return list(known.values())[-1]
    found = [case for ident, case in known.items() if ident == name or ident.startswith(name)]
    if name in known:
        return known[name]
    if len(found) != 1:
        if not known:
            raise UsageError(f"there are no cases in {home / 'cases'}; --home names another place")
        what = f"{len(found)} cases start with {name!r}" if found else f"no case {name!r} in {home / 'cases'}"
        raise UsageError(f"{what}{did_you_mean(name, known)}")
    return found[0]
