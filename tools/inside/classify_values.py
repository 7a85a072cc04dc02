"""Simple statements: assignments, returns and bare calls, compared in pairs, or judged alone when they came or went."""

from __future__ import annotations

import ast
from typing import NamedTuple

from .classify_calls import wrapped
from .classify_expr import place_of
from .classify_products import is_product, product
from .classify_sink import Place, Sink, arrow, same
from .classify_units import Unit, dump, show
from .classify_vocabulary import (
    CALLS,
    call_kind,
    callee,
    cast_target,
    is_cache_key,
    is_log,
    is_size,
    is_sync,
    parts,
    topic,
)


class Value(NamedTuple):
    """A statement as `target = value`; `return` is a target too, a bare call has none."""

    target: str
    value: ast.AST | None
    annotation: ast.AST | None = None
    inplace: bool = False


def value_of(node: ast.AST) -> Value:
    """Read a simple statement as an assignment: `x *= s` and `x.mul_(s)` assign x, in place."""
    if isinstance(node, ast.Assign):
        return Value(" = ".join(map(show, node.targets)), node.value)
    if isinstance(node, ast.AnnAssign):
        return Value(show(node.target), node.value, node.annotation)
    if isinstance(node, ast.AugAssign):
        whole = ast.BinOp(node.target, node.op, node.value)
        return Value(show(node.target), ast.copy_location(whole, node), None, True)
    if isinstance(node, ast.Return):
        return Value("return", node.value)
    value = getattr(node, "value", None)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and callee(value).endswith("_"):
        return Value(show(value.func.value), value, None, True)
    return Value("", value)


def compare_values(sink: Sink, a: ast.AST, b: ast.AST, in_class: bool) -> None:
    """Report how one simple statement became another."""
    old, new = value_of(a), value_of(b)
    if is_log(old.value) and is_log(new.value):
        sink.say("log_only", arrow(a, b), a, b)
        return
    _targets(sink, old, new, a, b)
    if dump(old.annotation) != dump(new.annotation):
        sink.say("type_annotation_only", f"{new.target}: {arrow(old.annotation, new.annotation)}", a, b)
    if old.value is None or new.value is None:
        if old.value is not new.value:
            kind = "default_changed" if in_class else "value_changed"
            sink.say(kind, f"{new.target}: {arrow(a, b)}", a, b)
        return
    if new.inplace and not old.inplace and old.target == new.target:
        sink.say("inplace_introduced", arrow(a, b), a, b)
    _values(sink, old, new, in_class, isinstance(b, ast.AnnAssign))


def _values(sink: Sink, old: Value, new: Value, in_class: bool, annotated: bool) -> None:
    assert old.value and new.value
    if same(old.value, new.value):
        return
    name = new.target.split("[")[0].split(".")[-1]
    if in_class and annotated:
        sink.compare(old.value, new.value, Place(force="default_changed", label=new.target))
    elif is_cache_key(name):
        sink.say("cache_key_changed", f"{new.target}: {arrow(old.value, new.value)}", old.value, new.value)
    else:
        place = place_of(new.target) if new.target != "return" else Place()
        sink.compare(old.value, new.value, place._replace(label=new.target) if in_class else place)


def _targets(sink: Sink, old: Value, new: Value, a: ast.AST, b: ast.AST) -> None:
    if old.target == new.target:
        return
    if sink.renamed(old.target, new.target, local=True) or (
        old.target.startswith("self.")
        and new.target.startswith("self.")
        and sink.renamed(old.target[5:], new.target[5:], local=False)
    ):
        sink.say("rename_only", f"{old.target} → {new.target}", a, b)
    elif new.target == "return":
        sink.say("early_return_added" if _early(sink, b) else "value_changed", show(b), a, b)
    elif old.target and new.target:
        sink.say("value_changed", f"the result goes to {new.target}, not {old.target}", a, b)
    elif new.target:
        sink.say("assignment_added", show(b), a, b)
    else:
        sink.say("assignment_removed", f"{old.target} is no longer assigned: {show(b)}", a, b)


def _early(sink: Sink, node: ast.AST) -> bool:
    """A return that isn't the last statement of its function."""
    unit = sink.units[1]
    function = next((p for p in reversed(unit.above if unit else ()) if hasattr(p, "args")), None)
    body = getattr(function, "body", None)
    return bool(unit and (unit.guards or (body and body[-1] is not node)))


