"""What the comparing rules share: the place of an expression, the collector of changes, and consistent renames."""

from __future__ import annotations

import ast
from typing import NamedTuple

from .change_kinds import COSMETIC, Change
from .classify_units import Source, Unit, dump, show

NUMERIC = frozenset(
    "multiply_added multiply_removed divide_added divide_removed arithmetic_changed constant_changed".split()
)


class Place(NamedTuple):
    """Where an expression stands, as far as that decides a class.

    Attributes:
        force: class of every difference here, whatever its form (a subscript, a test, an annotation).
        soft: class that arithmetic and literals take here (an offset, a mask, a size).
        label: the argument, key or target that the value belongs to, for the detail.
        guards: conditions from conditional expressions around it.
    """

    force: str = ""
    soft: str = ""
    label: str = ""
    guards: tuple[str, ...] = ()


NOWHERE = Place()
"""A place that decides nothing."""


class Sink:
    """Collects the changes of one pair of units (either may be None) and knows both sides' names."""

    def __init__(self, old: Source, new: Source) -> None:
        """Start with no changes, on two sides of a file."""
        self.sources = (old, new)
        self.changes: list[Change] = []
        self.units: tuple[Unit | None, Unit | None] = (None, None)

    def compare(self, a: ast.AST, b: ast.AST, at: Place = NOWHERE) -> None:
        """Report how expression `a` became `b`."""
        raise NotImplementedError

    def say(self, kind: str, detail: str, a: object = None, b: object = None, at: Place = NOWHERE) -> None:
        """Record a change whose smallest differing parts are `a` in stock and `b` in the clone (nodes or text)."""
        if at.soft and kind in NUMERIC:
            kind = at.soft
        if at.label and kind not in COSMETIC:
            detail = f"{at.label}: {detail}"
        old, new = self.units
        unit = new or old
        change = Change(kind, detail, show(a), show(b), self._line(a, 0), self._line(b, 1))
        if unit:
            change.scope = unit.qualname
            change.guards = (*unit.guards, *at.guards)
        self.changes.append(change)

    def _line(self, node: object, side: int) -> int | None:
        unit = self.units[side]
        if isinstance(node, list):
            node = node[0] if node else None
        line = getattr(node, "lineno", None) or (unit.start if unit else None)
        return line - self.sources[side].shift if line else None

    def renamed(self, before: str, after: str, local: bool) -> bool:
        """Whether `before` was given up for `after`: each bound on its own side and unknown on the other.

        `local` looks at the enclosing function only (plain variables), else at the file (attributes, definitions).
        """
        old, new = self.units
        if not old or not new or not before.isidentifier() or not after.isidentifier():
            return False
        old_used, old_bound = names(self.sources[0], old, before, after, local)
        new_used, new_bound = names(self.sources[1], new, after, before, local)
        return not old_used and old_bound and not new_used and new_bound


def names(source: Source, unit: Unit, own: str, other: str, local: bool) -> tuple[bool, bool]:
    """(`other` occurs, `own` is bound) on one side: in the unit's function if `local`, else in the file."""
    functions = [node for node in (*unit.above, unit.node) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    if local and functions:
        used, bound = _function_names(source, functions[-1])
        return other in used, own in bound
    used, bound = source.names
    return other in used, own in bound


def _function_names(source: Source, node: ast.AST) -> tuple[frozenset[str], frozenset[str]]:
    known = source.known.get(id(node))
    if known is None:
        used, bound = set(), set()
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                used.add(each.id)
                bound |= {each.id} if isinstance(each.ctx, ast.Store) else set()
            elif isinstance(each, ast.arg):
                used.add(each.arg)
                bound.add(each.arg)
        known = source.known[id(node)] = frozenset(used), frozenset(bound)
    return known


def same(a: object, b: object) -> bool:
    """Equal syntax."""
    return a is b or dump(a) == dump(b)


def arrow(a: object, b: object) -> str:
    """`a → b` as source."""
    return f"{show(a)} → {show(b)}"
