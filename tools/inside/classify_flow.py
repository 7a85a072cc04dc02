"""Checks and control flow: asserts, raises, conditions, loops and handlers that came, went, or changed."""

from __future__ import annotations

import ast

from .classify_definitions import swallows
from .classify_pairs import Pairing
from .classify_sink import Place, Sink, arrow, same
from .classify_units import BLOCKS, Unit, dump, show
from .classify_vocabulary import is_log
from .hunks import likeness, words

LOOSER = {"Eq": {"LtE", "GtE", "In"}, "Lt": {"LtE", "NotEq"}, "Gt": {"GtE", "NotEq"}, "Is": {"In", "Eq"}}
TEST = Place(force="condition_changed")


def compare_asserts(sink: Sink, a: ast.Assert, b: ast.Assert) -> None:
    """Report whether an assertion became looser, stricter, or only worded differently."""
    if same(a.test, b.test):
        sink.say("log_only", f"assertion message {arrow(a.msg, b.msg)}", a, b)
        return
    way = strength(a.test, b.test)
    if way > 0:
        sink.say("assertion_added", f"stricter: {arrow(a.test, b.test)}", a.test, b.test)
    else:
        doubt = "" if way else " (whether looser can't be told from its form)"
        sink.say("assertion_weakened", f"{arrow(a.test, b.test)}{doubt}", a.test, b.test)


def strength(a: ast.AST, b: ast.AST) -> int:
    """-1 when test `b` accepts more than `a`, 1 when it accepts less, 0 when its form doesn't tell."""
    if _looser(a, b):
        return -1
    return 1 if _looser(b, a) else 0


def _looser(a: ast.AST, b: ast.AST) -> bool:
    if isinstance(b, ast.Constant) and b.value:
        return True
    for node, other, operator in ((a, b, ast.And), (b, a, ast.Or)):
        if isinstance(node, ast.BoolOp) and isinstance(node.op, operator):
            parts = set(map(dump, node.values))
            rest = (
                set(map(dump, other.values))
                if isinstance(other, ast.BoolOp) and isinstance(other.op, operator)
                else {dump(other)}
            )
            return rest < parts
    if (
        isinstance(a, ast.Compare)
        and isinstance(b, ast.Compare)
        and len(a.ops) == len(b.ops) == 1
        and same(a.left, b.left)
    ):
        return _looser_comparison(a, b)
    return _more_types(a, b)


def _looser_comparison(a: ast.Compare, b: ast.Compare) -> bool:
    old, new = type(a.ops[0]).__name__, type(b.ops[0]).__name__
    x, y = a.comparators[0], b.comparators[0]
    if same(x, y):
        return new in LOOSER.get(old, ())
    if old in ("Eq", "Is", "In") and new == "In" and isinstance(y, ast.Tuple | ast.List | ast.Set):
        wanted = set(map(dump, x.elts)) if isinstance(x, ast.Tuple | ast.List | ast.Set) else {dump(x)}
        return wanted < set(map(dump, y.elts)) or (old != "In" and wanted <= set(map(dump, y.elts)))
    if old == new and isinstance(x, ast.Constant) and isinstance(y, ast.Constant):
        numbers = [v for v in (x.value, y.value) if isinstance(v, int | float)]
        if len(numbers) == 2:
            up = numbers[1] > numbers[0]
            return up if old in ("Lt", "LtE") else not up if old in ("Gt", "GtE") else False
    return False


def _more_types(a: ast.AST, b: ast.AST) -> bool:
    """`isinstance(x, A)` became `isinstance(x, (A, B))`."""
    if not (isinstance(a, ast.Call) and isinstance(b, ast.Call) and show(a.func) == show(b.func) == "isinstance"):
        return False
    if len(a.args) != 2 or len(b.args) != 2 or not same(a.args[0], b.args[0]):
        return False
    old, new = (
        {dump(n) for n in (arg.elts if isinstance(arg, ast.Tuple) else [arg])} for arg in (a.args[1], b.args[1])
    )
    return old < new


def lone_assert(sink: Sink, unit: Unit, added: bool, pairing: Pairing) -> None:
    """Report an assertion that came or went; one that lives on as an if is weakened, or kept when that raises."""
    node = unit.node
    assert isinstance(node, ast.Assert)
    message = f", {show(node.msg)}" if node.msg else ""
    if added:
        sink.say("assertion_added", show(node.test) + message, "", node)
        return
    heir = _heir(node, pairing)
    if heir is None:
        sink.say("assertion_removed", show(node.test) + message, node, "")
    elif isinstance(heir, ast.If) and any(isinstance(n, ast.Raise | ast.Assert) for n in ast.walk(heir)):
        sink.say("guard_added", f"assert became if … raise: {show(heir.test)}", node, heir.test)
    else:
        what = f"if {show(heir.test)}" if isinstance(heir, ast.If) else show(heir)
        sink.say("assertion_weakened", f"{show(node.test)} no longer stops: {what}", node, heir)


def _heir(node: ast.Assert, pairing: Pairing) -> ast.stmt | None:
    """The added if or warning that does the assertion's work now."""
    wanted = [w for w in words(show(node.test)) if w.isidentifier() and w not in ("not", "self")]
    for unit in pairing.added:
        if isinstance(unit.node, ast.If):
            found = [w for w in words(show(unit.node.test)) if w.isidentifier() and w not in ("not", "self")]
            if likeness(wanted, found) >= 0.5 and _only_tells_or_raises(unit.node):
                return unit.node
        told = isinstance(unit.node, ast.Expr) and is_log(unit.node.value) and node.msg is not None
        if told and likeness(words(show(node.msg)), words(show(unit.node))) >= 0.5:
            return unit.node if isinstance(unit.node, ast.stmt) else None
    return None


