"""Build the entry's object with stand-ins, run its method, and read off the powers of what comes out."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from . import typed
from .bases import Module as TorchModule
from .calls import reached
from .context import run
from .modules import Modules
from .oracle import StandInError
from .terms import EMPTY, ROUTED, SHARED, ZERO, Terms
from .thing import NUMBER, Thing, terms_of

METHODS = ("forward", "__call__", "apply", "run")


@dataclass
class Count:
    """What a run counted, or why it didn't."""

    count: int | None = None
    unknown: str = ""


def execute(modules: Modules, path: str, symbol: str) -> Count:
    """Run the entry: `function`, `Class.method`, or `Class.first,second` on one object and the same arguments."""
    module = modules.find(modules.name_of(path))
    if module is None:
        raise StandInError(f"{path} isn't a module of the tree")
    modules.registry.imported(module._name)
    head, *rest = symbol.split(".")
    value = getattr(module, head)
    if isinstance(value, type):
        return _run_class(value, module, rest)
    arguments = _arguments(value, module, {})
    return outcome(value(**arguments), arguments)


def _run_class(cls: type, module: Any, rest: list[str]) -> Count:
    instance = typed.instance(cls, cls.__name__)
    names = rest[0].split(",") if rest else [next((n for n in METHODS if n in dir(cls)), "forward")]
    shared: dict[str, Any] = {}
    result: Any = None
    for name in names:
        # What the methods before hand on through the arguments isn't what comes out in the end.
        run().written.clear()
        method = getattr(instance, name)
        arguments = _arguments(method, module, shared)
        shared.update(arguments)
        result = method(**arguments)
    return outcome(result, shared)


def _arguments(function: Any, module: Any, known: dict[str, Any]) -> dict[str, Any]:
    home = run().tree.find(getattr(function, "__module__", "") or "") or module
    parameters = inspect.signature(function).parameters.values()
    return {
        one.name: known[one.name] if one.name in known else typed.argument(one, home)
        for one in parameters
        if one.kind in typed.KEYWORDS
    }


def outcome(result: Any, arguments: dict[str, Any]) -> Count:
    """The count that a result carries; without a result, what was written to the arguments."""
    run().assume("what enters the entry carries no power of the factor yet")
    things = [one for one in reached(result) if one._kind != NUMBER] if result is not None else _written(arguments)
    if not things:
        return Count(unknown="the entry gives nothing back that carries a power")
    total = sum((terms_of(one) for one in things), ZERO)
    return count_of(total)


def _written(arguments: dict[str, Any]) -> list[Thing]:
    latest: dict[tuple[str, str], Any] = {}
    for owner, attr, value in run().written:
        latest[owner._name, attr] = value
    found = [one for value in latest.values() for one in reached(value)]
    inputs = [one for one in arguments.values() if isinstance(one, Thing) and terms_of(one).matters]
    return found + inputs


def count_of(total: Terms) -> Count:
    """How often the factor was applied to the routed part of a sum."""
    if total.why:
        return Count(unknown=total.why)
    if not total.terms:
        return Count(unknown="what comes out was never written")
    if EMPTY in total.tags:
        return Count(unknown="no token is routed in this world")
    rest = {(tags, power) for tags, power in total.terms if SHARED not in tags}
    routed = {power for tags, power in rest if ROUTED in tags}
    if not routed:
        run().assume(
            "nothing that comes out is known to be routed; the part that the factor multiplies is taken for it"
        )
    # What the factor multiplies may be routed though nothing says so; what it doesn't multiply is a residual.
    routed |= {power for _, power in rest if power} or (set() if routed else {power for _, power in rest})
    if len(routed) == 1:
        return Count(count=routed.pop())
    if not routed:
        return Count(unknown="only a shared part comes out")
    return Count(unknown=f"parts of the output carry different powers of the factor: {sorted(routed)}")


__all__ = ["Count", "TorchModule", "execute"]
