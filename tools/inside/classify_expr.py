"""Two expressions compared node by node: the smallest parts that differ, each with the class its place gives it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

from .classify_calls import compare_calls, wrapped
from .classify_products import compare_products, compare_sums, head, terms, textual
from .classify_sink import NOWHERE, Place, Sink, arrow, same
from .classify_units import dump, show
from .classify_vocabulary import (
    describe_cast,
    dtype_of,
    is_dtype,
    is_size,
    topic,
)

DEEP = 6
"""How many levels of calls and operators around a value are looked through."""


class Comparer(Sink):
    """A sink that knows the rules, in the order they are tried."""

    def compare(self, a: ast.AST, b: ast.AST, at: Place = NOWHERE) -> None:
        """Report how expression `a` became `b`; nothing when they are the same."""
        if same(a, b):
            return
        a, b = _folded(a), _folded(b)
        if at.force:
            _forced(self, a, b, at)
            return
        if _rename(self, a, b) or _dtypes(self, a, b, at) or compare_products(self, a, b, at):
            return
        if compare_sums(self, a, b, at) or _around(self, a, b, at, exact=True):
            return
        rule = _RULES.get(type(a)) if type(a) is type(b) else None
        if rule and (head(a) == head(b) or not _around(self, a, b, at, exact=False)):
            rule(self, a, b, at)
        elif not rule and not _around(self, a, b, at, exact=False):
            _replaced(self, a, b, at)


def _folded(node: ast.AST) -> ast.AST:
    """`-1` as the number it is."""
    number = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else None
    if isinstance(number, ast.Constant) and isinstance(number.value, int | float):
        return ast.copy_location(ast.Constant(-number.value), node)
    return node


def _forced(sink: Sink, a: ast.AST, b: ast.AST, at: Place) -> None:
    sink.say(at.force, arrow(a, b), a, b, at)
    if at.force == "condition_changed":
        for x, y in constant_pairs(a, b) or []:
            sink.say("constant_changed", f"{arrow(x, y)} in a condition", x, y, at)


def constant_pairs(a: object, b: object) -> list[tuple[ast.Constant, ast.Constant]] | None:
    """The literals that differ between two trees that are otherwise the same; None when they differ elsewhere."""
    if isinstance(a, ast.Constant) and isinstance(b, ast.Constant):
        return [] if same(a, b) else [(a, b)]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        found = [constant_pairs(x, y) for x, y in zip(a, b, strict=True)]
        return None if None in found else [pair for pairs in found for pair in pairs or []]
    if isinstance(a, ast.AST) and type(a) is type(b):
        return constant_pairs([getattr(a, f, None) for f in a._fields], [getattr(b, f, None) for f in a._fields])
    return [] if dump(a) == dump(b) else None


def _rename(sink: Sink, a: ast.AST, b: ast.AST) -> bool:
    if isinstance(a, ast.Name) and isinstance(b, ast.Name):
        found = sink.renamed(a.id, b.id, local=True)
    elif isinstance(a, ast.Attribute) and isinstance(b, ast.Attribute) and same(a.value, b.value):
        found = sink.renamed(a.attr, b.attr, local=False)
    else:
        return False
    if found:
        sink.say("rename_only", arrow(a, b), a, b)
    return found


def _dtypes(sink: Sink, a: ast.AST, b: ast.AST, at: Place) -> bool:
    known = bool(dtype_of(a) or dtype_of(b))
    named = at.label.endswith("dtype=")
    if not ((is_dtype(a) and is_dtype(b)) or (known and named)) or not (known or named or isinstance(a, ast.Attribute)):
        return False
    if isinstance(a, ast.Constant) and isinstance(b, ast.Constant) and not (dtype_of(a) and dtype_of(b)):
        return False
    sink.say("dtype_changed", describe_cast(dtype_of(a) or show(a), dtype_of(b) or show(b)), a, b, at)
    return True


def _around(sink: Sink, a: ast.AST, b: ast.AST, at: Place, exact: bool) -> bool:
    """One side stands inside the other: report what was put around it, or taken away, then what else differs."""
    for inner, outer, added in ((a, b, True), (b, a, False)):
        path = _path(inner, outer, exact)
        if path:
            layers = _layers(path)
            # `.data` and the like inside a larger wrapping are no news of their own.
            telling = [each for each in layers if not isinstance(each[0], ast.Attribute)] or layers
            for around, within in telling:
                at = _layer(sink, around, within, added, at)
            pair = (a, path[-1]) if added else (path[-1], b)
            sink.compare(*pair, at)
            return True
    return False


def _layers(path: list[ast.AST]) -> list[tuple[ast.AST, ast.AST]]:
    """(around, within) pairs down a path; `x.f()` is one layer around x, not a call around an attribute."""
    pairs = list(pairwise(path))
    methods = [within for around, within in pairs if isinstance(around, ast.Call) and around.func is within]
    owners = {id(around): within for around, within in pairs if around in methods}
    return [
        (around, owners.get(id(within), within) if within in methods else within)
        for around, within in pairs
        if around not in methods
    ]


def _path(inner: ast.AST, outer: ast.AST, exact: bool) -> list[ast.AST]:
    """Nodes from `outer` down to the part that equals `inner`, or (not exact) has its root; empty if there is none."""
    if not exact and not isinstance(inner, ast.Call | ast.Subscript | ast.BinOp):
        return []
    wanted = dump(inner) if exact else head(inner)
    if exact and wanted not in dump(outer):
        return []
    return _search(outer, lambda node: (dump(node) if exact else head(node)) == wanted, DEEP)


def _search(node: ast.AST, found: Callable[[ast.AST], bool], depth: int) -> list[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and found(child):
            return [node, child]
    for child in ast.iter_child_nodes(node) if depth else ():
        path = _search(child, found, depth - 1)
        if path:
            return [node, *path]
    return []


def _layer(sink: Sink, node: ast.AST, inner: ast.AST, added: bool, at: Place) -> Place:
    """Report one node that was put around a value or taken away; conditional expressions add a guard."""
    sides = ("", node) if added else (node, "")
    word = "added" if added else "dropped"
    if isinstance(node, ast.IfExp):
        return _conditional(sink, node, inner, added, at)
    if isinstance(node, ast.Call):
        wrapped(sink, node, inner, added, at)
    elif isinstance(node, ast.Attribute):
        kind = "layout_changed" if node.attr in ("T", "mT") else "value_changed"
        sink.say(kind, f".{node.attr} {word}: {show(node)}", sides[0], sides[1], at)
    elif isinstance(node, ast.Subscript):
        sink.say("index_changed", f"{show(node)}: subscript {word}", sides[0], sides[1], at)
    elif isinstance(node, ast.BinOp):
        _operator(sink, node, inner, added, at)
    elif isinstance(node, ast.Compare | ast.BoolOp | ast.UnaryOp):
        kind = "arithmetic_changed" if isinstance(getattr(node, "op", None), ast.USub) else "condition_changed"
        sink.say(kind, f"{show(node)} {word} around {show(inner)}", sides[0], sides[1], at)
    elif not isinstance(node, ast.keyword | ast.comprehension):
        part = f"{show(inner)} is {'now' if added else 'no longer'} part of {show(node)}"
        sink.say("value_changed", part, sides[0], sides[1], at)
    return at


def _operator(sink: Sink, node: ast.BinOp, inner: ast.AST, added: bool, at: Place) -> None:
    sides = ("", node) if added else (node, "")
    names = {ast.Mult: "multiply", ast.Div: "divide"}
    verb = "added" if added else "removed"
    operator = type(node.op)
    if operator in names:
        kind = f"{names[operator]}_{verb}"
    else:
        kind = "index_changed" if operator in (ast.FloorDiv, ast.Mod) else "arithmetic_changed"
    if textual(terms(node)) or textual([(1, node.left), (1, node.right)]):
        kind = "value_changed"
    sink.say(kind, show(node) if added else f"{show(node)} is now {show(inner)}", sides[0], sides[1], at)


def _conditional(sink: Sink, node: ast.IfExp, inner: ast.AST, added: bool, at: Place) -> Place:
    """`x` became `y if test else x`: what differs in y runs under the test."""
    kind = "guard_added" if added else "guard_removed"
    sink.say(kind, show(node), "" if added else node, node if added else "", at)
    if inner not in (node.body, node.orelse) or not added:
        return at
    other, test = (node.orelse, f"not ({show(node.test)})") if inner is node.body else (node.body, show(node.test))
    before = len(sink.changes)
    sink.compare(inner, other, at._replace(guards=(*at.guards, test)))
    # Only a value made from the old one says something; an unrelated alternative is the new condition's matter.
    sink.changes[before:] = [c for c in sink.changes[before:] if c.kind not in ("value_changed", "call_replaced")]
    return at


def _replaced(sink: Sink, a: ast.AST, b: ast.AST, at: Place) -> None:
    conditions = (ast.Compare, ast.BoolOp)
    if isinstance(a, conditions) or isinstance(b, conditions):
        kind = "condition_changed"
    elif is_infinite(a) or is_infinite(b):
        kind = "mask_changed"
    elif isinstance(a, ast.IfExp) or isinstance(b, ast.IfExp):
        kind = "condition_changed"
    else:
        kind = at.soft if at.soft != "arithmetic_changed" and at.soft else "value_changed"
    sink.say(kind, arrow(a, b), a, b, at)


def is_infinite(node: ast.AST) -> bool:
    """Whether a node is a usual fill value of masks: an infinity, or a type's smallest number."""
    text = show(node).lower()
    return any(word in text for word in ("float('-inf')", "float('inf')", "math.inf", "torch.inf", "np.inf")) or (
        "finfo(" in text and text.endswith((".min", ".max"))
    )


