"""What a class does with a parameter of its constructor, and what the classes do that are made in its place."""

from __future__ import annotations

import ast
import re

from .change import GAVE_UP, Asked, End, ends
from .confine import SECONDS, Unit, class_named, parameters
from .diagram import Diagrams
from .engine import Engine
from .entries import FORWARDS, Entry
from .follow import construct, run
from .instances import ManyClasses
from .program import Class, Function
from .values import ClassValue

Counts = dict[str, dict[str, list[int]]]


def add_contract(asked: Asked, unit: Unit) -> None:
    """Note what a changed class, and those that are made in its place, do with the parameters that matter to it."""
    names = unit.parameters
    owner = class_named(asked.after, unit.path, unit.name)
    if not names or owner is None:
        return
    unit.contract = _counts(asked, owner, names)
    for other in _in_its_place(asked, unit):
        shared = [name for name in names if name in parameters(other)]
        if shared:
            counts = _counts(asked, other, shared)
            same = bool(counts) and all(_agree(unit.contract[n], counts[n]) for n in shared if n in unit.contract)
            place = {"path": other.module.path, "name": other.name, "line": other.node.lineno}
            unit.siblings.append({**place, "contract": counts, "same": same})


def _agree(mine: dict[str, list[int]], other: dict[str, list[int]]) -> bool:
    """Whether two classes apply the factor equally often where a parameter is true, and where it is false.

    Where the other one leaves it out in some worlds, such as without renormalisation, what it does at most counts.
    """
    return all(len(mine[v]) == 1 and other[v] and mine[v][0] == max(other[v]) for v in ("true", "false"))


def _counts(asked: Asked, owner: Class, names: list[str]) -> Counts:
    """For each parameter, the counts where it is true and where it is false; nothing if they can't be followed."""
    engine = Engine(asked.after, asked.factor, asked.sinks, asked.facts, diagrams=Diagrams(effort=asked.effort))
    method = next((m for m in (engine.method(owner, name) for name in FORWARDS) if m), None)
    if method is None:
        return {}
    engine.until = min(asked.effort.after(SECONDS), asked.until)
    entry = Entry(Function(method.module, method.node, owner))
    try:
        found = ends(run(engine, entry, construct(engine, entry)), engine)
    except (*GAVE_UP, ManyClasses):
        return {}
    d = engine.diagrams
    counts: Counts = {}
    for name in names:
        guard = d.guards.get(name)
        counts[name] = {"true": [], "false": []}
        for value in ("true", "false"):
            where = d.test(guard, value) if guard is not None and guard.values == ("true", "false") else d.true
            counts[name][value] = sorted({n for end, _ in d.values(found, where) for n in _most(end)})
    return counts


def _most(end: End) -> list[int]:
    """How often the factor is applied to the part that has it most often."""
    if end.raises:
        return []
    return (
        [end.outcome.count] if end.outcome.count is not None else [max(end.outcome.parts)] if end.outcome.parts else []
    )


def _in_its_place(asked: Asked, unit: Unit) -> list[Class]:
    """Other classes of which an instance is stored where one of this class is, in the same function."""
    made = re.compile(rf"=\s*(?:\w+\.)*{re.escape(unit.name)}\(")
    found: dict[tuple[str, str], Class] = {}
    engine = Engine(asked.after, asked.factor, asked.sinks)
    for source in asked.after.texts.holding(unit.name.encode()):
        module = asked.after.module(source)
        for chunk in [
            c for chunks in (module.chunks.values() if module else ()) for c in chunks if made.search(c.text)
        ]:
            for function in ast.walk(chunk.node):
                if isinstance(function, ast.FunctionDef):
                    for name in _alternatives(function, unit.name):
                        owner = _visible(engine, source, name)
                        if owner is not None:
                            found.setdefault((owner.module.path, owner.name), owner)
    return list(found.values())


def _alternatives(function: ast.FunctionDef, name: str) -> list[str]:
    """Names of what else is called for a value that is stored where a call of `name` is."""
    targets: dict[str, list[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            for target in node.targets:
                targets.setdefault(ast.unparse(target), []).append(ast.unparse(node.value.func))
    return [n for names in targets.values() if any(_last(n) == name for n in names) for n in names if _last(n) != name]


def _last(dotted: str) -> str:
    return dotted.rpartition(".")[2]


def _visible(engine: Engine, path: str, name: str) -> Class | None:
    """The class that a name means in a file."""
    module = engine.program.module(path)
    if module is None:
        return None
    node = ast.parse(name, mode="eval").body
    value = engine.evaluate(node, engine.module_frame(module), engine.diagrams.true)
    held = [v for v, _ in engine.diagrams.values(value)]
    return held[0].owner if len(held) == 1 and isinstance(held[0], ClassValue) else None
