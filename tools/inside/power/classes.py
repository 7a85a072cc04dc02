"""What is known and asked of the classes of unknown objects: `isinstance`, and `type(x) is C`."""

from __future__ import annotations

import builtins
import types
from typing import Any

from . import arith, bodies, typed
from .bases import Dtype
from .context import run
from .environment import Variable
from .thing import ANY, FACTOR_KIND, NUMBER, TENSOR, Thing, say

REAL_OF: dict[int, type] = {}
"""By the identity of a stand-in for a built-in class, the class; filled by `builtin_names`."""


def is_instance(value: Any, classes: Any) -> bool:
    """`isinstance`: by class where it is known, else a choice."""
    flat = _flat(classes)
    if not isinstance(value, Thing):
        return _real_instance(value, flat)
    if type(value) is not Thing and any(isinstance(one, type) and builtins.isinstance(value, one) for one in flat):
        return True
    if value._name in run().nones:
        return type(None) in flat
    body = bodies.body(value) if any(_of_tree(one) for one in flat) else None
    if body is not None:
        return _real_instance(body, flat)
    known = [_thing_instance(value, one) for one in flat]
    if True in known:
        return True
    open_ = [one for one, answer in zip(flat, known, strict=True) if answer is None]
    return any(_ask(value, one) for one in open_)


def _ask(value: Thing, cls: Any) -> bool:
    yes = run().oracle.truth(f"isinstance({say(value)}, {class_name(cls)})", default=False)
    _learn(value, cls, False, yes)
    return yes


def is_exactly(value: Thing, cls: Any) -> bool:
    """`type(value) is cls`, in agreement with `isinstance`."""
    cls = REAL_OF.get(id(cls), cls)
    if value._name in run().nones:
        return cls is type(None)
    if not isinstance(cls, type | Thing):
        return False
    known = _thing_instance(value, cls)
    if known is False or (value._kind == FACTOR_KIND and known is not None):
        return bool(known)
    if known and isinstance(cls, type) and (not _of_tree(cls) or typed.final(cls)):
        return True
    if isinstance(cls, type) and not bodies.possible(value._name, cls):
        return False
    name = f"type({say(value)}) is {class_name(cls)}"
    yes = run().oracle.truth(name, default=known is True)
    _learn(value, cls, True, yes)
    return yes


def _learn(value: Thing, cls: Any, exactly: bool, yes: bool) -> None:
    """Keep an answer; a value of a class of the tree has its methods from then on."""
    if yes:
        run().present.add(value._name)
    if not isinstance(cls, type):
        return
    run().classes.setdefault(value._name, []).append((cls, exactly, yes))
    wider = value._cls is None or (isinstance(value._cls, type) and issubclass(cls, value._cls))
    if yes and wider and _of_tree(cls):
        object.__setattr__(value, "_cls", cls)
        for attr in [one for one, child in value._kids.items() if _read(child, value)]:
            value._kids.pop(attr)


def _read(child: Any, owner: Thing) -> bool:
    """Whether an attribute was made when it was read, before the class was known, and is nothing but its name."""
    return isinstance(child, Thing) and child._of is owner and not child._kids


def _of_tree(cls: Any) -> bool:
    return isinstance(cls, type) and typed.module_of(cls) is not None


def _flat(classes: Any) -> list[Any]:
    if isinstance(classes, tuple):
        return [one for inner in classes for one in _flat(inner)]
    if isinstance(classes, types.UnionType):
        return list(classes.__args__)
    return [REAL_OF.get(id(classes), classes)]


def _real_instance(value: Any, flat: list[Any]) -> bool:
    for one in flat:
        if isinstance(one, type) and builtins.isinstance(value, one):
            return True
        if isinstance(one, Thing):
            names = {base.__dict__.get("__library__") for base in type(value).__mro__}
            if one._name in names or (isinstance(value, Dtype) and one._name == "torch.dtype"):
                return True
    return False


def _thing_instance(value: Thing, cls: Any) -> bool | None:
    """Whether a stand-in is an instance of a class, as far as it is known."""
    kind = value._kind
    if isinstance(value, Variable):
        return cls is str
    if isinstance(value, arith.Comparison | arith.Negated):
        return cls in (bool, int)
    if cls in (float, int, complex, bool):
        return (cls is float) if kind == FACTOR_KIND else None if kind in (NUMBER, ANY) else False
    if class_name(cls).rpartition(".")[2] in ("Tensor", "Parameter"):
        return True if kind == TENSOR else False if kind in (NUMBER, FACTOR_KIND) else None
    if cls in (str, bytes, list, tuple, dict, set, type(None)):
        return None if kind == ANY and cls is not type(None) else False
    if not isinstance(cls, type):
        return False if kind in (NUMBER, FACTOR_KIND) else None
    answered = _answered(value._name, cls)
    if answered is not None:
        return answered
    if isinstance(value._cls, type):
        return True if issubclass(value._cls, cls) else (None if issubclass(cls, value._cls) else False)
    return False if kind in (NUMBER, FACTOR_KIND) else None


def _answered(name: str, cls: type) -> bool | None:
    """What earlier answers of this run say."""
    for asked, exactly, yes in run().classes.get(name, ()):
        if yes and (exactly or issubclass(asked, cls)):
            return issubclass(asked, cls)
        if not yes and not exactly and issubclass(cls, asked):
            return False
    return None


def class_name(cls: Any) -> str:
    """A class as the code names it."""
    return cls._name if isinstance(cls, Thing) else getattr(cls, "__name__", str(cls))


__all__ = ["REAL_OF", "class_name", "is_exactly", "is_instance"]
