"""The run that is going on: one a process, so that stand-ins find it without being told."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from .oracle import Oracle, StandInError

MARK = "tree:/"
"""How the file name of every piece of code of the tree begins."""

MOST_SITES = 2_000


@dataclass
class Run:
    """What one run knows and notes down.

    Attributes:
        factor: last component of the factor's name.
        owner: what stood before it, if anything.
        sites: applications in order: path, line, kind.
        assumptions, blind: what the count rests on, and what could not be seen.
        trouble: why this run's count can't be trusted, the first reason met.
        written: attributes that the code set on unknown objects, in order.
        ops: registered custom operators by name.
        tree: the lazy modules (`modules.Modules`).
        sinks: what is known of calls that leave Python (`sinks.Sinks`).
        nones, present: names of unknown values that are None in this world, and of those that aren't.
        classes: by an object's name, what was answered of its class: the class, whether exactly, and yes or no.
        fitting: by class, the classes of the tree that an object of it can have (`bodies`).
        bodies: by an object's name, the real object that stands for it.
        exact: names of objects whose class is known, and of which no real object could be made.
    """

    oracle: Oracle
    factor: str
    owner: str = ""
    sites: list[tuple[str, int, str]] = field(default_factory=list)
    assumptions: dict[str, None] = field(default_factory=dict)
    blind: dict[tuple[str, int, str], None] = field(default_factory=dict)
    trouble: str = ""
    written: list[tuple[Any, str, Any]] = field(default_factory=list)
    ops: dict[str, Callable[..., Any]] = field(default_factory=dict)
    tree: Any = None
    sinks: Any = None
    loops: int = 0
    bounds: dict[str, Any] = field(default_factory=dict)
    nones: set[str] = field(default_factory=set)
    present: set[str] = field(default_factory=set)
    classes: dict[str, list[tuple[type, bool, bool]]] = field(default_factory=dict)
    fitting: dict[type, list[type] | None] = field(default_factory=dict)
    bodies: dict[str, Any] = field(default_factory=dict)
    exact: set[str] = field(default_factory=set)

    def site(self, kind: str) -> None:
        """Note that the factor is applied here."""
        if len(self.sites) < MOST_SITES:
            self.sites.append((*where(), kind))

    def assume(self, text: str) -> None:
        """Note what the count rests on."""
        if len(self.assumptions) < 200:
            self.assumptions.setdefault(text)

    def unseen(self, why: str) -> None:
        """Note what can't be seen here."""
        if len(self.blind) < 200:
            self.blind.setdefault((*where(), why))

    def wanted(self) -> bool | None:
        """What a test that runs now must come to so that nothing is raised; None if nothing hangs on it."""
        path, line = where()
        file = self.tree.files.loaded.get(path)
        if file is None:
            return None
        return False if line in file.raising else True if line in file.asserted else None

    def likely(self, op: str = "") -> bool:
        """The answer to try first: the one that doesn't raise here; else that one number isn't below another."""
        wanted = self.wanted()
        return op not in ("<", "<=") if wanted is None else wanted

    def spoil(self, why: str) -> None:
        """Whatever this run counts, it isn't to be trusted."""
        self.trouble = self.trouble or why


_current: list[Run] = []


def begin(run: Run) -> None:
    """Make it the current run."""
    _current[:] = [run]


def run() -> Run:
    """The current run."""
    return _current[0]


def tree_frame() -> FrameType | None:
    """The innermost frame that runs code of the tree."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith(MARK):
        frame = frame.f_back
    return frame


def where() -> tuple[str, int]:
    """File and line of the tree that runs now."""
    frame = tree_frame()
    return (frame.f_code.co_filename[len(MARK) :], frame.f_lineno) if frame else ("", 0)


def place() -> str:
    """File and line of the tree that runs now, as text."""
    path, line = where()
    return f"{path}:{line}"


def fail(why: str) -> StandInError:
    """The error to raise where the stand-ins can't go on; the run is spoiled even if someone swallows it."""
    run().spoil(f"{why} ({place()})")
    return StandInError(why)