def _constant(sink: Sink, a: ast.Constant, b: ast.Constant, at: Place) -> None:
    sink.say("constant_changed", arrow(a, b), a, b, at)


def _attributes(sink: Sink, a: ast.Attribute, b: ast.Attribute, at: Place) -> None:
    if a.attr == b.attr and not isinstance(a.value, ast.Name):
        sink.compare(a.value, b.value, at)
    else:
        _replaced(sink, a, b, at)


def _subscripts(sink: Sink, a: ast.Subscript, b: ast.Subscript, at: Place) -> None:
    sink.compare(a.value, b.value, at)
    if same(a.slice, b.slice):
        return
    texts = [isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str) for node in (a, b)]
    sink.say("value_changed" if any(texts) else "index_changed", arrow(a, b), a, b, at)


def _conditions(sink: Sink, a: ast.expr, b: ast.expr, at: Place) -> None:
    _forced(sink, a, b, at._replace(force="condition_changed"))


def _unary(sink: Sink, a: ast.UnaryOp, b: ast.UnaryOp, at: Place) -> None:
    if isinstance(a.op, ast.Not) or isinstance(b.op, ast.Not):
        _conditions(sink, a, b, at)
    else:
        sink.compare(a.operand, b.operand, at)


def _operators(sink: Sink, a: ast.BinOp, b: ast.BinOp, at: Place) -> None:
    """Operators other than products and sums, which are compared as bags before this is reached."""
    if type(a.op) is type(b.op):
        sink.compare(a.left, b.left, at)
        sink.compare(a.right, b.right, at)
        return
    whole = isinstance(a.op, ast.FloorDiv | ast.Mod) or isinstance(b.op, ast.FloorDiv | ast.Mod)
    sink.say("index_changed" if whole else "arithmetic_changed", arrow(a, b), a, b, at)