def lone_value(sink: Sink, unit: Unit, added: bool) -> None:
    """Report a simple statement that came (or went) without a counterpart."""
    node, found = unit.node, value_of(unit.node)
    if isinstance(node, ast.Return):
        _lone_return(sink, node, added)
    elif found.value is not None and _self_update(sink, found, added):
        return
    elif isinstance(found.value, ast.Call) and not found.target:
        _lone_call(sink, node, found.value, added)
    elif isinstance(found.value, ast.Call) and found.inplace:
        wrapped(sink, found.value, getattr(found.value.func, "value", node), added, Place())
    elif found.target:
        _lone_assignment(sink, node, found, added)
    elif isinstance(found.value, ast.Constant) and isinstance(found.value.value, str):
        sink.say("docstring_only", "docstring " + ("added" if added else "gone"), *_sides(node, added))
    else:
        sink.say("code_added" if added else "code_removed", show(node), *_sides(node, added))


def _sides(node: object, added: bool) -> tuple[object, object]:
    return ("", node) if added else (node, "")


def _lone_return(sink: Sink, node: ast.Return, added: bool) -> None:
    if added and _early(sink, node):
        sink.say("early_return_added", show(node), "", node)
    else:
        sink.say("code_added" if added else "code_removed", show(node), *_sides(node, added))


def _self_update(sink: Sink, found: Value, added: bool) -> bool:
    """`x = x * s` alone means that x is now multiplied: compare the bare x with the new value."""
    assert found.value is not None
    wanted = found.target
    bare = next(
        (
            n
            for n in ast.walk(found.value)
            if isinstance(n, ast.Name | ast.Attribute | ast.Subscript) and show(n) == wanted
        ),
        None,
    )
    if bare is None or not wanted or isinstance(found.value, ast.List | ast.Tuple):
        return False
    before, at = len(sink.changes), place_of(wanted)
    if added:
        sink.compare(bare, found.value, at)
    else:
        sink.compare(found.value, bare, at)
    # Nothing was there before that the in-place form could replace.
    sink.changes[before:] = [c for c in sink.changes[before:] if c.kind != "inplace_introduced"]
    for change in sink.changes[before:]:
        change.detail = (
            change.detail
            if change.detail.startswith(wanted)
            else f"{wanted} = {change.detail}"
            if (change.kind.endswith("_added"))
            else change.detail
        )
    return len(sink.changes) > before


def _lone_call(sink: Sink, node: ast.AST, call: ast.Call, added: bool) -> None:
    if is_log(call):
        sink.say("log_only", show(call), *_sides(node, added))
        return
    if is_sync(call) and not added:
        kind = "sync_removed"
    elif callee(call) in ("append", "extend", "update", "view", "wait"):
        kind = ""
    else:
        kind = call_kind(call) if call_kind(call) != "layout_changed" else ""
    fallback = "call_added" if added else "call_removed"
    if callee(call) == "add_argument":
        fallback = "parameter_added" if added else "parameter_removed"
    sink.say(kind or fallback, show(call), *_sides(node, added))


def _lone_assignment(sink: Sink, node: ast.AST, found: Value, added: bool) -> None:
    sides, text = _sides(node, added), show(node)
    name = found.target.split("[")[0].split(".")[-1]
    value = found.value
    if is_cache_key(name):
        sink.say("cache_key_changed", text, *sides)
    elif value is not None and _scales(value) and not topic(name) and not is_size(ast.Name(name)):
        above = len(product(value).above) > 1
        sink.say(f"{'multiply' if above else 'divide'}_{'added' if added else 'removed'}", text, *sides)
    elif isinstance(value, ast.Call) and cast_target(value) is not None and callee(value) != "view":
        wrapped(sink, value, getattr(value.func, "value", node), added, Place())
    elif isinstance(value, ast.Call) and callee(value) in CALLS["reduction_changed"] and "reduce" in callee(value):
        sink.say("reduction_changed", f"{text} {'added' if added else 'is gone'}", *sides)
    elif {"mask", "masked"} & set(parts(name)) and not isinstance(value, ast.Constant | None):
        sink.say("mask_changed", text if added else f"{text} is gone", *sides)
    else:
        sink.say("assignment_added" if added else "assignment_removed", text, *sides)


def _scales(value: ast.AST) -> bool:
    """A product with at least one factor that isn't a count."""
    factors = product(value)
    return (
        is_product(value)
        and not all(map(is_size, factors.above + factors.below))
        and not any(map(is_size, factors.above + factors.below))
    )
