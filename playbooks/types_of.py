"""Follow the types of a tool's findings through an expression: fields that don't exist, values that never occur."""

from __future__ import annotations

import ast
import itertools
import types
from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from ..sandbox.yamlfile import did_you_mean
from .evaluate import CONSTANTS

_SAME = ("list", "sorted", "unique")
_ONE_OF = ("first", "max", "min")


class Types:
    """Notes problems in `problems` while it works out the type of an expression; `Any` where it can't tell."""

    def __init__(self, known: dict[str, Any], problems: list[str]) -> None:
        """`known` gives the type of each name: a class, a mapping of names to types, or `Any`."""
        self.known, self.problems = known, problems

    def of(self, node: ast.expr) -> Any:  # noqa: C901 - one flat case a kind of node
        """The type of one node."""
        match node:
            case ast.Name():
                return self._name(node.id)
            case ast.Constant(value=value):
                return type(value) if value is not None else Any
            case ast.Attribute():
                return self._field(self.of(node.value), node.attr)
            case ast.Subscript(value=box, slice=ast.Constant(value=str(key))):
                return self._field(self.of(box), key)
            case ast.Subscript():
                self.of(node.slice)
                return _item(self.of(node.value))
            case ast.GeneratorExp() | ast.ListComp():
                return self._loop(node)
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._call(name, [self.of(arg) for arg in args])
            case ast.Compare():
                return self._compare(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.of(child)
        return Any

    def _name(self, name: str) -> Any:
        if name in self.known:
            return self.known[name]
        if name not in CONSTANTS:
            self.problems.append(f"unknown name {name!r}{did_you_mean(name, self.known)}")
        return Any

    def _field(self, kind: Any, name: str) -> Any:
        kind = _bare(kind)
        if isinstance(kind, Mapping):
            if name in kind:
                return kind[name]
            self.problems.append(f"there is no {name!r} here{did_you_mean(name, kind)}")
        elif isinstance(kind, type) and issubclass(kind, BaseModel):
            if name in kind.model_fields:
                return kind.model_fields[name].annotation
            self.problems.append(f"{kind.__name__} has no field {name!r}{did_you_mean(name, kind.model_fields)}")
        elif get_origin(kind) is list:
            self.problems.append(f"a list has no field {name!r}: loop over it, or take first(…)")
        elif kind in (str, int, float, bool) or _values(kind):
            self.problems.append(f"{getattr(kind, '__name__', 'a word')} has no field {name!r}")
        return _item(kind) if get_origin(kind) is dict else Any

    def _loop(self, node: ast.GeneratorExp | ast.ListComp) -> Any:
        inner = Types(dict(self.known), self.problems)
        for generator in node.generators:
            assert isinstance(generator.target, ast.Name)
            if generator.target.id in inner.known:
                self.problems.append(f"the loop's variable {generator.target.id!r} hides another name")
            inner.known[generator.target.id] = _item(inner.of(generator.iter))
            for test in generator.ifs:
                inner.of(test)
        return list[inner.of(node.elt)]  # type: ignore[misc]

    def _call(self, name: str, args: list[Any]) -> Any:
        if name in _SAME:
            return args[0]
        return _item(args[0]) if name in _ONE_OF else Any

    def _compare(self, node: ast.Compare) -> Any:
        sides = [node.left, *node.comparators]
        kinds = [self.of(side) for side in sides]
        for op, (left, right), (kind, other) in zip(node.ops, _pairs(sides), _pairs(kinds), strict=True):
            if isinstance(op, ast.Eq | ast.NotEq):
                self._never(kind, right)
                self._never(other, left)
            elif isinstance(op, ast.In | ast.NotIn):
                for item in right.elts if isinstance(right, ast.List | ast.Tuple) else []:
                    self._never(kind, item)
                self._never(_item(other), left)
        return bool

    def _never(self, kind: Any, constant: ast.expr) -> None:
        """Note a word that `kind`, which has a fixed set of them, never is."""
        values = _values(_bare(kind))
        said = constant.value if isinstance(constant, ast.Constant) else None
        if values and isinstance(said, str) and said not in values:
            self.problems.append(f"it is never {said!r}{did_you_mean(said, values)}")


def _pairs(items: list[Any]) -> list[tuple[Any, Any]]:
    return list(itertools.pairwise(items))


def _values(kind: Any) -> list[str]:
    """The words that an enumeration or a Literal allows; none for any other type."""
    if get_origin(kind) is Literal:
        return [str(value) for value in get_args(kind)]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(member.value) for member in kind]
    return []


def _bare(kind: Any) -> Any:
    """The type inside Optional."""
    if get_origin(kind) in (Union, types.UnionType):
        rest = [arg for arg in get_args(kind) if arg is not type(None)]
        return rest[0] if len(rest) == 1 else Any
    return kind


def _item(kind: Any) -> Any:
    kind = _bare(kind)
    if isinstance(kind, Mapping) or get_origin(kind) not in (list, tuple, dict):
        return Any
    args = get_args(kind)
    return (args[-1] if get_origin(kind) is dict else args[0]) if args else Any
