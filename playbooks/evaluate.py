"""Work out the value of an expression, within a bound on the work."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from ..sandbox.yamlfile import did_you_mean
from .functions import FUNCTIONS, ExpressionError, items_of

CONSTANTS = {"true": True, "false": False, "null": None}

WORK = 1_000_000
"""Parts of an expression, and hundreds of characters, that one evaluation may work through: a second or so."""

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

Scope = Mapping[str, Any]


def field(value: Any, name: str) -> Any:
    """`value.name` for a model or a mapping; null of null."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return value.get(name)
    if isinstance(value, BaseModel) and name in type(value).model_fields:
        return getattr(value, name)
    raise LookupError(f"{type(value).__name__} has no field {name!r}")


class Evaluator:
    """One evaluation. It only ever sees syntax that `Expression` admitted."""

    def __init__(self) -> None:
        self.left = WORK

    def spend(self, size: int) -> None:
        """Count the work of one part, and of the `size` characters or items that it handles."""
        self.left -= 1 + size // 100
        if self.left < 0:
            raise ExpressionError("this takes far too many steps to work out")

    def value(self, node: ast.expr, scope: Scope) -> Any:  # noqa: C901 - one flat case a kind of node
        """The value of one node."""
        self.spend(0)
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return _name(node.id, scope)
            case ast.Attribute():
                return field(self.value(node.value, scope), node.attr)
            case ast.Subscript():
                return self._item(node, scope)
            case ast.List() | ast.Tuple():
                return [self.value(item, scope) for item in node.elts]
            case ast.BoolOp():
                return self._bool(node, scope)
            case ast.UnaryOp():
                return self._unary(node, scope)
            case ast.BinOp():
                return self._sum(node, scope)
            case ast.IfExp():
                return self.value(node.body if self.value(node.test, scope) else node.orelse, scope)
            case ast.Compare():
                return self._compare(node, scope)
            case ast.GeneratorExp() | ast.ListComp():
                return self._loop(node, scope)
            case ast.Call(func=ast.Name(id=name)):
                return self._call(name, [self.value(arg, scope) for arg in node.args])
        raise ExpressionError(f"{type(node).__name__} can't be evaluated")

    def _item(self, node: ast.Subscript, scope: Scope) -> Any:
        box, key = self.value(node.value, scope), self.value(node.slice, scope)
        if box is None:
            return None
        if isinstance(box, BaseModel | Mapping):
            return field(box, str(key))
        return box[key]

    def _bool(self, node: ast.BoolOp, scope: Scope) -> Any:
        stop_at = isinstance(node.op, ast.Or)
        value: Any = None
        for part in node.values:
            value = self.value(part, scope)
            if bool(value) is stop_at:
                break
        return value

    def _unary(self, node: ast.UnaryOp, scope: Scope) -> Any:
        value = self.value(node.operand, scope)
        if isinstance(node.op, ast.Not):
            return not value
        return None if value is None else -value

    def _sum(self, node: ast.BinOp, scope: Scope) -> Any:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if left is None or right is None:
            return None
        self.spend(_size(left) + _size(right))
        return left + right

    def _compare(self, node: ast.Compare, scope: Scope) -> bool:
        left = self.value(node.left, scope)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node, scope)
            self.spend(_size(right))
            if not _holds(op, left, right):
                return False
            left = right
        return True

    def _loop(self, node: ast.GeneratorExp | ast.ListComp, scope: Scope) -> list[Any] | None:
        """Its items; null when what it runs over is null, so that `all(…)` over nothing isn't true."""
        first = self.value(node.generators[0].iter, scope)
        return None if first is None else list(self._expand(node.elt, node.generators, first, scope))

    def _expand(self, elt: ast.expr, loops: list[ast.comprehension], items: Any, scope: Scope) -> Iterator[Any]:
        head, rest = loops[0], loops[1:]
        assert isinstance(head.target, ast.Name)
        for item in items_of(items) if items is not None else []:
            bound = {**scope, head.target.id: item}
            if not all(self.value(test, bound) for test in head.ifs):
                continue
            if rest:
                yield from self._expand(elt, rest, self.value(rest[0].iter, bound), bound)
            else:
                yield self.value(elt, bound)

    def _call(self, name: str, args: list[Any]) -> Any:
        self.spend(sum(map(_size, args)))
        return FUNCTIONS[name](*args)


def _name(name: str, scope: Scope) -> Any:
    if name in scope:
        return scope[name]
    if name in CONSTANTS:
        return CONSTANTS[name]
    raise LookupError(f"unknown name {name!r}{did_you_mean(name, scope)}")


def _holds(op: ast.cmpop, left: Any, right: Any) -> bool:
    if isinstance(op, ast.In | ast.NotIn):
        return _within(left, right) is isinstance(op, ast.In)
    if not isinstance(op, ast.Eq | ast.NotEq) and (left is None or right is None):
        return False
    return bool(_COMPARE[type(op)](left, right))


def _within(item: Any, box: Any) -> bool:
    """Nothing is in nothing, and null is in no text."""
    if box is None or (item is None and isinstance(box, str)):
        return False
    return item in (box if isinstance(box, str) else items_of(box))


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | list | tuple | Mapping) else 0
