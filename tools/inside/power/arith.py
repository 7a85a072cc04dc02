"""Operators of stand-ins: what each does to the powers, and which of them apply the factor."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .absence import is_none
from .bounds import CONSTANTS, Bounds
from .context import run
from .storage import Storage
from .terms import ROUTED, Terms
from .thing import ANY, FACTOR_KIND, NUMBER, TENSOR, Hooks, Thing, demand, fresh, plain, say, terms_of

COMPARE = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">=", "__eq__": "==", "__ne__": "!="}
LINEAR = {"__add__": "+", "__sub__": "-"}
SCALE = {"__mul__": "*", "__matmul__": "@", "__truediv__": "/"}
BENT = {"__floordiv__": "//", "__mod__": "%", "__divmod__": "divmod"}
BITS = {"__and__": "&", "__or__": "|", "__xor__": "^", "__lshift__": "<<", "__rshift__": ">>"}
UNARY = {"__neg__": "-", "__pos__": "+", "__invert__": "~"}

_SIZE = re.compile(r"\.shape\)?\)?\[[^\]]*\]\)?$|\.numel\(\)$|\.size\(\d*\)$|world_size$")
"""Names of what is at least one."""

_OPERATOR = re.compile(r" (?:[-%*+]|//?|\*\*) ")

_MARGIN = 2.5
"""What the factor counts as where the code compares it with a number: it is neither zero nor one."""


def kind_of(value: object) -> str:
    """A stand-in's kind; a plain number is a number."""
    if isinstance(value, Thing):
        return str(value._kind)
    return NUMBER if isinstance(value, int | float | complex) else ANY


def is_factor(value: object) -> bool:
    """Whether it is the factor, or a number made from it alone."""
    return isinstance(value, Thing) and value._kind == FACTOR_KIND


def joined(left: object, right: object) -> str:
    """The kind of the result of an operator."""
    kinds = {kind_of(left), kind_of(right)}
    if TENSOR in kinds:
        return TENSOR
    if ANY in kinds:
        return ANY
    return FACTOR_KIND if FACTOR_KIND in kinds else NUMBER


def combine(op: str, left: object, right: object) -> Terms:
    """Terms of `left op right`."""
    a, b = terms_of(left), terms_of(right)
    if op in ("*", "@"):
        return a * b
    if op == "/":
        return a * b.inverse()
    if op in ("+", "-"):
        return a + b
    return (a + b).bent(f"`{op}`")


def note(op: str, left: object, right: object, kind: str) -> None:
    """Note an application: a multiplication or division in which one side is the factor, or that divides it out."""
    if op not in ("*", "/"):
        return
    if is_factor(right) or (op == "*" and is_factor(left)):
        pure = kind_of(left) in (NUMBER, FACTOR_KIND) and kind_of(right) in (NUMBER, FACTOR_KIND)
        target = left if is_factor(right) else right
        if op == "/":
            run().site("reciprocal")
        elif not (pure and kind == "multiply"):
            run().site("folded-into-weights" if kind == "multiply" and _weights(target) else kind)
    elif op == "/" and is_factor(left):
        run().site("reciprocal")
    elif op == "/" and terms_of(left).carries and terms_of(right).carries:
        run().site("renormalised")


def _weights(value: object) -> bool:
    return isinstance(value, Thing) and ROUTED in terms_of(value).tags and "weight" in value._name


def binary(op: str, left: object, right: object) -> Any:
    """`left op right` as a new value."""
    for side in (left, right):
        if isinstance(side, Thing):
            demand(side, f"unsupported operand type(s) for {op}: 'NoneType'")
    note(op, left, right, "multiply")
    result = fresh(f"{say(left)} {op} {say(right)}", combine(op, left, right), joined(left, right))
    run().present.add(result._name)
    if getattr(left, "_loop", False) or getattr(right, "_loop", False):
        object.__setattr__(result, "_loop", True)
    return result


def in_place(op: str, left: Thing, right: object) -> Any:
    """`left op= right`: a tensor's memory changes, a number's name gets a new value."""
    terms = combine(op, left, right)
    if not _mutates(left, terms):
        note(op, left, right, "in-place" if kind_of(left) == TENSOR else "multiply")
        return fresh(f"{say(left)} {op} {say(right)}", terms, joined(left, right))
    note(op, left, right, "in-place")
    scale_in_place(op, left, right)
    return left


def scale_in_place(op: str, left: Thing, right: object) -> None:
    """Change the memory of `left`, part by part when all of it is meant."""
    store, key = left._store, left._key
    if key is not None or not store.parts:
        store.write(combine(op, left, right), key)
        return
    parts, rest = dict(store.parts), store.rest
    store.write(combine(op, fresh("", rest), right))
    store.parts.update({part: combine(op, fresh("", terms), right) for part, terms in parts.items()})


def _mutates(left: Thing, terms: Terms) -> bool:
    """Whether an in-place operator changes what others see; where it can't be told and matters, it is asked."""
    if kind_of(left) in (NUMBER, FACTOR_KIND):
        return False
    if kind_of(left) == TENSOR or terms == terms_of(left):
        return True
    return run().oracle.truth(f"isinstance({left._name}, Tensor)")


