"""Products and sums compared as bags of factors and terms, so that order, spelling and in-place forms don't matter."""

from __future__ import annotations

import ast
from typing import NamedTuple

from .classify_sink import Place, Sink, arrow, same
from .classify_units import dump, show
from .classify_vocabulary import CALLS, callee, is_size


class Product(NamedTuple):
    """A value as factors above and below the line, and whether it is written over its first factor."""

    above: list[ast.AST]
    below: list[ast.AST]
    inplace: bool = False


def product(node: ast.AST) -> Product:
    """Factors of a node; a node that is no product is its own only factor."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        left, right = product(node.left), product(node.right)
        if isinstance(node.op, ast.Div):
            right = Product(right.below, right.above)
        return _clean(left.above + right.above, left.below + right.below, left.inplace)
    operands = _call_operands(node)
    if operands:
        left, right = product(operands[0]), product(operands[1])
        if callee(node) in CALLS["divide"]:
            right = Product(right.below, right.above)
        return _clean(left.above + right.above, left.below + right.below, callee(node).endswith("_"))
    if isinstance(node, ast.Call) and callee(node) in CALLS["reciprocal"] and isinstance(node.func, ast.Attribute):
        inner = product(node.args[0] if node.args else node.func.value)
        return Product(inner.below, inner.above, callee(node).endswith("_"))
    return Product([node], [])


def _clean(above: list[ast.AST], below: list[ast.AST], inplace: bool) -> Product:
    ones = [node for node in above if isinstance(node, ast.Constant) and node.value in (1, 1.0)]
    rest = [node for node in above if node not in ones]
    return Product(rest if rest or below else above, below, inplace)


def _call_operands(node: ast.AST) -> tuple[ast.AST, ast.AST] | None:
    """The two sides of `a.mul(b)`, `torch.div(a, b)` and the like."""
    names = CALLS["multiply"] | CALLS["divide"]
    if not isinstance(node, ast.Call) or callee(node) not in names or not isinstance(node.func, ast.Attribute):
        return None
    if any(word.arg == "rounding_mode" for word in node.keywords):
        return None
    if len(node.args) == 2 and show(node.func.value) in ("torch", "np", "numpy", "jnp", "operator"):
        return node.args[0], node.args[1]
    return (node.func.value, node.args[0]) if len(node.args) == 1 else None


def is_product(node: ast.AST) -> bool:
    """Whether a node multiplies or divides numbers (repeating a list or a string doesn't count)."""
    factors = product(node)
    literal = (ast.List, ast.Tuple, ast.JoinedStr, ast.ListComp)
    texts = [
        f
        for f in factors.above
        if isinstance(f, literal) or (isinstance(getattr(f, "value", 0), str | bytes) and isinstance(f, ast.Constant))
    ]
    return (len(factors.above) > 1 or bool(factors.below)) and not texts


def compare_products(sink: Sink, a: ast.AST, b: ast.AST, at: Place) -> bool:
    """Report factors that came, went or changed; False when the two share nothing that makes them one product."""
    if not (is_product(a) or is_product(b)):
        return False
    old, new = product(a), product(b)
    gone, came = _rest(old.above, new.above)
    under_gone, under_came = _rest(old.below, new.below)
    kept = len(old.above) + len(old.below) - len(gone) - len(under_gone)
    swapped = _partners(gone, came, kept > 0)
    if not kept and not swapped:
        return False
    if all(map(is_size, (*gone, *came, *under_gone, *under_came))) and all(map(is_size, old.above + new.above)):
        at = at._replace(soft=at.soft or "arithmetic_changed")
    for x, y in swapped:
        sink.compare(x, y, at)
    for x, y in _partners(under_gone, under_came, True):
        sink.compare(x, y, at)
    _report(sink, (gone, came, under_gone, under_came), a, b, at)
    if new.inplace and not old.inplace:
        sink.say("inplace_introduced", arrow(a, b), a, b, at)
    elif not (swapped or gone or came or under_gone or under_came) and not old.inplace:
        _reordered(sink, a, b, at)
    return True


def _reordered(sink: Sink, a: ast.AST, b: ast.AST, at: Place) -> None:
    if sorted(type(n).__name__ for n in ast.walk(a)) != sorted(type(n).__name__ for n in ast.walk(b)):
        return
    sink.say("arithmetic_changed", f"same factors in another order: {arrow(a, b)}", a, b, at)


def _report(sink: Sink, bags: tuple[list[ast.AST], ...], a: ast.AST, b: ast.AST, at: Place) -> None:
    gone, came, under_gone, under_came = bags
    if came:
        sink.say("multiply_added", show(b), "", b, at)
    for factor in gone:
        sink.say("multiply_removed", f"{show(a)} no longer has {show(factor)}", a, b, at)
    if under_came:
        sink.say("divide_added", show(b), "", b, at)
    for factor in under_gone:
        sink.say("divide_removed", f"{show(a)} is no longer divided by {show(factor)}", a, b, at)


def _rest(old: list[ast.AST], new: list[ast.AST]) -> tuple[list[ast.AST], list[ast.AST]]:
    """What is left on each side when common members are paired off."""
    remaining = list(new)
    gone = []
    for node in old:
        twin = next((other for other in remaining if same(node, other)), None)
        if twin is None:
            gone.append(node)
        else:
            remaining.remove(twin)
    return gone, remaining


def head(node: ast.AST) -> str:
    """What a node is at its root: the called name, operator or attribute; the whole of a leaf."""
    if isinstance(node, ast.Call):
        return f"Call {callee(node)}"
    if isinstance(node, ast.Subscript):
        return f"Subscript {dump(node.value)}"
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.BoolOp):
        return f"{type(node).__name__} {type(node.op).__name__}"
    if isinstance(node, ast.Constant | ast.Name | ast.Attribute):
        return dump(node)
    return type(node).__name__


