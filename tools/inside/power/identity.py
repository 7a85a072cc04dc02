"""What the tree's `is`, `in`, `type(…)` and `table.get(…)` ask of stand-ins; `rewriting` puts these calls there."""

from __future__ import annotations

import enum
from typing import Any

from . import bodies, classes
from .absence import is_none
from .bases import Dtype
from .bounds import CONSTANTS
from .context import fail, run
from .environment import Environment, Variable
from .thing import ANY, FACTOR_KIND, LIB, TENSOR, Thing, say


class TypeOf(Thing):
    """The class of an unknown object: what it is compared with says more about it."""

    __slots__ = ("_object",)

    def __init__(self, thing: Thing) -> None:
        Thing.__init__(self, f"type({say(thing)})")
        object.__setattr__(self, "_object", thing)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeOf):
            return other._name == self._name or same(self._name, other._name)
        return classes.is_exactly(self._object, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._name)

    @property
    def __name__(self) -> Any:
        return Thing(f"{self._name}.__name__")


def same(left: Any, right: Any, negated: bool = False) -> bool:
    """`left is right`, or `left is not right`."""
    return _same(classes.REAL_OF.get(id(left), left), classes.REAL_OF.get(id(right), right), negated) is not negated


def _same(left: Any, right: Any, negated: bool) -> bool:
    if left is right or not (isinstance(left, Thing) or isinstance(right, Thing)):
        return left is right
    thing, other = (left, right) if isinstance(left, Thing) else (right, left)
    if other is None:
        wanted = run().wanted()
        return is_none(thing, likely=False if wanted is None else wanted is not negated)
    if isinstance(thing, TypeOf) or isinstance(other, TypeOf):
        return bool(thing == other)
    if isinstance(other, Thing):
        return _same_things(thing, other)
    if thing._kind in (FACTOR_KIND, TENSOR, LIB) or thing._name in run().nones:
        return False
    if isinstance(other, CONSTANTS | enum.Enum | Dtype):
        return bool(thing == other)
    return thing._kind == ANY and run().oracle.truth(f"{say(thing)} is {say(other)}", default=False)


def _same_things(left: Thing, right: Thing) -> bool:
    if TENSOR in (left._kind, right._kind) or FACTOR_KIND in (left._kind, right._kind):
        return False
    if left._name == right._name:
        return True
    if left._kind == right._kind == LIB:
        return False
    return run().oracle.truth(f"{say(left)} is {say(right)}", default=False)


def among(item: Any, container: Any, negated: bool = False) -> bool:
    """`item in container`, or `item not in container`: what looks by hash is gone through."""
    return _among(item, container) is not negated


def _among(item: Any, container: Any) -> bool:
    if not isinstance(item, Thing) or item._kind == TENSOR or isinstance(container, Thing | Environment):
        return item in container
    if isinstance(item, Variable) and isinstance(container, list | tuple | set | frozenset | dict):
        return item.among(list(container))
    if isinstance(container, set | frozenset | dict):
        return any(item is one or bool(item == one) for one in list(container))
    return item in container


def got(table: Any, *args: Any) -> Any:
    """`table.get(key, default)`: which key an unknown one is, is asked."""
    key = args[0]
    if not isinstance(table, dict) or isinstance(table, Environment) or not isinstance(key, Thing):
        return table.get(*args)
    if key._kind == TENSOR or dict.__contains__(table, key):
        return table.get(*args)
    found = [one for one in list(table) if not isinstance(one, Thing) and bool(key == one)]
    return table[found[0]] if found else args[1] if len(args) > 1 else None


def type_of(function: Any, value: Any) -> Any:
    """`type(value)`, where `type` is Python's own."""
    if function is not type:
        return function(value)
    if isinstance(value, Thing) and value._kind == FACTOR_KIND:
        return float
    if type(value) is not Thing and not isinstance(value, Variable):
        return type(value)
    if value._name in run().nones:
        return type(None)
    body = bodies.body(value)
    return TypeOf(value) if body is None else type(body)


def subject(value: Any) -> Any:
    """What a `match` with a pattern of a class or None looks into.

    Raises:
        StandInError: it isn't known.
    """
    if isinstance(value, Thing):
        raise fail(f"match asks for the class of {value._name}, which isn't known")
    return value


__all__ = ["among", "got", "same", "subject", "type_of"]
