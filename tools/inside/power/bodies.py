"""Real objects for unknown ones whose classes the tree has: which class it is, is asked, and its own code runs."""

from __future__ import annotations

import inspect
import re
from abc import ABC
from typing import Any

from . import typed
from .context import run
from .oracle import Impossible, StandInError
from .thing import Thing, say

MOST = 12
"""Classes that are tried; with more, what the object does isn't known."""

_TESTS = re.compile(r"(?:^|/)(?:tests?/|test_[^/]*$|conftest\.py$)")


def fitting(cls: type) -> list[type] | None:
    """The classes of the tree that an object annotated with `cls` can have; None if too many or one fails."""
    known: dict[type, list[type] | None] = run().fitting
    if cls not in known:
        known[cls] = None  # While they load, nobody asks.
        known[cls] = _fitting(cls)
    return known[cls]


def _fitting(cls: type) -> list[type] | None:
    if typed.module_of(cls) is None:
        return []
    names = _below(cls.__name__)
    if len(names) > 2 * MOST:
        return None
    found = [cls]
    for name, path in names:
        home = run().tree.find(run().tree.name_of(path))
        try:
            one = getattr(home, name)
        except Exception:  # noqa: BLE001 - whatever a module of the tree raises, its class can't be tried
            return None
        if isinstance(one, type) and issubclass(one, cls) and one not in found:
            found.append(one)
    concrete = [one for one in found if not inspect.isabstract(one) and ABC not in one.__bases__]
    return concrete if len(concrete) <= MOST else None


def _below(name: str) -> list[tuple[str, str]]:
    """Classes that derive from one of this name, directly or not, with their files; by what the text says."""
    derived: dict[str, list[tuple[str, str]]] = run().tree.below()
    found: dict[tuple[str, str], None] = {}
    queue = [name]
    while queue:
        for one in derived.get(queue.pop(), ()):
            if one not in found and not _TESTS.search(one[1]):
                found[one] = None
                queue.append(one[0])
    return list(found)


def undecided(thing: Thing, attr: str) -> str:
    """Why a method of the tree can't be run though the tree has it; empty where no class of the tree is known."""
    cls = thing._cls
    if not isinstance(cls, type) or typed.module_of(cls) is None:
        return ""
    if fitting(cls) is None:
        return "it may be of many classes of the tree; a fact type(…) can say which"
    own = thing._name in run().exact or typed.final(cls)
    defined = own and fitting(cls) and inspect.isfunction(inspect.getattr_static(cls, attr, None))
    return f"{cls.__name__} can't be made from stand-ins" if defined else ""


def body(thing: Thing) -> Any:
    """The real object that stands for an unknown one in this world; None where its class can't be told."""
    name, cls = thing._name, thing._cls
    if name in run().bodies:
        return run().bodies[name]
    if not isinstance(cls, type) or name in run().nones or name in run().exact:
        return None
    options = {_spelled(one): one for one in fitting(cls) or () if possible(name, one)}
    if not options:
        return None
    chosen = options[next(iter(options))]
    if len(options) > 1:
        chosen = options[run().oracle.ask(f"type({say(thing)})", list(options))]
    else:
        run().assume(f"{name} is a {chosen.__name__}: the tree has no other class for it")
    run().present.add(name)
    run().classes.setdefault(name, []).append((chosen, True, True))
    made = _built(chosen, name)
    if made is None:
        # Its methods run on the unknown object itself, whose attributes are asked.
        object.__setattr__(thing, "_cls", chosen)
        run().exact.add(name)
        return None
    run().bodies[name] = made
    for owner, attr, value in list(run().written):
        if owner is thing:
            setattr(made, attr, value)
    return made


def _spelled(cls: type) -> str:
    return cls.__name__


def _built(cls: type, name: str) -> Any:
    """An object of this class; None where its constructor doesn't run on stand-ins."""
    trouble = run().trouble
    try:
        return typed.instance(cls, name)
    except Impossible:
        raise
    except (Exception, StandInError):  # noqa: BLE001 - whatever it raises, such an object can't be made here
        run().trouble = trouble
        return None


def possible(name: str, cls: type) -> bool:
    """Whether what was answered of an object's class leaves this one."""
    for asked, exactly, yes in run().classes.get(name, ()):
        if (cls is asked if exactly else issubclass(cls, asked)) is not yes:
            return False
    return True


def attribute(thing: Thing, attr: str) -> tuple[bool, Any]:
    """`thing.attr` where the classes that it can have define it."""
    cls = thing._cls
    if thing._name in run().bodies:
        return True, getattr(run().bodies[thing._name], attr)
    if not isinstance(cls, type) or not any(_defines(one, attr) for one in fitting(cls) or ()):
        return False, None
    found = body(thing)
    return (False, None) if found is None else (True, getattr(found, attr))


def _defines(cls: type, attr: str) -> bool:
    for base in cls.__mro__:
        module = typed.module_of(base)
        if attr in vars(base) and module is not None:
            return attr not in vars(base).get("__annotations__", {})
    return False


def returned(thing: Thing, attr: str, value: Any) -> Any:
    """What a method of an unknown object gave, with the class that its annotation names."""
    cls = thing._cls
    static = inspect.getattr_static(cls, attr, None) if isinstance(cls, type) else None
    if isinstance(value, Thing) and type(value) is Thing and value._cls is None and inspect.isfunction(static):
        home = run().tree.find(static.__module__)
        typed.classify(value, str(static.__annotations__.get("return", "")), home)
    return value