def _partners(gone: list[ast.AST], came: list[ast.AST], single: bool) -> list[tuple[ast.AST, ast.AST]]:
    """Pair leftovers with the same root, and the last two if `single`; what is paired leaves the lists."""
    pairs = []
    for x in list(gone):
        y = next((other for other in came if head(other) == head(x)), None)
        if y is not None:
            gone.remove(x)
            came.remove(y)
            pairs.append((x, y))
    if (single or pairs) and len(gone) == len(came) == 1:
        pairs.append((gone.pop(), came.pop()))
    return pairs


def terms(node: ast.AST, sign: int = 1) -> list[tuple[int, ast.AST]]:
    """Signed terms of a sum; a node that is no sum is its own only term."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        other = sign if isinstance(node.op, ast.Add) else -sign
        return terms(node.left, sign) + terms(node.right, other)
    if isinstance(node, ast.Call) and callee(node) in CALLS["plus"] and isinstance(node.func, ast.Attribute):
        torch = show(node.func.value) in ("torch", "np", "jnp")
        operands = node.args if torch else [node.func.value, *node.args]
        # `x.add(y)` may as well put y into a set.
        if (torch or callee(node) != "add") and len(operands) == 2 and not node.keywords:
            other = -sign if callee(node).startswith("sub") else sign
            return terms(operands[0], sign) + terms(operands[1], other)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return terms(node.operand, -sign)
    return [(sign, node)]


def compare_sums(sink: Sink, a: ast.AST, b: ast.AST, at: Place) -> bool:
    """Report terms and signs that differ; False when neither is a sum or nothing is common."""
    old, new = terms(a), terms(b)
    if (len(old) == len(new) == 1 and old[0][0] == new[0][0]) or textual(old + new):
        return False
    gone, came = _rest_signed(old, new)
    if len(gone) == len(old) and not _flipped(gone, came):
        return False
    if not gone and not came:
        _same_terms(sink, a, b, at)
    elif len(gone) == len(came) == 1 and gone[0][0] == came[0][0]:
        sink.compare(gone[0][1], came[0][1], at)
    else:
        _differing_terms(sink, gone, came, (a, b), at)
    return True


def _same_terms(sink: Sink, a: ast.AST, b: ast.AST, at: Place) -> None:
    if isinstance(b, ast.Call) and callee(b).endswith("_") and not callee(a).endswith("_"):
        sink.say("inplace_introduced", arrow(a, b), a, b, at)


def _differing_terms(
    sink: Sink,
    gone: list[tuple[int, ast.AST]],
    came: list[tuple[int, ast.AST]],
    whole: tuple[ast.AST, ast.AST],
    at: Place,
) -> None:
    units = [term for _, term in gone + came]
    step = all(isinstance(term, ast.Constant) and term.value == 1 for term in units)
    kind = "index_changed" if step else "arithmetic_changed"
    flip = " (sign)" if _flipped(gone, came) else ""
    sink.say(kind, arrow(*whole) + flip, *whole, at)


def _rest_signed(
    old: list[tuple[int, ast.AST]], new: list[tuple[int, ast.AST]]
) -> tuple[list[tuple[int, ast.AST]], list[tuple[int, ast.AST]]]:
    remaining = list(new)
    gone = []
    for sign, node in old:
        twin = next((pair for pair in remaining if pair[0] == sign and same(node, pair[1])), None)
        if twin is None:
            gone.append((sign, node))
        else:
            remaining.remove(twin)
    return gone, remaining


def _flipped(gone: list[tuple[int, ast.AST]], came: list[tuple[int, ast.AST]]) -> bool:
    return any(sign == -other and same(x, y) for sign, x in gone for other, y in came)


def textual(found: list[tuple[int, ast.AST]]) -> bool:
    """Texts and lists are joined with +, which is no arithmetic."""
    return any(
        isinstance(node, ast.JoinedStr | ast.List | ast.ListComp | ast.Tuple)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
        for _, node in found
    )
