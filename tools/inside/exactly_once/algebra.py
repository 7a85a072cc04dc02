"""Arithmetic on powers of the factor: what products, sums and quotients of tracked values carry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .values import Const, Murky, Opaque, Power, Tensor, Term, tensor
from .wording import text_of

Site = Callable[[str], int]
"""Gives the index of the place that applies the factor; asked only when it does. Takes the site's kind."""

SHARED = Term(False, 0)
FUSED = "fused shared expert"
"""The part of a routed tensor that is the shared expert's; what becomes of it isn't counted."""


def is_number(value: Any) -> bool:
    """Whether a plain value is known to be a single number."""
    if isinstance(value, Const):
        return value.kind in ("int", "float", "bool")
    return isinstance(value, Opaque) and value.number


def scaled(value: Tensor, k: int, site: int) -> Tensor:
    """The tensor with the factor applied `k` more times at a site."""
    return Tensor(frozenset(Term(t.routed, t.k + k, (*t.sites, site), t.part) for t in value.terms))


def multiply(a: Any, b: Any, site: Site, kind: str = "multiply", text: str = "") -> Any:  # noqa: C901 - one branch a kind
    """`a * b`."""
    for value in (a, b):
        if isinstance(value, Murky):
            return value
    if isinstance(b, Power) and not isinstance(a, Power):
        a, b = b, a
    if isinstance(a, Power):
        if isinstance(b, Power):
            return Power(a.k + b.k) if a.k + b.k else Opaque("1.0", number=True)
        if isinstance(b, Tensor):
            return scaled(b, a.k, site(kind if a.k > 0 else "reciprocal"))
        if is_number(b):
            return Opaque("0") if isinstance(b, Const) and b.value == 0 else a
        # Where it comes from isn't known, so it isn't called routed.
        return tensor(Term(False, a.k, (site(kind if a.k > 0 else "reciprocal"),)))
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return Tensor(
            frozenset(
                Term(
                    (x.routed or y.routed) and not (x.part or y.part), x.k + y.k, (*x.sites, *y.sites), x.part or y.part
                )
                for x in a.terms
                for y in b.terms
            )
        )
    if isinstance(a, Tensor):
        return a
    if isinstance(b, Tensor):
        return b
    return Opaque(text or f"{text_of(a)} * {text_of(b)}", number=is_number(a) and is_number(b))


def divide(a: Any, b: Any, site: Site, text: str = "") -> Any:
    """`a / b`; a tensor divided by another's sum loses that one's powers."""
    for value in (a, b):
        if isinstance(value, Murky):
            return value
    if isinstance(b, Power):
        return multiply(a, Power(-b.k), site, text=text)
    if isinstance(b, Tensor):
        powers = {t.k for t in b.terms if t.routed} or {t.k for t in b.terms if t.k}
        if len(powers) != 1:
            return Murky("divided by a sum of parts that carry the factor differently")
        k = powers.pop()
        if k == 0:
            return a
        if isinstance(a, Tensor):
            return Tensor(frozenset(Term(t.routed, t.k - k, (*t.sites, site("renormalised")), t.part) for t in a.terms))
        return tensor(Term(False, -k, (site("reciprocal"),)))
    if isinstance(a, Power | Tensor):
        return a
    return Opaque(text or f"{text_of(a)} / {text_of(b)}", number=is_number(a) and is_number(b))


def add(a: Any, b: Any, text: str = "") -> Any:
    """`a + b` or `a - b`."""
    for value in (a, b):
        if isinstance(value, Murky):
            return value
    if isinstance(a, Power) or isinstance(b, Power):
        if isinstance(a, Power) and isinstance(b, Power) and a.k == b.k:
            return a
        return Murky("something is added to the factor itself")
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return Tensor(a.terms | b.terms)
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        known, other = (a, b) if isinstance(a, Tensor) else (b, a)
        assert isinstance(known, Tensor)
        # An epsilon or an offset says nothing about the parts of a sum.
        return known if is_number(other) else Tensor(known.terms | {SHARED})
    return Opaque(text or f"{text_of(a)} + {text_of(b)}", number=is_number(a) and is_number(b))


def union(values: list[Any]) -> Any:
    """What a container of parts carries: `torch.cat`, `torch.where`, a list."""
    found: frozenset[Term] = frozenset()
    for value in values:
        if isinstance(value, Murky):
            return value
        if isinstance(value, Tensor):
            found |= value.terms
        elif isinstance(value, Power):
            return Murky("the factor is one element of a tensor")
        else:
            found |= {SHARED}
    return Tensor(found) if any(t.routed or t.k for t in found) else None


def store(base: Any, value: Any, is_reciprocal: Callable[[int], bool]) -> Any:
    """A tensor of which a part was overwritten.

    Where the new part carries fewer powers than the rest, it is the fused shared expert's weight, divided by the
    factor so that a later multiplication cancels.
    """
    if isinstance(base, Murky) or isinstance(value, Murky):
        return base if isinstance(base, Murky) else value
    if isinstance(value, Power):
        # The factor written into weights: a reciprocal is the fused shared expert's, which a later multiply cancels.
        written = Term(False, value.k, (), FUSED if value.k < 0 else "")
        return Tensor((base.terms if isinstance(base, Tensor) else frozenset()) | {written})
    if not isinstance(value, Tensor):
        return base
    if not isinstance(base, Tensor):
        if all(t.k < 0 and any(map(is_reciprocal, t.sites)) for t in value.terms):
            return Tensor(frozenset(Term(False, t.k, t.sites, FUSED) for t in value.terms) | {Term(True, 0)})
        return value
    lowest = min((t.k for t in base.terms if t.routed), default=0)
    fresh = frozenset(
        Term(False, t.k, t.sites, FUSED) if t.k < lowest and any(map(is_reciprocal, t.sites)) else t
        for t in value.terms
    )
    return Tensor(base.terms | fresh)


def nonlinear(value: Any, name: str) -> Any:
    """What `name(value)` carries where the function isn't linear."""
    if isinstance(value, Tensor) and any(t.k for t in value.terms):
        return Murky(f"{name} isn't linear, what it does to the factor can't be counted")
    return value
