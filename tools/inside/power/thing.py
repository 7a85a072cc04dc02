"""The universal stand-in: a number, tensor or object of which nothing is known but its name and its powers."""

from __future__ import annotations

import dis
import enum
import hashlib
import re
import sys
from collections.abc import Iterator
from typing import Any

from .context import fail, run, tree_frame
from .storage import Key, Storage
from .terms import FACTOR, ONE, ROUTED, SHARED, ZERO, Terms

LONGEST_NAME = 140
TENSOR, NUMBER, FACTOR_KIND, LIB, ANY = "tensor", "number", "factor", "lib", "?"

_SHARED = re.compile(r"shared_(?:experts?|mlp|out|output|hidden|states)\w*$")
_BRACKETS = re.compile(r"\([^()]*\)|\['(?=\w+'\])|'\]")
_ROUTED = re.compile(r"(?:topk_weights?|routing_weights?|routed_out\w*|routed_hidden\w*|expert_weights?)$")


class Hooks:
    """What a stand-in does when called or asked for an attribute; filled by `calls`."""

    call: Any = None
    attribute: Any = None
    truth: Any = None


class Thing:
    """A stand-in. Its own state lies in slots with an underscore, so that any other attribute is the program's."""

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_attr",
        "_cls",
        "_key",
        "_kids",
        "_kind",
        "_loop",
        "_name",
        "_of",
        "_store",
    )

    def __init__(self, name: str = "?", kind: str = ANY, store: Storage | None = None, key: Key | None = None) -> None:
        put = object.__setattr__
        put(self, "_name", clipped(name))
        put(self, "_kind", kind)
        put(self, "_store", store or Storage(ONE))
        put(self, "_key", key)
        put(self, "_kids", {})
        put(self, "_of", None)
        put(self, "_attr", "")
        put(self, "_cls", None)
        put(self, "_loop", False)

    def __getattr__(self, attr: str) -> Any:
        if attr.startswith("__") and attr.endswith("__"):
            raise AttributeError(attr)
        demand(self, f"'NoneType' object has no attribute {attr!r}", AttributeError)
        if attr not in self._kids:
            self._kids[attr] = Hooks.attribute(self, attr)
        return self._kids[attr]

    def __setattr__(self, attr: str, value: Any) -> None:
        if hasattr(getattr(type(self), attr, None), "__set__"):
            object.__setattr__(self, attr, value)
            return
        demand(self, f"'NoneType' object has no attribute {attr!r}", AttributeError)
        self._kids[attr] = value
        run().written.append((self, attr, value))
        if self._name in run().bodies:
            setattr(run().bodies[self._name], attr, value)

    def __delattr__(self, attr: str) -> None:
        self._kids.pop(attr, None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What an unknown callable gives."""
        demand(self, "'NoneType' object is not callable")
        return Hooks.call(self, args, kwargs)

    def __repr__(self) -> str:
        return str(self._name)

    def __format__(self, spec: str) -> str:
        return str(self._name)

    def __hash__(self) -> int:
        caller = sys._getframe(1).f_code
        if caller.co_name == "__new__" and caller.co_filename == enum.__file__:
            # An enum then compares the value with each of its members.
            raise TypeError("unhashable")
        return hash(self._name)

    def __bool__(self) -> bool:
        if self._kind == FACTOR_KIND:
            return True
        return bool(Hooks.truth(self))

    def __iter__(self) -> Iterator[Any]:
        demand(self, "'NoneType' object is not iterable")
        return iterate(self)

    def __getitem__(self, index: Any) -> Any:
        demand(self, "'NoneType' object is not subscriptable")
        return Hooks.call(self, (index,), {}, "__getitem__")

    def __setitem__(self, index: Any, value: Any) -> None:
        Hooks.call(self, (index, value), {}, "__setitem__")

    def __delitem__(self, index: Any) -> None:
        return None

    def __contains__(self, item: Any) -> bool:
        return run().oracle.truth(f"{say(item)} in {self._name}", default=False)

    def __enter__(self) -> Thing:
        return self

    def __exit__(self, *about: object) -> None:
        return None

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        from .bases import library_base

        return (library_base(self._name),)

    def __index__(self) -> int:
        if instruction()[0] in ("BINARY_SUBSCR", "BINARY_OP", "STORE_SUBSCR"):
            run().assume(f"{self._name} is 0 or 1 (it picks from a list)")
            return int(run().oracle.ask(f"{self._name} =", ("0", "1")))
        raise fail(f"a whole number is needed, and {self._name} isn't known")

    def __int__(self) -> int:
        raise fail(f"a whole number is needed, and {self._name} isn't known")

    def __float__(self) -> float:
        raise fail(f"a number is needed, and {self._name} isn't known")

    def __next__(self) -> Thing:
        return Thing(f"next({self._name})", ANY, Storage(terms_of(self)))


def demand(thing: Thing, why: str, error: type[Exception] = TypeError) -> None:
    """What the code does with a value shows that it isn't None.

    Raises:
        TypeError, AttributeError: in this world it is.
    """
    if thing._kind != ANY:
        return
    if thing._name in run().nones:
        raise error(why)
    run().present.add(thing._name)


def clipped(name: str) -> str:
    """A name short enough to keep; what is cut off still tells two names apart."""
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - 20]}…#{digest}"


def say(value: object) -> str:
    """A value as part of a stand-in's name."""
    if isinstance(value, Thing):
        return f"({value._name})" if " " in value._name and not value._name.endswith(")") else value._name
    if isinstance(value, type):
        return value.__name__
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    if isinstance(value, str | int | float | bool | None | slice):
        return f"{value!r:.60}" if not isinstance(value, slice) else _say_slice(value)
    if isinstance(value, tuple | list):
        return "[" + ", ".join(say(one) for one in value[:6]) + "]"
    if type(value).__module__ in ("enum",) or hasattr(value, "_member_map_"):
        return str(value)
    return getattr(type(value), "__name__", "?")


def _say_slice(value: slice) -> str:
    return ":".join("" if bound is None else say(bound) for bound in (value.start, value.stop))


def named_terms(name: str) -> Terms:
    """What a thing of unknown origin is taken for by its name, leaving out what is between brackets."""
    before = ""
    while before != name:
        before, name = name, _BRACKETS.sub("", name)
    if _SHARED.search(name):
        return ONE.tagged(SHARED)
    return ONE.tagged(ROUTED) if _ROUTED.search(name) else ONE


def terms_of(value: object) -> Terms:
    """The terms a value carries: numbers are one, zero is zero."""
    if isinstance(value, Thing):
        found: Terms = value._store.read(value._key)
        return found
    if isinstance(value, int | float) and value == 0:
        return ZERO
    return ONE


def the_factor(name: str) -> Thing:
    """The factor itself."""
    return Thing(name, FACTOR_KIND, Storage(FACTOR))


def view(thing: Thing, name: str, key: Key | None = None) -> Thing:
    """Another way to see the same memory, or a part of it."""
    return Thing(name, TENSOR if thing._kind == TENSOR else thing._kind, thing._store, key or thing._key)


def fresh(name: str, terms: Terms, kind: str = TENSOR) -> Thing:
    """A new value."""
    return Thing(name, kind, Storage(terms))


def plain(name: str, kind: str = ANY) -> Thing:
    """A new value that is simply one."""
    return Thing(name, kind)


def describe_index(one: object) -> tuple[str, str] | None:
    """How a stand-in serves as an index; see `storage.key_of`."""
    if not isinstance(one, Thing) or one._kind == TENSOR:
        return None
    if one._loop:
        return ("loop", one._name)
    return ("number", one._name)


def iterate(thing: Thing) -> Iterator[Any]:
    """What a stand-in gives when it is unpacked or looped over; how often a loop runs is asked."""
    count = _unpacked()
    if count is None and ".shape" in thing._name and thing._kind == NUMBER:
        return iter([loop_value(thing, 0)])
    if count is None:
        times = run().oracle.ask(f"len({thing._name})", ("1", "2", "0"))
        return iter([loop_value(thing, number) for number in range(int(times))])
    return iter([Hooks.call(thing, (number,), {}, "__getitem__") for number in range(count)])


def loop_value(thing: Thing, number: int) -> Thing:
    """The value of one round of a loop over something unknown; one round stands for its share of the whole."""
    run().loops += 1
    if thing._kind == TENSOR:
        return view(thing, f"{thing._name}[{number}]", ("each", f"{thing._name}#{number}"))
    value = Thing(f"{thing._name}[{number}]", thing._kind, Storage(terms_of(thing)))
    object.__setattr__(value, "_loop", True)
    return value


def instruction() -> tuple[str, int]:
    """Name and argument of the instruction of the tree that runs now."""
    frame = tree_frame()
    if frame is None or frame.f_lasti < 0:
        return "", 0
    code = frame.f_code.co_code
    return dis.opname[code[frame.f_lasti]], code[frame.f_lasti + 1]


def discarded() -> bool:
    """Whether the tree throws away what the call that runs now gives back: then it was made for what it writes."""
    frame = tree_frame()
    if frame is None:
        return False
    code, at = frame.f_code.co_code, frame.f_lasti + 2
    while at < len(code) and dis.opname[code[at]] == "CACHE":
        at += 2
    return at < len(code) and dis.opname[code[at]] == "POP_TOP"


def _unpacked() -> int | None:
    """How many values the running instruction of the tree unpacks; None if it doesn't unpack."""
    name, argument = instruction()
    if name == "UNPACK_SEQUENCE":
        return argument
    if name == "UNPACK_EX":
        return argument + 1
    return None