def _only_tells_or_raises(node: ast.If) -> bool:
    return all(
        isinstance(each, ast.Raise | ast.Assert | ast.Pass) or (isinstance(each, ast.Expr) and is_log(each.value))
        for each in node.body
    )


def conditional_assert(sink: Sink, old: Unit, new: Unit) -> None:
    """Report an unchanged assertion that now runs under more conditions."""
    extra = [guard for guard in new.guards if guard not in old.guards]
    if isinstance(old.node, ast.Assert) and extra and len(new.guards) > len(old.guards):
        sink.say(
            "assertion_weakened", f"{show(old.node.test)} is only checked if {' and '.join(extra)}", old.node, new.node
        )


def lone_raise(sink: Sink, unit: Unit, added: bool, new_tests: set[int]) -> None:
    """Report a raise that came or went; a new one under a new if is the if's news."""
    if added:
        if not any(id(parent) in new_tests for parent in unit.above):
            sink.say("guard_added", f"{show(unit.node)} is new", "", unit.node)
        return
    handled = next((p for p in reversed(unit.above) if isinstance(p, ast.ExceptHandler)), None)
    under = f" if {unit.guards[-1]}" if unit.guards and not handled else ""
    kind = "exception_swallowed" if handled and not getattr(unit.node, "exc", None) else "raise_removed"
    sink.say(kind, f"{show(unit.node)}{under} is gone", unit.node, "")


def lone_if(sink: Sink, unit: Unit, added: bool, fate: set[int]) -> None:
    """Report a condition that came or went.

    When its statements came (or went) with it, they speak for themselves; the condition is in their guards.
    `fate` holds the ids of all nodes that came (or went) in this hunk.
    """
    node = unit.node
    assert isinstance(node, ast.If | ast.While)
    first = node.body[0]
    lives = [n for n in (*node.body, *node.orelse) if id(n) not in fate]
    text = show(node.test)
    if lives and all(isinstance(n, ast.Assert) for n in lives):
        return
    if lives and node.orelse and lives == node.orelse and isinstance(lives[0], ast.If) and len(lives) == 1:
        sink.say("code_added" if added else "code_removed", f"branch if {text}", *(("", node) if added else (node, "")))
        return
    if lives:
        verb = "now guards" if added else "no longer guards"
        detail = f"{text} {verb} {show(lives[0])}"
    elif isinstance(first, ast.Raise):
        if not added:
            return
        detail = f"{show(first)} if {text}"
    elif isinstance(first, ast.Continue | ast.Break) or (isinstance(first, ast.Return) and not added):
        detail = f"{show(first)} if {text}"
    else:
        return
    sink.say("guard_added" if added else "guard_removed", detail, *(("", node.test) if added else (node.test, "")))


def compare_tests(sink: Sink, a: ast.AST, b: ast.AST) -> None:
    """Report a changed if or while test, and literals when nothing else differs in it."""
    assert isinstance(a, ast.If | ast.While) and isinstance(b, ast.If | ast.While)
    sink.compare(a.test, b.test, TEST)


def compare_loops(sink: Sink, a: ast.AST, b: ast.AST) -> None:
    """Report a for or with header whose parts differ."""
    for name in ("target", "iter"):
        if hasattr(a, name) and hasattr(b, name):
            sink.compare(getattr(a, name), getattr(b, name))
    items = getattr(a, "items", []), getattr(b, "items", [])
    if dump(items[0]) != dump(items[1]):
        if len(items[0]) == len(items[1]):
            for x, y in zip(*items, strict=True):
                sink.compare(x.context_expr, y.context_expr)
        else:
            sink.say("value_changed", f"with {show(items[0])} → {show(items[1])}", a, b)


def lone_block(sink: Sink, unit: Unit, added: bool) -> None:
    """Report a loop, with, try or except clause that came or went; their statements are reported by themselves."""
    node, sides = unit.node, ("", unit.node) if added else (unit.node, "")
    if isinstance(node, ast.ExceptHandler):
        if added and swallows(node):
            sink.say("exception_swallowed", f"{show(node)} goes on", *sides)
        else:
            sink.say("code_added" if added else "code_removed", show(node), *sides)
    elif isinstance(node, ast.Try):
        return
    elif isinstance(node, ast.With | ast.AsyncWith):
        sink.say("call_added" if added else "call_removed", show(node), *sides)
    else:
        sink.say(
            "code_added" if added else "code_removed", show(node) if _spoken(node) else type(node).__name__, *sides
        )


def _spoken(node: ast.AST) -> bool:
    return isinstance(node, ast.stmt)


def inner_nodes(units: list[Unit]) -> set[int]:
    """Ids of the statements that came or went: those listed, and all that stand in them where every part did."""
    fate = {id(unit.node) for unit in units}
    for unit in reversed(units):
        held = [child for name in BLOCKS for child in getattr(unit.node, name, None) or []]
        if held and all(id(child) in fate for child in held):
            fate.add(id(unit.node))
    return fate
