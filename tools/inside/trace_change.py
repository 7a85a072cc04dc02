"""What does a patch do to how often a factor is applied? The worlds before and after it."""

from __future__ import annotations

import ast
import math
import re
from dataclasses import replace
from typing import Any

from .deep import deeply
from .exactly_once import entries, sinks
from .exactly_once.change import Asked, Compared, built_by_constructors, compare
from .exactly_once.confine import Unit, confine
from .exactly_once.contract import add_contract
from .exactly_once.effort import Effort
from .exactly_once.engine import Engine
from .exactly_once.entries import Entry
from .exactly_once.focus import Focus
from .exactly_once.program import Program
from .exactly_once.units import Changed, changed
from .fail import InsideError
from .overlay import Overlay, files_below
from .source import Tree
from .trace_factor import nothing_there

MOST_STARTS = 6
"""Entries that are followed where none is named."""


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Compare the entries that a request means before and after a patch.

    Args:
        request: `root`; `before` and `after`, folders with the patch's files as it found and left them; `factor`,
            `entry`; optional `facts`, `sinks`, `seconds` and `wall` as for `trace_factor`, and
            `ordinary`, more facts for which to look where all worlds are too many.

    Raises:
        InsideError: no such entry, or the tree's files aren't those that the patch left.
    """
    with deeply():
        return _traced(request)


def _traced(request: dict[str, Any]) -> dict[str, Any]:
    effort = Effort(request.get("wall", math.inf))
    old, new = Tree(request["before"]), Tree(request["after"])
    here = Tree(request["root"])
    paths = sorted({*files_below(old.root), *files_below(new.root)})
    _require_left(here, new, paths)
    before = Program(Overlay(here.root, old.root, new.root))
    after = Program(here)
    known = sinks.load(request.get("sinks", ""), "sinks")
    until = effort.after(request.get("seconds", 60.0))
    facts, ordinary = request.get("facts", {}), request.get("ordinary", {})
    asked = Asked(before, after, request["factor"], known, facts, ordinary, until, effort)
    found = changed(old, new, paths)
    first = Engine(after, asked.factor, known)
    starts = _starts(after, first, request["entry"], found)
    if not starts:
        raise InsideError(nothing_there(asked.factor, request["entry"], first))
    units = [confine(asked, path, name, found) for path, name in found.classes if not _is_start(path, name, starts)]
    for unit in units:
        add_contract(asked, unit)
    results = _compared(asked, starts, found, units, first)
    return {
        "changed": [f"{path}::{name}" for path, name in sorted(found.functions)],
        "loose": found.loose,
        "units": [vars(unit) for unit in units],
        "only_here": _only_here(after, units, found, starts),
        "entries": [_plain(result) for result in results],
    }


def _starts(program: Program, engine: Engine, named: str, found: Changed) -> list[Entry]:
    """The entries that a request means, or those that name what the patch changes."""
    if named:
        return entries.named(program, engine, named) or reached(program, engine, named)
    everywhere = entries.everywhere(program, engine)
    words = {part for _, name in found.functions for part in name.split(".") if not part.startswith("__")}
    changed_here = {(path, name.partition(".")[0]) for path, name in found.functions}

    def leads(entry: Entry) -> bool:
        owner = entry.function.owner
        home = (entry.function.module.path, owner.name if owner else entry.function.name)
        text = engine.class_text(owner) if owner else entry.function.text
        return home in changed_here or bool(words & set(re.findall(r"\w+", text)))

    return [entry for entry in everywhere if leads(entry)][:MOST_STARTS] or everywhere[:MOST_STARTS]


def _require_left(here: Tree, new: Tree, paths: list[str]) -> None:
    """Raises `InsideError` where a later change touched a patch's files: its own can't be told apart in the tree."""
    for path in paths:
        states = [tree.read(path) if tree.is_file(path) else None for tree in (here, new)]
        if states[0] != states[1]:
            raise InsideError(
                f"{path}: another patch changes this file later; the state before this patch alone is lost"
            )


def _is_start(path: str, name: str, starts: list[Entry]) -> bool:
    return any(s.function.owner and (s.function.module.path, s.function.owner.name) == (path, name) for s in starts)


def _compared(asked: Asked, starts: list[Entry], found: Changed, units: list[Unit], engine: Engine) -> list[Compared]:
    focus = Focus()
    confined = {(u.path, u.name): u.cubes for u in units}
    for (path, name), methods in found.classes.items():
        cubes = confined.get((path, name))
        if cubes is not None:
            focus.functions[path, f"{name}.__init__"] = cubes
            continue
        focus.functions |= {(path, f"{name}.{method}"): None for method in methods}
        if (path, name) in confined:
            focus.classes.add((path, name))
    focus.functions |= dict.fromkeys(found.plain)
    built = {(u.path, u.name) for u in units}
    settled = (
        not found.plain
        and not found.loose
        and len(built) == len(found.classes)
        and built_by_constructors(asked.after, built)
    )
    results: list[Compared] = []
    for number, start in enumerate(starts):
        left = max(asked.effort.left(asked.until), 1.0)
        share = replace(asked, until=asked.effort.after(left / (len(starts) - number)))
        results += compare(share, start, focus, settled)
        if any(result.certain for result in results):
            break
    return results


def reached(program: Program, engine: Engine, path: str) -> list[Entry]:
    """Entries of the classes that a file names and imports, where the file itself doesn't mention the factor."""
    waiting, seen = [path], {path}
    while waiting:
        at = program.module(waiting.pop(0))
        for place in _imports(program, at.path) if at else ():
            module = program.at_place(place)
            if at is None or module is None or module.path in seen:
                continue
            seen.add(module.path)
            waiting.append(module.path)
            found = [
                entry
                for entry in (entries.in_file(module.path, program, engine) if engine.factor in module.text else [])
                if entry.function.owner is not None and entry.function.owner.name in at.text
            ]
            if found:
                return found
    return []


def _imports(program: Program, path: str) -> list[str]:
    module = program.module(path)
    found: list[str] = []
    for statement in ast.walk(ast.Module(module.header if module else [], [])):
        if isinstance(statement, ast.ImportFrom):
            dotted = statement.module or ""
            names = [f"{dotted}.{a.name}" if dotted else a.name for a in statement.names]
            for each in [*names, dotted]:
                place = program.place(path, each, statement.level)
                found += [place] if place else []
        elif isinstance(statement, ast.Import):
            places = [program.place(path, alias.name) for alias in statement.names]
            found += [place for place in places if place]
    return list(dict.fromkeys(found))


def _only_here(program: Program, units: list[Unit], found: Changed, starts: list[Entry]) -> bool:
    """Whether nothing but the classes that are entered makes objects of the changed classes."""
    if found.plain or found.loose:
        return False
    homes = {(s.function.module.path, s.function.owner.name) for s in starts if s.function.owner}
    for unit in units:
        call = re.compile(rf"(?<!class )\b{re.escape(unit.name)}\(")
        for source in program.texts.holding(unit.name.encode()):
            module = program.module(source) if source != unit.path else None
            makers = {
                n for n, chunks in (module.chunks.items() if module else ()) for c in chunks if call.search(c.text)
            }
            if any((source, name) not in homes for name in makers):
                return False
    return True


def _plain(result: Compared) -> dict[str, Any]:
    function = result.entry.function
    return {
        "path": function.module.path,
        "symbol": function.qualname,
        "line": function.node.lineno,
        "slice": result.slice,
        "rows": result.rows,
        "certain": result.certain,
        "blind": result.blind,
        "failed": result.failed,
        "facts_used": sorted(result.facts_used),
        "assumptions": result.assumptions,
    }
