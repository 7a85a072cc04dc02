"""Methods that change a tensor's memory: `mul_`, `add_(x, alpha=f)`, `copy_`, `t[…] = v` and their kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import arith
from .context import run
from .storage import Key, key_of
from .tensor import METHODS, joint, scaled_alpha
from .terms import ONE, SHARED, ZERO, Terms, unknown
from .thing import NUMBER, Thing, describe_index, fresh, say, terms_of, view

Method = Callable[..., Any]


def write(target: Thing, terms: Terms, *, add: bool = False) -> None:
    """Change what a tensor holds."""
    target._store.write(terms, target._key, add=add)


def arithmetic(op: str) -> Method:
    """`mul_`, `div_`, `add_`, `sub_`."""

    def method(x: Thing, *args: Any, **kwargs: Any) -> Any:
        other = args[0] if args else kwargs.get("other")
        alpha = kwargs.get("alpha", args[1] if op in ("+", "-") and len(args) > 1 else None)
        if alpha is not None:
            other = scaled_alpha(other, alpha)
        arith.note(op, x, other, "in-place")
        rescale(op, x, other)
        return x

    return method


def rescale(op: str, x: Thing, other: Any) -> None:
    """`x op= other` on memory, the parts of the tensor each."""
    store = x._store
    if x._key is None and store.parts:
        arith.scale_in_place(op, x, other)
    else:
        write(x, arith.combine(op, x, other))


def by_result(name: str) -> Method:
    """`foo_`: what `foo` gives goes into the tensor."""
    base = METHODS[name]

    def method(x: Thing, *args: Any, **kwargs: Any) -> Any:
        write(x, terms_of(base(x, *args, **kwargs)))
        return x

    return method


def copy(x: Thing, source: Any, *args: Any, **kwargs: Any) -> Any:
    """`copy_` and `fill_`."""
    write(x, terms_of(source))
    return x


def accumulate(at: int) -> Method:
    """`index_add_`, `scatter_add_`: the source is added to some of it."""

    def method(x: Thing, *args: Any, **kwargs: Any) -> Any:
        source = kwargs.get("source", kwargs.get("src", args[at] if len(args) > at else None))
        if kwargs.get("alpha") is not None:
            source = scaled_alpha(source, kwargs["alpha"])
        write(x, terms_of(source), add=True)
        return x

    return method


def zero(x: Thing, *args: Any, **kwargs: Any) -> Any:
    """`zero_`."""
    write(x, ZERO)
    return x


def one(x: Thing, *args: Any, **kwargs: Any) -> Any:
    """`uniform_` and other fillers."""
    write(x, ONE)
    return x


def cumulative(name: str) -> Method:
    """`addcmul_`, `addmm_`."""
    base = METHODS[name]

    def method(x: Thing, *args: Any, **kwargs: Any) -> Any:
        write(x, terms_of(base(x, *args, **kwargs)))
        return x

    return method


WRITERS: dict[str, Method] = {
    **{f"{name}_": by_result(name) for name in METHODS if not name.endswith("_") and "new" not in name},
    **{f"{name}_": arithmetic(op) for name, op in (("mul", "*"), ("multiply", "*"), ("div", "/"), ("divide", "/"))},
    **{f"{name}_": arithmetic(op) for name, op in (("add", "+"), ("sub", "-"), ("true_divide", "/"))},
    **dict.fromkeys(("copy_", "fill_", "set_"), copy),
    **dict.fromkeys(("index_add_", "index_copy_", "scatter_", "scatter_add_", "scatter_reduce_"), accumulate(2)),
    "index_put_": accumulate(1),
    "masked_scatter_": accumulate(1),
    "zero_": zero,
    **dict.fromkeys(("uniform_", "normal_", "random_", "exponential_"), one),
    "addcmul_": cumulative("addcmul"),
    "addmm_": cumulative("addmm"),
    "baddbmm_": cumulative("baddbmm"),
    "requires_grad_": lambda x, *args, **kwargs: x,
}
for _view_ in ("squeeze_", "unsqueeze_", "t_"):
    WRITERS.pop(_view_, None)


def index_of(thing: Thing, index: Any) -> Key | str | None:
    """The part of its memory that an index means, seen from the whole memory."""
    key = key_of(index, describe_index)
    if isinstance(key, tuple) and thing._key is not None:
        return ("in", thing._key, key)
    return key


def get_item(thing: Thing, index: Any) -> Any:
    """`thing[index]`: the whole, a part that shares its memory, or a copy."""
    name = f"{say(thing)}[{say(index)}]"
    key = index_of(thing, index)
    if thing._kind == NUMBER:
        return thing._kids.setdefault(f"[{say(index)}]", Thing(name, NUMBER))
    if key is None:
        return view(thing, name)
    if isinstance(key, str):
        return fresh(name, terms_of(thing), thing._kind)
    return view(thing, name, key)


def set_item(thing: Thing, index: Any, value: Any) -> None:
    """`thing[index] = value`."""
    key = index_of(thing, index)
    if isinstance(value, Thing) and value._store is thing._store and value._key in (key, thing._key):
        return
    terms = terms_of(value)
    if key is None:
        write(thing, terms)
    elif isinstance(key, str):
        thing._store.write(terms, thing._key, add=True)
    else:
        part = joint(value) if key[0] != "each" else terms
        thing._store.write(part, key)


def hand_over(buffers: list[Thing], terms: Terms) -> None:
    """A kernel of which nothing is known may have written to these."""
    for one_ in buffers:
        store = one_._store
        store.write(terms, one_._key, add=not store.fresh)


def spoil(things: list[Thing], why: str) -> None:
    """These may hold anything now."""
    for one_ in things:
        one_._store.write(unknown(why), one_._key)


__all__ = ["SHARED", "WRITERS", "get_item", "hand_over", "run", "set_item", "spoil", "write"]
