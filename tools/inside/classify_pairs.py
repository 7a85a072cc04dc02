"""Decide which statement became which: equal ones first, then definitions by name, then the most alike."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from .classify_units import Definition, Unit, dump
from .hunks import equal_runs, likeness

ALIKE = 0.5
"""Smallest likeness of two statements that are taken for one that changed."""
MANY = 40_000
"""Largest number of combinations in one hunk that are compared by likeness; above, only by target or name."""

VALUES = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
_FAMILIES: tuple[tuple[type[ast.AST], ...], ...] = (
    VALUES, (ast.If, ast.While), (ast.For, ast.AsyncFor), (ast.With, ast.AsyncWith), (ast.Import, ast.ImportFrom),
    (ast.FunctionDef, ast.AsyncFunctionDef),
)  # fmt: skip


@dataclass
class Pairing:
    """The units of one hunk, sorted by what became of them."""

    equal: list[tuple[Unit, Unit]] = field(default_factory=list)
    moved: list[tuple[Unit, Unit]] = field(default_factory=list)
    changed: list[tuple[Unit, Unit]] = field(default_factory=list)
    removed: list[Unit] = field(default_factory=list)
    added: list[Unit] = field(default_factory=list)


def pair(old: list[Unit], new: list[Unit]) -> Pairing:
    """Match the touched units of a hunk's two sides; what stays unmatched is removed or added."""
    result = Pairing()
    if not old or not new:
        return Pairing(removed=_swallow(old), added=_swallow(new))
    keys = [u.key for u in old], [u.key for u in new]
    for i, k, size in equal_runs(*keys):
        result.equal += zip(old[i : i + size], new[k : k + size], strict=True)
    result.removed = _without(old, [u for u, _ in result.equal])
    result.added = _without(new, [u for _, u in result.equal])
    match_equal(result)
    _match_names(result)
    whole_moves(result)
    result.removed, result.added = _swallow(result.removed), _swallow(result.added)
    _match_alike(result)
    _match_bodies(result)
    return result


def _without(units: list[Unit], taken: Iterable[Unit]) -> list[Unit]:
    gone = set(map(id, taken))
    return [unit for unit in units if id(unit) not in gone]


def _take(result: Pairing, into: list[tuple[Unit, Unit]], pairs: list[tuple[Unit, Unit]]) -> None:
    into += pairs
    result.removed = _without(result.removed, [u for u, _ in pairs])
    result.added = _without(result.added, [u for _, u in pairs])


def match_equal(result: Pairing) -> None:
    """Statements that say the same at another place of the same function were moved (not trivial ones)."""
    waiting: dict[tuple[str, tuple[str, ...]], list[Unit]] = {}
    for unit in result.added:
        waiting.setdefault((unit.key, unit.scope), []).append(unit)
    pairs = []
    for unit in result.removed:
        twins = waiting.get((unit.key, unit.scope), [])
        if twins and len(unit.words) > 3 and not isinstance(unit.node, Definition):
            pairs.append((unit, twins.pop(0)))
    _take(result, result.moved, pairs)


def whole_moves(result: Pairing) -> None:
    """Definitions with the same name and body elsewhere in the file were moved."""
    waiting = {dump(unit.node): unit for unit in result.added if isinstance(unit.node, Definition)}
    pairs = []
    for unit in result.removed:
        if isinstance(unit.node, Definition) and dump(unit.node) in waiting:
            pairs.append((unit, waiting.pop(dump(unit.node))))
    _take(result, result.moved, pairs)


