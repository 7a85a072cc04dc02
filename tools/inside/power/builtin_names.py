"""The built-in functions as the tree's code sees them: those that look into a value know stand-ins."""

from __future__ import annotations

import builtins
import inspect
from typing import Any

from . import arith, bodies, classes, identity, rewriting, typed
from .bases import Library
from .bases import Module as TorchModule
from .context import fail, run
from .environment import Variable
from .storage import Storage
from .terms import ZERO, Terms
from .thing import FACTOR_KIND, LIB, NUMBER, TENSOR, Thing, demand, loop_value, plain, say, terms_of

REFUSED = "open exec eval compile input breakpoint exit quit memoryview".split()
_NONE = object()


class _Number(type):
    """Lets `float` and `int` build from a stand-in, and still be the class that numbers have."""

    real: type

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Thing):
            value = args[0]
            if isinstance(value, Variable):
                return value.number(cls.real)
            demand(value, f"{cls.real.__name__}() argument must be a number, not 'NoneType'")
            kind = FACTOR_KIND if value._kind == FACTOR_KIND else NUMBER
            terms = terms_of(value)
            if cls.real is int and terms.carries:
                terms = terms.bent("int")
            return Thing(value._name, kind, Storage(terms))
        return cls.real(*args, **kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, cls.real)

    def __subclasscheck__(cls, other: Any) -> bool:
        return issubclass(other, cls.real)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.real

    def __hash__(cls) -> int:
        return hash(cls.real)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.real, name)


class Float(metaclass=_Number):
    """`float`."""

    real = float


class Int(metaclass=_Number):
    """`int`."""

    real = int


classes.REAL_OF.update({id(Float): float, id(Int): int})


def has_attribute(value: Any, name: Any, default: bool = True) -> bool:
    """`hasattr`: what a constructor didn't set isn't there; of an unknown object it is asked."""
    if not isinstance(name, str):
        return False
    if isinstance(value, TorchModule) and "_opaque" in vars(value) and name not in vars(value):
        return run().oracle.truth(f"hasattr({vars(value)['_opaque']}, {name!r})", default=False)
    if isinstance(value, TorchModule | Library):
        return name in vars(value) or builtins.hasattr(type(value), name)
    if isinstance(value, Thing) and value._name.startswith("torch.ops."):
        return name in run().ops or bool(run().sinks.by_name.get(name)) or not value._name.count(".") > 1
    known = _of_its_class(value, name) if isinstance(value, Thing) else None
    if known is not None:
        return known
    if isinstance(value, Thing) and value._kind != LIB and name != run().factor:
        if name in value._kids or value._kind == TENSOR:
            return name in value._kids
        if run().oracle.truth(f"hasattr({say(value)}, {name!r})", default=default):
            run().present.add(value._name)
            return True
        return False
    return builtins.hasattr(value, name)


def _of_its_class(value: Thing, name: str) -> bool | None:
    """Whether an object of a known class has an attribute, as far as the class says."""
    if value._name in run().nones or isinstance(value, Variable):
        return builtins.hasattr(None if value._name in run().nones else "", name)
    if value._cls is None:
        return None
    body = bodies.body(value)
    if body is not None:
        return builtins.hasattr(body, name)
    static = inspect.getattr_static(value._cls, name, None)
    return True if static is not None or typed.field_annotation(value._cls, name)[0] else None


def get_attribute(value: Any, name: Any, *default: Any) -> Any:
    """`getattr`, with the default where the attribute isn't set or is chosen not to be."""
    if not isinstance(name, str):
        run().unseen("getattr with a name that isn't known")
        raise fail("getattr with a name that isn't known")
    if default and name != run().factor and not has_attribute(value, name, default=False):
        return default[0]
    return builtins.getattr(value, name, *default)


def length(value: Any) -> Any:
    """`len`."""
    if not isinstance(value, Thing):
        return builtins.len(value)
    demand(value, "object of type 'NoneType' has no len()")
    return plain(f"len({value._name})", NUMBER)


def ranged(*bounds: Any) -> Any:
    """`range`: how often a loop over an unknown number runs is asked."""
    if not any(isinstance(one, Thing) for one in bounds):
        return builtins.range(*bounds)
    name = f"range({', '.join(map(say, bounds))})"
    times = run().oracle.ask(f"rounds of {name}", ("1", "2", "0"))
    source = plain(name, NUMBER)
    return [loop_value(source, number) for number in builtins.range(int(times))]


def _extreme(name: str) -> Any:
    real = getattr(builtins, name)

    def function(*args: Any, **kwargs: Any) -> Any:
        if not any(isinstance(one, Thing) for one in args):
            return real(*args, **kwargs)
        total: Terms = sum((terms_of(one) for one in args), ZERO)
        told = f"{name}({', '.join(map(say, args))})"
        result = Thing(told, TENSOR if TENSOR in map(arith.kind_of, args) else NUMBER, Storage(total))
        object.__setattr__(result, "_loop", any(getattr(one, "_loop", False) for one in args))
        return result

    return function


def summed(values: Any, start: Any = 0) -> Any:
    """`sum`, which starts from nothing."""
    total = _NONE if isinstance(start, int) and start == 0 else start
    for one in values:
        total = one if total is _NONE else total + one
    return 0 if total is _NONE else total


def _refuse(name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        run().unseen(f"{name} is called")
        raise fail(f"the code calls {name}, which isn't run here")

    return function


def tree_builtins() -> dict[str, Any]:
    """The namespace of built-ins for the tree's modules; it lacks what reaches outside."""
    names = {name: value for name, value in vars(builtins).items() if name not in ("copyright", "credits", "help")}
    names.update({name: _refuse(name) for name in REFUSED})
    names.update(
        float=Float, int=Int, isinstance=classes.is_instance, hasattr=has_attribute, getattr=get_attribute, len=length,
        range=ranged, min=_extreme("min"), max=_extreme("max"), sum=summed, print=lambda *a, **k: None,
    )  # fmt: skip
    names.update({
        rewriting.SAME: identity.same, rewriting.AMONG: identity.among, rewriting.TYPE: identity.type_of,
        rewriting.GET: identity.got, rewriting.SUBJECT: identity.subject,
    })  # fmt: skip
    return names