def _ternaries(sink: Sink, a: ast.IfExp, b: ast.IfExp, at: Place) -> None:
    sink.compare(a.test, b.test, at._replace(force="condition_changed"))
    sink.compare(a.body, b.body, at._replace(guards=(*at.guards, show(b.test))))
    sink.compare(a.orelse, b.orelse, at._replace(guards=(*at.guards, f"not ({show(b.test)})")))


def _elements(sink: Sink, a: Any, b: Any, at: Place) -> None:
    align(sink, a.elts, b.elts, at)


def align(sink: Sink, a: Sequence[ast.AST], b: Sequence[ast.AST], at: Place) -> None:
    """Report elements that differ between two sequences, and those that came or went."""
    old, new = [dump(node) for node in a], [dump(node) for node in b]
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        both = min(j - i, m - k)
        for x, y in zip(a[i : i + both], b[k : k + both], strict=True):
            sink.compare(x, y, at)
        for node in a[i + both : j]:
            sink.say(at.soft or "value_changed", f"element {show(node)} is gone", node, "", at)
        for node in b[k + both : m]:
            sink.say(at.soft or "value_changed", f"element {show(node)} added", "", node, at)


def _dicts(sink: Sink, a: ast.Dict, b: ast.Dict, at: Place) -> None:
    old = {show(key) or f"**{show(value)}": value for key, value in zip(a.keys, a.values, strict=True)}
    new = {show(key) or f"**{show(value)}": value for key, value in zip(b.keys, b.values, strict=True)}
    for key in old:
        if key in new:
            sink.compare(old[key], new[key], at._replace(label=f"key {key}"))
        else:
            sink.say("value_changed", f"key {key} is gone", old[key], "", at)
    for key in new:
        if key not in old:
            sink.say("value_changed", f"key {key} added", "", new[key], at)


