"""How often is a block's output reduced over ranks, or a scale applied, before a patch and after it?"""

from __future__ import annotations

import math
import re
from typing import Any

from .deep import deeply
from .exactly_once import entries, sinks
from .exactly_once.diagram import Diagrams
from .exactly_once.effort import Effort
from .exactly_once.entries import Entry
from .exactly_once.program import Program
from .fail import InsideError
from .overlay import Overlay, files_below
from .recounting import groups
from .recounting.changed import Changes, changes
from .recounting.changed import entries as beginnings
from .recounting.counting import Reductions, Watching
from .recounting.handed import Handed
from .recounting.sides import Side, both, differences, rows, source_of
from .source import Tree, decode

SHARED_BY = 2
"""Entries among which the time that is left is divided; those that come first are likelier to tell."""
NOBODY = "the sums over ranks"
"""What goes for the factor's name where none is counted: no identifier."""


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Count in the clone, and with a patch's two states also what it was before.

    Args:
        request: `root`, `counted` (`reductions` or `scale`), `factor` for a scale; optional `before` and `after` (roots
            of a patch's files), `entries` (see `entries.named`; else what the patch changes), `facts`, `seconds` and
            `wall` as for `trace_factor`.

    Raises:
        InsideError: no such entry, or nothing to begin with.
    """
    with deeply():
        return _counted(request)


def _counted(request: dict[str, Any]) -> dict[str, Any]:
    effort = Effort(request.get("wall", math.inf))
    until = effort.after(request.get("seconds", 60.0))
    scale = request["counted"] == "scale"
    factor = (request.get("factor") or _name(request)) if scale else ""
    if scale and not factor.isidentifier():
        raise InsideError(f"factor {factor!r}: not an identifier; give the name it goes by in the source")
    facts, known = request.get("facts", {}), sinks.load()

    def make(program: Program, diagrams: Diagrams) -> Watching:
        kind = Handed if scale else Reductions
        return kind(program, factor if scale else NOBODY, known, facts, diagrams=diagrams)

    one, other, changed = _states(request)
    before, after = (Program(one) if one is not None else None), Program(other)
    word = re.compile(rf"\b{re.escape(factor)}\b") if scale else groups.MENTIONS
    found = _entries(request, changed, after, make(after, Diagrams()), word)
    tables: list[dict[str, Any]] = []
    entered: set[tuple[str, str]] = set()
    named = bool(request.get("entries"))
    for number, entry in enumerate(found):
        if not named and tables and set(changed.functions) <= entered:
            break
        left = max(effort.left(until), 1.0) / min(len(found) - number, SHARED_BY)
        sources = [source_of(entry.function)] if scale else list(dict.fromkeys(["", source_of(entry.function)]))
        first, second = both(before, after, entry, make, sources, left, effort)
        tables.append(_table(entry, first, second))
        entered |= _entered(first, second)
    return {
        "factor": factor,
        "tables": tables,
        "changed": [f"{path}: {name}" for path, name in changed.functions],
        "elsewhere": changed.elsewhere,
        "not_followed": [f"{p}: {n}" for p, n in changed.functions if (p, n) not in entered],
        "compared": before is not None,
    }


def _name(request: dict[str, Any]) -> str:
    """The first of the names that a patch mentions more or less often, else the first that stands in its files."""
    names = request.get("factors", [])
    texts = ["\n".join(_texts(request[side])) if side in request else "" for side in ("before", "after")]
    counts = {name: [len(re.findall(rf"\b{re.escape(name)}\b", text)) for text in texts] for name in names}
    differing = [name for name, (one, other) in counts.items() if one != other]
    return next(iter([*differing, *(name for name, found in counts.items() if any(found)), *names]), "")


def _texts(root: str) -> list[str]:
    tree = Tree(root)
    return [decode(tree.load(path)) for path in files_below(root) if path.endswith(".py")]


def _entered(first: Side | None, second: Side) -> set[tuple[str, str]]:
    """The functions on which both answers rest."""
    if first is None or first.failed or second.failed or not (first.counted or second.counted):
        return set()
    return {e[:2] for e in first.engine.entered} & {e[:2] for e in second.engine.entered}


def _states(request: dict[str, Any]) -> tuple[Tree | None, Tree, Changes]:
    if "before" not in request:
        return None, Tree(request["root"]), Changes()
    one = Overlay(request["root"], request["before"], request["after"])
    other = Overlay(request["root"], request["after"], request["before"])
    return one, other, changes(one, other)


def _entries(
    request: dict[str, Any], changed: Changes, after: Program, engine: Watching, word: re.Pattern[str]
) -> list[Entry]:
    named = [entry for text in request.get("entries", []) for entry in entries.named(after, engine, text)]
    found = named or beginnings(changed, after, engine, word)
    return list({entry.name: entry for entry in found}.values())


def _table(entry: Entry, first: Side | None, second: Side) -> dict[str, Any]:
    function = entry.function
    found = differences(first, second) if first is not None else []
    return {
        "entry": f"{function.module.path}::{function.qualname}",
        "line": function.node.lineno,
        "before": rows(first) if first is not None else [],
        "after": rows(second),
        "differences": [{**vars(each), "before": _said(each.before), "after": _said(each.after)} for each in found],
        "complete": _complete(second) and (first is None or _complete(first)),
        "strangers": sorted(first.engine.handed_how ^ second.engine.handed_how) if first else [],
        "assumptions": list(dict.fromkeys([*(first.engine.assumptions if first else ()), *second.engine.assumptions])),
        "blind": [f"{path}:{line} {why}" for path, line, why in [*second.engine.blind, *second.engine.patched()]],
        "failed": second.failed or (first.failed if first else ""),
    }


def _complete(side: Side) -> bool:
    return not side.failed and side.exact and all(row["count"] is not None for row in rows(side))


def _said(outcome: Any) -> str:
    if outcome.parts:
        return " and ".join(map(str, outcome.parts))
    return str(outcome.count) if outcome.count is not None else outcome.unknown