def compare(op: str, left: Thing, right: object) -> Any:
    """A comparison: known for the factor against a number, else a condition with a name."""
    if is_factor(left) and isinstance(right, int | float):
        import operator

        functions: dict[str, Callable[[Any, Any], bool]] = {
            "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
            "==": operator.eq, "!=": operator.ne,
        }  # fmt: skip
        run().assume("the factor is neither 0 nor 1 (it is compared with a number)")
        if right in (0, 1):
            return functions[op](_MARGIN, right)
    if op in ("==", "!=") and isinstance(right, Thing) and right._name == left._name and kind_of(left) != TENSOR:
        return op == "=="
    if op in ("==", "!=") and right is None:
        return is_none(left) is (op == "==")
    if left._name in run().nones and op in ("==", "!=") and not isinstance(right, Thing):
        return op == "!="
    if op not in ("==", "!="):
        demand(left, f"'{op}' not supported between instances of 'NoneType' and others")
    return condition(op, left, right)


def condition(op: str, left: Thing, right: object) -> Thing:
    """A comparison whose outcome is asked when it is needed."""
    if kind_of(left) != TENSOR and isinstance(right, CONSTANTS):
        return Comparison(left, op, right)
    if op == "!=" and kind_of(left) != TENSOR:
        return Negated(f"{say(left)} == {say(right)}", NUMBER)
    kind = TENSOR if TENSOR in (kind_of(left), kind_of(right)) else NUMBER
    return plain(f"{say(left)} {op} {say(right)}", kind)


class Negated(Thing):
    """A condition that holds when the one it is named for doesn't."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return not run().oracle.truth(self._name, default=not run().likely())


class Comparison(Thing):
    """A comparison with a constant: it agrees with every other comparison of the same value in this world."""

    __slots__ = ("_left", "_op", "_right")

    def __init__(self, left: Thing, op: str, right: Any) -> None:
        Thing.__init__(self, f"{say(left)} {'==' if op == '!=' else op} {right!r:.60}", NUMBER)
        object.__setattr__(self, "_left", left)
        object.__setattr__(self, "_op", op)
        object.__setattr__(self, "_right", right)

    def __bool__(self) -> bool:
        if self._left._name in run().nones:
            return bool(self._op == "!=")
        bounds = bounds_of(self._left)
        known = bounds.known(self._op, self._right)
        if known is not None:
            return known
        negated = self._op == "!="
        default = run().likely(self._op) is not negated
        truth = run().oracle.truth(self._name, default=default) is not negated
        bounds.learn(self._op, self._right, truth)
        return truth


def bounds_of(value: Thing) -> Bounds:
    """What this world knows of a value."""
    name = value._name
    if name not in run().bounds:
        bounds = run().bounds[name] = Bounds()
        if _SIZE.search(name) and not _OPERATOR.search(name):
            run().assume("no tensor is empty, and every group has a member")
            bounds.low = 1
        fact = run().oracle.fact(name)
        if isinstance(fact, CONSTANTS):
            bounds.equal = [fact]
    found: Bounds = run().bounds[name]
    return found


def truth_of(value: Thing) -> bool:
    """The truth of a stand-in: a number is true when it isn't zero."""
    if value._name in run().nones:
        return False
    number = value._kind == NUMBER or value._name in run().bounds
    if number and type(value) is Thing and not _CONDITION.search(value._name):
        return bool(Comparison(value, "!=", 0))
    return run().oracle.truth(value._name, default=run().likely())


_CONDITION = re.compile(r" (?:==|<=?|>=?) ")


def unary(op: str, value: Thing) -> Any:
    """`op value`."""
    terms = terms_of(value)
    result = Thing(f"{op}{say(value)}", value._kind, Storage(terms if op != "~" else terms.bent("`~`")))
    if op == "+":
        return value
    return result


def _install() -> None:
    for method, op in {**LINEAR, **SCALE, **BENT, **BITS}.items():
        reflected, inplace = method.replace("__", "__r", 1), method.replace("__", "__i", 1)
        setattr(Thing, method, lambda self, other, op=op: binary(op, self, other))
        setattr(Thing, reflected, lambda self, other, op=op: binary(op, other, self))
        setattr(Thing, inplace, lambda self, other, op=op: in_place(op, self, other))
    for method, op in COMPARE.items():
        setattr(Thing, method, lambda self, other, op=op: compare(op, self, other))
    for method, op in UNARY.items():
        setattr(Thing, method, lambda self, op=op: unary(op, self))
    more: dict[str, Callable[..., Any]] = {
        "__pow__": lambda self, other, mod=None: raised(self, other),
        "__rpow__": lambda self, other, mod=None: raised(other, self),
        "__abs__": lambda self: fresh(f"abs({self._name})", terms_of(self), self._kind),
        "__round__": lambda self, digits=None: fresh(f"round({self._name})", terms_of(self).bent("round"), self._kind),
    }
    for method, function in more.items():
        setattr(Thing, method, function)


def raised(base: object, exponent: object) -> Thing:
    """`base ** exponent`."""
    terms = terms_of(base).power(exponent)
    if terms_of(exponent).carries:
        terms = terms_of(exponent).bent("an exponent")
    return fresh(f"{say(base)} ** {say(exponent)}", terms, joined(base, exponent))


_install()
Hooks.truth = staticmethod(truth_of)