def _match_names(result: Pairing) -> None:
    """Definitions of the same name in the same place; then a lone pair whose bodies are alike, which was renamed."""
    waiting = {(u.scope, _name(u)): u for u in result.added if isinstance(u.node, Definition)}
    pairs = []
    for unit in result.removed:
        twin = waiting.pop((unit.scope, _name(unit)), None) if isinstance(unit.node, Definition) else None
        if twin:
            pairs.append((unit, twin))
    _take(result, result.changed, pairs)
    for unit in [u for u in result.removed if isinstance(u.node, Definition)]:
        for twin in [u for u in result.added if type(u.node) is type(unit.node)]:
            if twin.scope == unit.scope and _body_likeness(unit, twin) > 0.7:
                _take(result, result.changed, [(unit, twin)])
                break


def _name(unit: Unit) -> str:
    return str(getattr(unit.node, "name", ""))


def _body_likeness(a: Unit, b: Unit) -> float:
    x, y = ([dump(node) for node in getattr(unit.node, "body", [])] for unit in (a, b))
    return SequenceMatcher(None, x, y, autojunk=False).ratio()


def _swallow(units: list[Unit]) -> list[Unit]:
    """Leave out what stands inside a definition that came or went as a whole."""
    whole = {id(unit.node) for unit in units if isinstance(unit.node, Definition)}
    return [unit for unit in units if not any(id(parent) in whole for parent in unit.above)]


def _match_alike(result: Pairing) -> None:
    """Greedy, most alike first; statements of different families are never one another."""
    old, new = result.removed, result.added
    scores = []
    for i, k in _candidates(old, new):
        score = _score(old[i], new[k])
        if score >= ALIKE:
            scores.append((-score, abs(i - k), i, k))
    taken: tuple[set[int], set[int]] = set(), set()
    pairs = []
    for _, _, i, k in sorted(scores):
        if i not in taken[0] and k not in taken[1]:
            taken[0].add(i)
            taken[1].add(k)
            pairs.append((old[i], new[k]))
    pairs.sort(key=lambda each: each[1].start)
    _take(result, result.changed, pairs)


def _match_bodies(result: Pairing) -> None:
    """Conditions with little in common are one another all the same when they hold the same statement."""
    heirs = {id(old.node): id(new.node) for old, new in (*result.equal, *result.changed)}
    pairs = []
    for old in [unit for unit in result.removed if isinstance(unit.node, ast.If)]:
        kept = {heirs.get(id(child)) for child in getattr(old.node, "body", [])} - {None}
        for new in result.added:
            if isinstance(new.node, ast.If) and kept & set(map(id, new.node.body)):
                pairs.append((old, new))
                break
    _take(result, result.changed, [both for n, both in enumerate(pairs) if both[1] not in [b for _, b in pairs[:n]]])


def _candidates(old: list[Unit], new: list[Unit]) -> Iterator[tuple[int, int]]:
    """Index pairs worth scoring: all of one family, or in a huge hunk only those with the same target."""
    narrow = len(old) * len(new) > MANY
    places: dict[object, list[int]] = {}
    for k, unit in enumerate(new):
        places.setdefault((_family(unit.node), unit.target if narrow else ""), []).append(k)
    for i, unit in enumerate(old):
        target = unit.target if narrow else ""
        if target or not narrow:
            yield from ((i, k) for k in places.get((_family(unit.node), target), [])[:200])


def _family(node: ast.AST) -> object:
    return next((family for family in _FAMILIES if isinstance(node, family)), type(node))


def _score(a: Unit, b: Unit) -> float:
    """Likeness, more for the same target, less across statement types; a definition pairs by name alone."""
    if isinstance(a.node, Definition):
        return 0.0
    targets = a.target, b.target
    if isinstance(a.node, ast.Assign | ast.AnnAssign) and isinstance(b.node, ast.Assign | ast.AnnAssign):
        bonus = 0.35 if targets[0] == targets[1] else -0.3
    elif type(a.node) is type(b.node):
        bonus = 0.25 if targets[0] == targets[1] != "" else 0.0
    else:
        bonus = 0.1 if targets[0] == targets[1] != "" else -0.25
    return likeness(a.words, b.words) + bonus + (0.1 if a.scope == b.scope else -0.1)
