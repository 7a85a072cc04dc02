"""One run of the entry in one world, in this process; `child` gives it a process of its own."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any

from ..fail import InsideError
from ..source import Unreadable
from . import context
from .builtin_names import tree_builtins
from .entry import Count, execute
from .files import Files
from .modules import Modules, class_index, classes_known, prepare
from .oracle import Impossible, Oracle, StandInError
from .registered import scanned, scanned_files
from .sinks import Sinks

LOOKED = (
    "statements",
    "defines",
    "changed",
    "type_imports",
    "raising",
    "asserted",
    "assigned",
    "compiles",
    "annotations",
)
"""Properties of a source file that are worth computing once."""

RAISE = {"RAISE_VARARGS", "RERAISE"}


@dataclass
class Result:
    """What one run found; what crosses the pipe.

    Attributes:
        impossible: its answers contradict the facts.
        executed, scanned, looked, found, classes: what it read of the tree, so that the parent can do so once for all.
    """

    count: int | None = None
    unknown: str = ""
    raises: str = ""
    choices: list[dict[str, Any]] = field(default_factory=list)
    sites: list[list[Any]] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    blind: list[list[Any]] = field(default_factory=list)
    executed: list[list[Any]] = field(default_factory=list)
    scanned: list[str] = field(default_factory=list)
    looked: dict[str, list[str]] = field(default_factory=dict)
    found: dict[str, list[str] | None] = field(default_factory=dict)
    classes: bool = False
    impossible: bool = False


@dataclass
class Trial:
    """What stays the same from run to run."""

    files: Files
    path: str
    symbol: str
    factor: str
    facts: dict[str, Any]
    sinks: Sinks
    compiled: set[tuple[str, int]] = field(default_factory=set)
    scanned: set[str] = field(default_factory=set)
    looked: dict[str, list[str]] = field(default_factory=dict)
    found: set[str] = field(default_factory=set)

    def _compiled(self, path: str, number: int) -> bool:
        return (path, number) in self.compiled

    def warm(self, result: Result) -> None:
        """Read, parse and compile in this process what a run needed, so that the next ones find it done."""
        if result.classes:
            class_index(self.files)
        for path in result.scanned:
            self.scanned.add(path)
            scanned(self.files, path)
        for name, place in result.found.items():
            self.found.add(name)
            self.files.found[name] = (place[0], place[1]) if place else None
        for path, names in result.looked.items():
            self._look(path, names)
            self.looked[path] = names
        for path, number in result.executed:
            try:
                self.files.get(self.files.tree.require(path)).code(number)
            except (InsideError, Unreadable, StandInError, ValueError, RecursionError, IndexError):
                continue
            self.compiled.add((path, number))

    def _look(self, path: str, names: list[str]) -> None:
        try:
            file = self.files.get(self.files.tree.require(path))
            for name in names:
                if name in LOOKED:
                    getattr(file, name)
        except (InsideError, Unreadable, StandInError):
            return

    def run(self, plan: dict[str, str], tell: Callable[[dict[str, Any]], None] = lambda choice: None) -> Result:
        """Run the entry once, with these answers; `tell` hears of each question as it is answered."""
        oracle = Oracle(self.facts, plan, context.where, lambda choice: tell(asdict(choice)))
        owner, _, factor = self.factor.rpartition(".")
        run = context.Run(oracle, factor, owner, sinks=self.sinks)
        context.begin(run)
        modules = Modules(self.files, self.path, tree_builtins())
        prepare(run, modules)
        result = Result()
        sys.setrecursionlimit(1500)
        try:
            self._count(result, execute(modules, self.path, self.symbol))
        except Impossible:
            result.impossible = True
        except StandInError as error:
            result.unknown = run.trouble or str(error)
        except BaseException as error:  # noqa: BLE001 - anything that the tree's code raises is an outcome
            self._raised(result, error)
        if run.trouble and not result.unknown:
            result.count, result.raises, result.unknown = None, "", run.trouble
        result.choices = [asdict(choice) for choice in oracle.log]
        result.sites = [list(site) for site in run.sites]
        result.assumptions = list(run.assumptions)
        result.blind = [list(one) for one in run.blind]
        result.executed = [list(one) for one in modules.executed if not self._compiled(*one)]
        result.scanned = sorted(set(scanned_files(self.files)) - self.scanned)
        result.found = {
            name: list(place) if place else None for name, place in self.files.found.items() if name not in self.found
        }
        result.classes = classes_known(self.files)
        for path, file in self.files.loaded.items():
            names = [name for name in LOOKED if name in vars(file)]
            if names != self.looked.get(path):
                result.looked[path] = names
        return result

    def _count(self, result: Result, found: Count) -> None:
        result.count, result.unknown = found.count, found.unknown

    def _raised(self, result: Result, error: BaseException) -> None:
        """An exception that the tree raises itself is an outcome; any other is trouble with the stand-ins."""
        trace, inner = error.__traceback__, None
        while trace is not None:
            if trace.tb_frame.f_code.co_filename.startswith(context.MARK):
                inner = trace
            trace = trace.tb_next
        told = f"{type(error).__name__}: {str(error)[:300]}".rstrip(": ")
        if inner is None:
            result.unknown = f"the stand-ins broke: {told}"
            return
        place = f"{inner.tb_frame.f_code.co_filename[len(context.MARK) :]}:{inner.tb_lineno}"
        if _by_raise(inner) and __package__ not in told and not isinstance(error, RecursionError | MemoryError):
            result.raises = f"{place} {told}"
        else:
            result.unknown = f"the stand-ins don't carry this code: {told} ({place})"


def _by_raise(trace: TracebackType) -> bool:
    code = trace.tb_frame.f_code.co_code
    return trace.tb_next is None and dis.opname[code[trace.tb_lasti]] in RAISE
