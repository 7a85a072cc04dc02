"""Follow one entry and answer its worlds table as plain data."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from . import table as tables
from .core import Arguments, OutOfBudget
from .diagram import Diagrams, Node, TooManyWorlds
from .effort import Effort
from .engine import Engine
from .entries import Entry
from .instances import ManyClasses
from .program import Function, Program
from .sinks import Sinks
from .summary import findings, grouped, summary
from .table import Outcome, Row, spell
from .values import NONE, FunctionValue, Obj

MOST_TOGETHER = 25.0
"""Seconds' worth of work (see `effort`) after which an object's classes are followed one by one."""
MOST_ALTERNATIVES = 12


def follow(
    program: Program, entry: Entry, factor: str, sinks: Sinks, facts: dict[str, str], seconds: float, effort: Effort
) -> list[dict[str, Any]]:
    """The worlds tables of one entry (see `tools/exactly_once.py` for their fields), for `seconds`' worth of work.

    Where an object may have many classes there is one table a class, its `slice` naming it.
    """
    until = effort.after(seconds)

    def attempt(more: dict[str, str], share: float, may_slice: bool = False) -> dict[str, Any] | ManyClasses | str:
        engine = Engine(program, factor, sinks, {**facts, **more}, diagrams=Diagrams(effort=effort))
        engine.until, engine.may_slice = effort.after(share), may_slice
        return _attempt(engine, entry)

    whole = attempt({}, min(seconds / 3, MOST_TOGETHER))
    if isinstance(whole, dict):
        return [{**whole, "slice": {}}]
    waiting: list[dict[str, str]] = [{}]
    done: list[dict[str, Any]] = []
    while waiting:
        slice_ = waiting.pop(0)
        found = attempt(slice_, effort.left(until) / (len(waiting) + 1), not slice_)
        if isinstance(found, ManyClasses):
            waiting = [{found.name: value} for value in found.values]
        elif isinstance(found, dict):
            done.append({**found, "slice": slice_})
        else:
            done.append({**_data(Engine(program, factor, sinks, facts), entry, [], found), "slice": slice_})
    return done


def _attempt(engine: Engine, entry: Entry) -> dict[str, Any] | ManyClasses | str:
    """The table; or the object whose classes should be followed one by one; or why there is none."""
    try:
        result = run(engine, entry, construct(engine, entry))
        return _data(engine, entry, tables.make(result, engine.diagrams.true, engine), "")
    except ManyClasses as many:
        return many
    except (TooManyWorlds, OutOfBudget, RecursionError) as error:
        return str(error) or "calls inside calls, deeper than can be followed"


def construct(engine: Engine, entry: Entry) -> Obj | None:
    """The object that the entry is a method of, made by its constructor; None for a function."""
    function = entry.function
    if function.owner is None:
        return None
    built = Obj(function.owner, "instance", {}, "self")
    init = engine.method(function.owner, "__init__")
    if init is not None:
        frame = engine.module_frame(function.module)
        engine.enter(FunctionValue(init, built), Arguments([], {}, entry=True), frame, engine.diagrams.true)
    return built


def run(engine: Engine, entry: Entry, built: Obj | None) -> Node:
    """What the entry returns, in the worlds that are alive, or leaves in the object that it was handed."""
    function = entry.function
    frame = engine.module_frame(function.module)
    nothing = Arguments([], {}, entry=True)
    if built is None:
        return engine.enter(FunctionValue(function), nothing, frame, engine.alive)
    for earlier in steps_before(engine, function):
        engine.enter(FunctionValue(earlier, built), nothing, frame, engine.alive)
    result = engine.enter(FunctionValue(function, built), nothing, frame, engine.alive)
    kept = [engine.extras.get(name, {}) for name in _handed(function)]
    written = [
        v for attrs in kept for key, v in attrs.items() if re.search(rf"\.{re.escape(key)}\s*=[^=]", function.text)
    ]
    # A step hands its result on in the object that it shares with the others.
    return written[-1] if written and getattr(result, "value", None) == NONE else result


def _handed(function: Function) -> list[str]:
    return [a.arg for a in function.node.args.args if a.arg not in ("self", "cls")]


def steps_before(engine: Engine, function: Function) -> list[Function]:
    """Methods of the same class that leave what this one picks up in an object which all of them are handed."""
    owner, names = function.owner, _handed(function)
    if owner is None or len(names) != 1 or not _read(function, names[0]):
        return []
    own = {n: f for at in reversed(engine.lineage(owner)) for n, f in at.functions.items()}
    steps = {n: f for n, f in own.items() if _handed(f) == names and n != function.name and _written(f, names[0])}
    if not any(key in _written(step, names[0]) for key in _read(function, names[0]) for step in steps.values()):
        return []
    # They run in the order in which the class lists them, those too that hand on by way of another object.
    before = list(own)[: list(own).index(function.name)]
    prefix = function.name.split("_")[0]
    return [own[n] for n in before if n.split("_")[0] == prefix and _handed(own[n]) == names]


def _read(function: Function, name: str) -> set[str]:
    return set(re.findall(rf"\b{re.escape(name)}\.(?:pop|get)\(\s*[\"'](\w+)[\"']", function.text)) | set(
        re.findall(rf"\b{re.escape(name)}\.(\w+)\b(?!\s*(?:=[^=]|\())", function.text)
    )


def _written(function: Function, name: str) -> set[str]:
    return set(re.findall(rf"\b{re.escape(name)}\.(\w+)\s*=[^=]", function.text))


def _data(engine: Engine, entry: Entry, rows: list[Row], failed: str) -> dict[str, Any]:
    function = entry.function
    path, line, symbol = function.module.path, function.node.lineno, function.qualname
    if failed:
        rows = [Row(Outcome(None, unknown=failed), engine.diagrams.true, engine.diagrams.true)]
    groups = grouped([row for row in rows if not row.aside], engine)
    worlds = [_world(engine, row) for row in rows]
    named = {clause["guard"] for world in worlds for cube in world["when"] for clause in cube}
    return {
        "factor": engine.factor,
        "entry": {"path": path, "symbol": symbol, "line": line},
        "worlds": worlds,
        "summary": summary(groups, engine),
        "findings": findings(groups, engine, path, line, symbol),
        "sites": [vars(site) for site in engine.sites],
        "guards": [
            {"name": g.name, "key": g.key, "path": g.path, "line": g.line, "values": list(g.values)}
            for g in engine.diagrams.guards.values()
            if g.key in named
        ],
        "facts_used": sorted(engine.used_facts),
        "assumptions": list(engine.assumptions),
        "blind": [{"path": path, "line": line, "why": why} for path, line, why in [*engine.blind, *engine.patched()]],
        "steps": engine.steps_taken,
    }


def _world(engine: Engine, row: Row) -> dict[str, Any]:
    cubes = list(islice(engine.diagrams.cubes(row.when), MOST_ALTERNATIVES + 1))
    when = [[{"guard": key, "is": list(values)} for key, values in cube.items()] for cube in cubes[:MOST_ALTERNATIVES]]
    plain = islice(engine.diagrams.cubes(row.plain), MOST_ALTERNATIVES)
    return {
        "when": when,
        "text": [spell(cube, engine) for cube in plain],
        "more": len(cubes) > MOST_ALTERNATIVES,
        "count": row.outcome.count,
        "parts": list(row.outcome.parts),
        "unknown": "" if row.raises else row.outcome.unknown,
        "raises": row.raises,
        "aside": row.aside,
        "sites": list(row.outcome.sites),
    }
