"""What happens when the code calls a stand-in, asks it for an attribute, or puts something between brackets."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from typing import Any

from . import bodies, typed
from .arith import is_factor
from .bases import SPECIAL, Kernel
from .context import MARK, run
from .storage import Storage
from .tensor import FUNCTIONS, METHODS, ONE_OPERAND
from .terms import ONE, Terms, unknown
from .thing import (
    ANY,
    FACTOR_KIND,
    LIB,
    NUMBER,
    TENSOR,
    Hooks,
    Thing,
    discarded,
    fresh,
    instruction,
    named_terms,
    plain,
    say,
    terms_of,
    the_factor,
    view,
)
from .writing import WRITERS, get_item, hand_over, set_item, spoil

VIEW_ATTRIBUTES = frozenset({"data", "T", "mT", "H", "real"})
NUMBERS = frozenset("shape dtype device ndim itemsize nbytes is_cuda is_cpu layout requires_grad grad".split())
LOOKUPS = frozenset({"get", "pop", "setdefault", "__getitem__", "getattr"})
HARMLESS = ("logging.", "warnings.", "torch.library.", "torch._library.", "torch.compiler.", "torch._dynamo.")
DEPTH = 6
MOST_REACHED = 5_000
"""How deep in lists, dicts and objects an argument is searched for the factor."""


def attribute(thing: Thing, attr: str) -> Any:
    """`thing.attr`, asked for the first time."""
    name = f"{say(thing)}.{attr}"
    if attr == run().factor and thing._kind not in (LIB, TENSOR):
        return the_factor(name)
    if thing._kind == LIB:
        return library(name, thing, attr)
    if thing._cls is not None:
        real = thing._name in run().bodies or not typed.final(thing._cls)
        found, value = bodies.attribute(thing, attr) if real else (False, None)
        # Asking for its body may have told its class.
        found, value = (found, value) if found else typed.attribute(thing, attr)
        if found:
            return value
    if thing._kind == FACTOR_KIND and attr == "real":
        return thing
    if attr in NUMBERS:
        return Thing(name, NUMBER)
    if attr in VIEW_ATTRIBUTES:
        return view(thing, name)
    terms = terms_of(thing)
    child = Thing(name, ANY, Storage(terms if terms.matters else named_terms(name)))
    return bound(child, thing, attr)


def library(name: str, thing: Thing, attr: str) -> Any:
    """An attribute of something that isn't in the tree."""
    if name in SPECIAL:
        value = SPECIAL[name]
        return value() if isinstance(value, types.FunctionType) and value.__name__ == "<lambda>" else value
    return bound(Thing(name, LIB), thing, attr)


def bound(child: Thing, owner: Thing, attr: str) -> Thing:
    """Remember whose attribute it is, in case it gets called."""
    object.__setattr__(child, "_of", owner)
    object.__setattr__(child, "_attr", attr)
    return child


def call(thing: Thing, args: tuple[Any, ...], kwargs: dict[str, Any], method: str = "") -> Any:
    """`thing(…)`, `thing[…]` or `thing[…] = …`."""
    if method == "__setitem__":
        return _put(thing, args)
    if method == "__getitem__":
        return _look_up(thing, args, item=True) if isinstance(args[0], str) else _item(thing, args[0])
    if isinstance(thing, Kernel):
        return call_kernel(thing, args, kwargs)
    if thing._cls is not None:
        found, real = bodies.attribute(thing, "__call__")
        if found:
            return real(*args, **kwargs)
    decorated = _decorated(thing, args, kwargs)
    if decorated is not None:
        return decorated
    owner, attr = thing._of, thing._attr
    if attr == "impl" and len(args) > 1 and isinstance(args[0], str) and callable(args[1]):
        return run().ops.setdefault(args[0].rpartition("::")[2], args[1])
    sink = run().sinks.find(thing._name, args, kwargs)
    if sink is not None:
        return sink.call(args, kwargs)
    if owner is not None and thing._kind != LIB:
        return call_method(thing, owner, attr, args, kwargs)
    return call_library(thing, attr, args, kwargs)


