"""How often is a factor applied, in which configuration: the static instrument's script."""

from __future__ import annotations

import hashlib
import math
from typing import Any

from .deep import deeply
from .deviants.find import find
from .exactly_once import entries, sinks
from .exactly_once.effort import Effort
from .exactly_once.engine import Engine
from .exactly_once.follow import follow
from .exactly_once.program import Program
from .fail import InsideError
from .source import Tree

MOST_ENTRIES = 200


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Follow the entries that a request means.

    Args:
        request: `root`, `factor`; optional `entry` (see `entries.named`), `facts` (guard to value), `sinks` (TOML),
            `seconds`' worth of work for all entries together (see `effort`), after `wall` seconds all is given up,
            `tables` (false: only the places that deviate).

    Returns:
        `tables`, `files` and so on; `suspects` and `compared` (see `deviants.find`), empty where an entry is named.

    Raises:
        InsideError: no such entry, no such factor, or sinks that aren't valid.
    """
    with deeply():
        return _traced(request)


def _traced(request: dict[str, Any]) -> dict[str, Any]:
    effort = Effort(request.get("wall", math.inf))
    factor, facts = request["factor"], request.get("facts", {})
    if not factor.isidentifier():
        raise InsideError(f"factor {factor!r}: not an identifier; give the name it goes by in the source")
    program = Program(Tree(request["root"]))
    known = sinks.load(request.get("sinks", ""), "sinks")
    first = Engine(program, factor, known)
    named = request.get("entry", "")
    deviant = {"suspects": [], "compared": {}} if named else find(program, factor)
    found = _entries(program, first, request)
    mentioned = bool(found or program.texts.holding(factor.encode()))
    if not found and not deviant["compared"] and (request.get("tables", True) or not mentioned):
        raise InsideError(nothing_there(factor, named, first))
    until = effort.after(request.get("seconds", 60.0))
    tables: list[dict[str, Any]] = []
    for number, entry in enumerate(found[:MOST_ENTRIES]):
        share = max(effort.left(until) / (len(found) - number), 0.5)
        tables += follow(program, entry, factor, known, facts, share, effort)
    return {
        "tables": tables,
        "suspects": deviant["suspects"],
        "compared": deviant["compared"],
        "entries_left_out": max(0, len(found) - MOST_ENTRIES),
        "files": {path: _digest(module.text) for path, module in program.opened.items() if module is not None},
        "broken": program.broken,
    }


def _entries(program: Program, engine: Engine, request: dict[str, Any]) -> list[entries.Entry]:
    if not request.get("tables", True):
        return []
    named = request.get("entry", "")
    return entries.named(program, engine, named) if named else entries.everywhere(program, engine)


def nothing_there(factor: str, entry: str, engine: Engine) -> str:
    """What a user is told where there is no entry."""
    if entry:
        return f"{entry}: nothing there mentions {factor!r}"
    files = engine.program.texts.holding(factor.encode())
    if not files:
        return f"factor {factor!r}: no Python file of the tree mentions it"
    return (
        f"factor {factor!r}: no class reads it from a configuration and has a forward method; name the entry. "
        f"It is mentioned in {', '.join(files[:5])}{' …' if len(files) > 5 else ''}"
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