def _text(sink: Sink, a: ast.JoinedStr, b: ast.JoinedStr, at: Place) -> None:
    sink.say("constant_changed", arrow(a, b), a, b, at)


def _lambdas(sink: Sink, a: ast.Lambda, b: ast.Lambda, at: Place) -> None:
    if not same(a.args, b.args):
        sink.say("value_changed", f"lambda parameters {arrow(a.args, b.args)}", a, b, at)
    sink.compare(a.body, b.body, at)


def _comprehensions(sink: Sink, a: Any, b: Any, at: Place) -> None:
    for name in ("elt", "key", "value"):
        if hasattr(a, name):
            sink.compare(getattr(a, name), getattr(b, name), at)
    for x, y in zip(a.generators, b.generators, strict=False):
        sink.compare(x.target, y.target, at)
        sink.compare(x.iter, y.iter, at)
        if dump(x.ifs) != dump(y.ifs):
            sink.say("condition_changed", f"filter {arrow(x.ifs, y.ifs)}", x.ifs, y.ifs, at)
    if len(a.generators) != len(b.generators):
        sink.say("value_changed", arrow(a, b), a, b, at)


def _values(sink: Sink, a: Any, b: Any, at: Place) -> None:
    if a.value is None or b.value is None:
        _replaced(sink, a, b, at)
    else:
        sink.compare(a.value, b.value, at)


_RULES: dict[type[ast.AST], Callable[[Sink, Any, Any, Place], None]] = {
    ast.Constant: _constant, ast.Attribute: _attributes, ast.Subscript: _subscripts, ast.Compare: _conditions,
    ast.BoolOp: _conditions, ast.UnaryOp: _unary, ast.BinOp: _operators, ast.IfExp: _ternaries, ast.Tuple: _elements,
    ast.List: _elements, ast.Set: _elements, ast.Dict: _dicts, ast.JoinedStr: _text, ast.Lambda: _lambdas,
    ast.ListComp: _comprehensions, ast.SetComp: _comprehensions, ast.GeneratorExp: _comprehensions,
    ast.DictComp: _comprehensions, ast.Call: compare_calls, ast.Starred: _values, ast.Await: _values,
    ast.NamedExpr: _values, ast.Yield: _values, ast.YieldFrom: _values,
}  # fmt: skip


def place_of(target: str) -> Place:
    """How differences in what is assigned to a name are classed."""
    name = target.split("[")[0].split(".")[-1]
    return Place(soft=topic(name) or ("arithmetic_changed" if is_size(ast.Name(name)) else ""))
