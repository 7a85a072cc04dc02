"""Whether an unknown value is None: asked where the code asks, and agreeing with all else that a run knows of it."""

from __future__ import annotations

from .context import run
from .thing import ANY, LIB, Thing


def may_be_none(thing: Thing) -> bool:
    """Whether nothing says yet that it isn't: numbers and tensors aren't, nor what a library is made of."""
    if type(thing) is not Thing:
        return False
    return bool(thing._kind == ANY or (thing._kind == LIB and thing._attr == "()"))


def is_none(thing: Thing, likely: bool = False) -> bool:
    """Whether it is None in this world; `likely` is what to try first."""
    name, oracle = thing._name, run().oracle
    if name in run().nones:
        return True
    if not may_be_none(thing) or name in run().present or _compared(name):
        return False
    if oracle.fact(name) is not None:
        return False
    if oracle.truth(f"{name} is None", default=likely):
        run().nones.add(name)
        return True
    run().present.add(name)
    return False


def _compared(name: str) -> bool:
    """Whether an answer already given can't be one about None."""
    bounds = run().bounds.get(name)
    known = run().oracle.known.get(name)
    return bool(bounds and bounds.equal) or (known is not None and known.options[known.answer] == "true")