def call_method(thing: Thing, owner: Thing, attr: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A method of an unknown object."""
    if attr in LOOKUPS and args and isinstance(args[0], str):
        return _look_up(owner, args)
    if attr == "keys" and instruction()[0] in ("DICT_MERGE", "DICT_UPDATE", "CALL_FUNCTION_EX"):
        run().unseen(f"** of {owner._name}, whose keys aren't known: taken for empty")
        return []
    if attr in WRITERS:
        return WRITERS[attr](owner, *args, **kwargs)
    if attr in METHODS and not _of_no_tensor(owner, attr, args):
        return METHODS[attr](owner, *args, **kwargs)
    return bodies.returned(owner, attr, unknown_call(thing._name, args, kwargs, owner))


def _of_no_tensor(owner: Thing, attr: str, args: tuple[Any, ...]) -> bool:
    """Whether a method with a tensor's name is more likely some other object's, handed what carries something."""
    handed = [one for one in args if isinstance(one, Thing) and terms_of(one).matters]
    if owner._kind == TENSOR or not handed:
        return False
    return attr in ONE_OPERAND or owner._cls is not None or len(handed) > 1


def call_library(thing: Thing, attr: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function that isn't in the tree."""
    name = thing._name.removesuffix(".default")
    parts = name.split(".")
    if parts[:2] == ["torch", "ops"]:
        operator = run().ops.get(parts[-1]) or run().tree.operator(parts[-1])
        if operator is not None:
            return operator(*args, **kwargs)
    if parts[0] in ("torch", "F") and parts[1:2] != ["ops"] and attr in FUNCTIONS and (args or kwargs):
        if "input" in kwargs:
            args, kwargs = (kwargs["input"], *args), {k: v for k, v in kwargs.items() if k != "input"}
        return FUNCTIONS[attr](*args, **kwargs)
    if parts[0] == "torch" and attr in WRITERS and args and isinstance(args[0], Thing):
        return WRITERS[attr](*args, **kwargs)
    return unknown_call(name, args, kwargs)


def call_kernel(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A kernel written in Python that is compiled: its body isn't run."""
    sink = run().sinks.find(kernel._name, args, kwargs)
    return sink.call(args, kwargs) if sink is not None else unknown_call(kernel._name, args, kwargs)


def unknown_call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], owner: Thing | None = None) -> Any:
    """A callable of which nothing is known: linear in what it takes, unless it takes the factor itself."""
    things = [*([owner] if owner is not None else []), *reached((args, kwargs))]
    told = f"{say_call(name, args)}"
    tensors = [one for one in things if one._kind in (TENSOR, ANY) and not one._store.weight and one._cls is None]
    why = _unknowable(name, things, args, kwargs) or _not_run(name, owner, (args, kwargs))
    if name.startswith(HARMLESS):
        return _plain_result(name, told, owner)
    if why:
        if any(is_factor(one) for one in (*args, *kwargs.values())):
            run().site("kernel")
        handed = {id(one) for one in _handed(args, kwargs)}
        spoil([one for one in tensors if id(one) in handed and not _INDICES.search(one._name)], why)
        return fresh(told, unknown(why), ANY)
    carriers = [one for one in things if terms_of(one).matters and one._kind not in (NUMBER, FACTOR_KIND)]
    if not carriers:
        hand_over([one for one in tensors if one._store.allocated], ONE)
        return _plain_result(name, told, owner)
    terms = _product(name, carriers)
    run().assume(f"{name} is linear in what it is handed (no entry in the sinks data)")
    written = [one for one in tensors if one._kind == TENSOR and not _INDICES.search(one._name)]
    if not discarded():
        run().assume(f"{name} gives its result back and writes to nothing but fresh memory")
        written = [one for one in written if one._store.fresh]
    hand_over(written, terms)
    return fresh(told, terms, ANY)


def _handed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Any]:
    """Arguments, and what lists and tuples among them hold."""
    for one in (*args, *kwargs.values()):
        yield from one if isinstance(one, list | tuple) else (one,)


_INDICES = re.compile(r"(?:ids|indices|idx|index|offsets|counts?|num_tokens\w*|locs?)(?:$|[.\[@(])")
"""Names of tensors that say where things are; no kernel returns its result in them."""


def _plain_result(name: str, told: str, owner: Thing | None) -> Thing:
    result = Thing(told, LIB if owner is None and told.endswith("()") and "." in name else ANY)
    result._store.write(named_terms(told))
    object.__setattr__(result, "_attr", "()")
    object.__setattr__(result, "_cls", None)
    return result


def _product(name: str, carriers: list[Thing]) -> Terms:
    """What a kernel makes of several values that carry something; the same value twice is one."""
    distinct = {terms_of(one): None for one in carriers}
    carrying = [terms for terms in distinct if terms.carries]
    if len(carrying) > 1:
        return unknown(next((t.why for t in carrying if t.why), f"{name} takes several values that carry the factor"))
    total = ONE
    for terms in distinct:
        total = total * terms
    return total


