"""Syntax nodes with the way back up: what encloses a node, and under which conditions it runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from .definitions import Function, covers

CLIP = 200
"""Characters of an expression that a detail quotes."""

CLIP_GUARD = 1_000
"""Characters of a condition: cut short it would say something else."""

MOST_GUARDS = 50
"""Conditions listed for one mention, the innermost; a first entry says how many more there are."""

_EXITS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_SKIP = frozenset({"ctx", "op", "ops"})
Statement = (ast.stmt, ast.excepthandler, ast.match_case)


class Frame(NamedTuple):
    """A node, the field of its parent that holds it, and its parent's frame (None at the top)."""

    node: ast.AST
    field: str
    up: Frame | None

    def ancestors(self) -> Iterator[Frame]:
        """The frames around this one, innermost first."""
        frame = self.up
        while frame is not None:
            yield frame
            frame = frame.up


def frames(starts: Sequence[Frame], lines: list[int]) -> Iterator[Frame]:
    """The starts and every node below them, in source order, as far as they can hold one of the lines.

    Positions inside f-strings aren't reliable before Python 3.12, so those are searched whole.
    """
    stack = list(reversed(starts))
    while stack:
        frame = stack.pop()
        node = frame.node
        around = frame.up.node if frame.up else None
        if not isinstance(around, (ast.JoinedStr, ast.FormattedValue)) and not covers(lines, node):
            continue
        yield frame
        for name in node._fields[::-1]:
            value = None if name in _SKIP else getattr(node, name, None)
            if isinstance(value, list):
                stack += [Frame(n, name, frame) for n in value[::-1] if isinstance(n, ast.AST)]
            elif isinstance(value, ast.AST):
                stack.append(Frame(value, name, frame))


def show(node: ast.AST | None, clip: int = CLIP) -> str:
    """An expression as one line of source, clipped."""
    if node is None:
        return ""
    try:
        text = " ".join(ast.unparse(node).split())
    except (RecursionError, ValueError, AttributeError):
        return "(an expression nested too deep to print)"
    return text if len(text) <= clip else text[: clip - 1] + "…"


@lru_cache(maxsize=2048)
def _holds(test: ast.AST | None) -> str:
    return show(test, CLIP_GUARD)


@lru_cache(maxsize=2048)
def negated(test: ast.expr) -> str:
    """The opposite of a condition: `not x` becomes `x`, `x is None` becomes `x is not None`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _holds(test.operand)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITE:
        opposite = _OPPOSITE[type(test.ops[0])]()
        return _holds(ast.Compare(test.left, [opposite], test.comparators))
    return _holds(ast.UnaryOp(ast.Not(), test))


def guards(frame: Frame) -> list[str]:
    """Conditions under which a node runs, outermost first, up to the enclosing function.

    Covers `if`/`elif`/`else`, `while`, ternaries, `and`/`or`, comprehension filters, `match` cases, `except`,
    and earlier statements of the same block that leave it (`if done: return`).
    """
    found: list[str] = []
    inner = frame
    for outer in frame.ancestors():
        found += _own_guards(outer.node, inner)[::-1]
        if isinstance(inner.node, Statement):
            found += _exits_before(outer.node, inner)[::-1]
        if isinstance(outer.node, (*Function, ast.Lambda, ast.ClassDef)):
            break
        inner = outer
    listed = list(dict.fromkeys(reversed(found)))
    more = len(listed) - MOST_GUARDS
    return [f"… and {more:,} conditions before these", *listed[more:]] if more > 0 else listed


def _own_guards(parent: ast.AST, child: Frame) -> list[str]:
    """What a parent demands before the child runs."""
    if isinstance(parent, (ast.If, ast.IfExp)) and child.field in ("body", "orelse"):
        return [_holds(parent.test) if child.field == "body" else negated(parent.test)]
    if isinstance(parent, ast.While) and child.field == "body":
        return [_holds(parent.test)]
    if isinstance(parent, ast.BoolOp):
        earlier = parent.values[: _index(parent.values, child.node)]
        return [_holds(v) if isinstance(parent.op, ast.And) else negated(v) for v in earlier]
    if isinstance(parent, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        tests = [test for part in parent.generators for test in part.ifs]
        return [_holds(test) for test in tests] if child.field != "generators" else []
    if isinstance(parent, ast.ExceptHandler):
        return [f"except {_holds(parent.type) or 'anything'}"]
    return _case(parent, child)


def _case(parent: ast.AST, child: Frame) -> list[str]:
    if not isinstance(parent, ast.match_case) or child.field == "pattern":
        return []
    outer = child.up.up if child.up else None
    subject = _holds(getattr(outer.node, "subject", None)) if outer else ""
    tests = [_holds(parent.guard)] if parent.guard and child.field == "body" else []
    return [f"match {subject} case {_holds(parent.pattern)}", *tests]


def _exits_before(parent: ast.AST, child: Frame) -> list[str]:
    """Conditions that earlier statements of the same block have ruled out by leaving."""
    block = getattr(parent, child.field, None)
    if not isinstance(block, list):
        return []
    earlier = block[: _index(block, child.node)]
    return [guard for guard in map(_ruled_out, earlier) if guard]


@lru_cache(maxsize=4096)
def _ruled_out(statement: ast.stmt) -> str:
    """What holds after an `if` of which one branch leaves; empty for any other statement."""
    if not isinstance(statement, ast.If):
        return ""
    leaves, stays = _leaves(statement.body), _leaves(statement.orelse)
    if leaves == stays:
        return ""
    return negated(statement.test) if leaves else _holds(statement.test)


def _leaves(block: Sequence[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], _EXITS)


def _index(nodes: Sequence[ast.AST], node: ast.AST) -> int:
    return next((n for n, other in enumerate(nodes) if other is node), 0)
