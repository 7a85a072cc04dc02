"""The standard library as the tree's code sees it: harmless modules are real, the rest stand-ins."""

from __future__ import annotations

import importlib
import math
import types
from typing import Any

from .context import run
from .environment import Environment
from .storage import Storage
from .thing import LIB, NUMBER, Thing, say, terms_of

REAL = frozenset(
    """__future__ abc bisect collections contextlib copy dataclasses enum fractions functools heapq itertools json
    numbers operator re string textwrap types typing types weakref inspect decimal statistics keyword""".split()
)
_MADE: dict[str, Any] = {}


def standard_module(name: str) -> Any:
    """The real module, one made for the purpose, or None for what isn't known to be harmless."""
    first = name.partition(".")[0]
    if name in (
        "math",
        "os",
        "os.path",
        "sys",
        "logging",
        "time",
        "warnings",
        "importlib",
        "importlib.util",
        "importlib.metadata",
    ):
        return _MADE.setdefault(name, _make(name))
    return importlib.import_module(name) if first in REAL else None


class Standin(types.ModuleType):
    """A module of which some names are given and any other is a stand-in."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = Thing(f"{self.__name__}.{name}", LIB)
        setattr(self, name, value)
        return value


def _make(name: str) -> Standin:
    module = Standin(name)
    if name == "math":
        vars(module).update({one: _wrapped(one) for one in dir(math) if not one.startswith("_")})
    elif name == "os":
        environment = Environment()
        vars(module).update(environ=environment, getenv=environment.get, path=standard_module("os.path"), sep="/")
    elif name == "os.path":
        import posixpath

        vars(module).update({one: getattr(posixpath, one) for one in ("join", "basename", "dirname", "splitext")})
        vars(module).update(exists=lambda path: False, isfile=lambda path: False, isdir=lambda path: False)
    elif name == "sys":
        vars(module).update(version_info=(3, 11, 0, "final", 0), platform="linux", maxsize=2**63 - 1, modules={})
    elif name == "logging":
        vars(module).update(DEBUG=10, INFO=20, WARNING=30, ERROR=40, getLogger=lambda *a: Thing("logger", LIB))
    elif name == "importlib":
        vars(module).update(util=standard_module("importlib.util"), metadata=standard_module("importlib.metadata"))
    elif name == "importlib.metadata":
        vars(module).update(entry_points=no_plugins, version=lambda name: f"version of {name}")
    elif name == "warnings":
        vars(module).update(warn=lambda *a, **k: None, filterwarnings=lambda *a, **k: None)
    return module


def no_plugins(*args: Any, **kwargs: Any) -> list[Any]:
    """`entry_points`: whatever is installed beside the tree isn't looked at."""
    run().assume("no plugins are installed")
    return []


def _wrapped(name: str) -> Any:
    real = getattr(math, name)
    if not callable(real):
        return real

    def function(*args: Any) -> Any:
        if not any(isinstance(one, Thing) for one in args):
            return real(*args)
        terms = terms_of(args[0])
        terms = terms.power(0.5) if name == "sqrt" else terms if name in ("fabs",) else terms.bent(f"math.{name}")
        for one in args[1:]:
            terms = terms + terms_of(one).bent(f"math.{name}") if terms_of(one).carries else terms
        return Thing(f"math.{name}({', '.join(map(say, args))})", NUMBER, Storage(terms))

    return function