def _unknowable(name: str, things: list[Thing], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Why the result of an unknown callable can't be known; empty if it takes nothing that says so."""
    if name.startswith(HARMLESS) or "logger" in name:
        return ""
    if any(is_factor(one) for one in things):
        return f"{name} takes the factor; what it does with it isn't known"
    functions = [one for one in (*args, *kwargs.values()) if isinstance(one, types.FunctionType | types.MethodType)]
    if any(_mentions(one, run().factor) for one in functions):
        return f"{name} takes a function that names the factor; whether it calls it isn't known"
    for one in functions:
        run().unseen(f"{name} takes the function {one.__name__}; whether it calls it isn't known")
    return ""


def _not_run(name: str, owner: Thing | None, given: Any) -> str:
    """Why a method that the tree has isn't run; empty if it is handed no data."""
    why = bodies.undecided(owner, name.rpartition(".")[2]) if owner is not None else ""
    data = why and any(one._kind in (TENSOR, ANY) for one in reached(given))
    return f"{name} isn't run: {why}" if data else ""


def _mentions(function: Any, name: str) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and name in (*code.co_names, *code.co_freevars, *code.co_varnames)


def reached(value: Any, depth: int = 0, seen: dict[int, Any] | None = None) -> Iterator[Thing]:
    """Every stand-in in a value: in lists, tuples, dicts and the attributes of the tree's objects."""
    seen = {} if seen is None else seen
    if id(value) in seen or len(seen) > MOST_REACHED:
        return
    seen[id(value)] = value
    if isinstance(value, Thing):
        yield value
        yield from reached(run().bodies.get(value._name), depth + 1, seen)
        yield from (one for one in value._kids.values() if isinstance(one, Thing) and is_factor(one))
    elif depth < DEPTH:
        for one in _inner(value):
            yield from reached(one, depth + 1, seen)


def _inner(value: Any) -> list[Any]:
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    held = getattr(value, "__dict__", None)
    if isinstance(held, dict) and not isinstance(value, type | types.ModuleType):
        return list(held.values())
    return []


def say_call(name: str, args: tuple[Any, ...]) -> str:
    """A call as a name."""
    return f"{name}({', '.join(say(one) for one in args[:6])})"


def _decorated(thing: Thing, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a decorator from a library makes of a function or class: the same."""
    if len(args) != 1 or kwargs or not isinstance(args[0], types.FunctionType | type | Kernel | classmethod | property):
        return None
    if thing._kind != LIB and thing._attr != "()":
        return None
    function, name = args[0], thing._name
    if name.startswith(("triton.jit", "triton.runtime.jit")) and isinstance(function, types.FunctionType):
        return Kernel(function)
    if name.startswith("torch.library") and "fake" not in name and isinstance(function, types.FunctionType):
        run().ops.setdefault(function.__name__, function)
    return function


def _look_up(thing: Thing, args: tuple[Any, ...], *, item: bool = False) -> Any:
    """`thing["key"]`, `thing.get("key", default)`."""
    key = args[0]
    if key in thing._kids:
        return thing._kids[key]
    if key == run().factor:
        return thing._kids.setdefault(key, the_factor(f"{say(thing)}[{key!r}]"))
    return thing._kids.setdefault(
        key, attribute(thing, key) if key.isidentifier() else plain(f"{thing._name}[{key!r}]")
    )


def _item(thing: Thing, index: Any) -> Any:
    if thing._kind == LIB and thing._attr != "()":
        return thing
    try:
        cached = (
            thing._kids.get(f"[{say(index)}]") if thing._kind in (ANY, LIB) and not terms_of(thing).matters else None
        )
    except TypeError:
        cached = None
    return cached if cached is not None else get_item(thing, index)


def _put(thing: Thing, args: tuple[Any, ...]) -> None:
    index, value = args
    if isinstance(index, str):
        thing._kids[index] = value
        run().written.append((thing, index, value))
        return
    set_item(thing, index, value)


def of_tree(function: Any) -> bool:
    """Whether a function's code is the tree's."""
    code = getattr(function, "__code__", None)
    return code is not None and code.co_filename.startswith(MARK)


Hooks.call = staticmethod(call)
Hooks.attribute = staticmethod(attribute)

__all__ = ["TENSOR", "of_tree", "reached", "unknown_call"]
