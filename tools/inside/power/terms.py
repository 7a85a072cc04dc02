"""What a stand-in is worth: a sum of terms, each with the tags of its origin and the factor's exponent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

ROUTED = "routed"
SHARED = "shared"
EMPTY = "empty"
"""Made from a tensor that holds nothing: a batch without tokens."""
MOST = 48
"""Terms of one sum; more are not told apart any longer."""

Term = tuple[frozenset[str], int]


@dataclass(frozen=True)
class Terms:
    """A sum of terms; `why` says what made it impossible to know the sum.

    Attributes:
        terms: each summand's tags and power; none at all is zero, or memory nobody wrote yet.
        why: empty, or the reason why the powers aren't known.
    """

    terms: frozenset[Term] = frozenset()
    why: str = ""

    @property
    def powers(self) -> set[int]:
        """The powers that occur."""
        return {power for _, power in self.terms}

    @property
    def tags(self) -> frozenset[str]:
        """Every tag that occurs."""
        return frozenset().union(*(tags for tags, _ in self.terms))

    @property
    def carries(self) -> bool:
        """Whether it isn't plainly one: some power isn't zero, or unknown."""
        return bool(self.why) or any(power for _, power in self.terms)

    @property
    def matters(self) -> bool:
        """Whether a call that takes it could change a count."""
        return self.carries or bool(self.tags & {ROUTED, EMPTY})

    def __add__(self, other: Terms) -> Terms:
        return _bounded(self.terms | other.terms, self.why or other.why)

    def __mul__(self, other: Terms) -> Terms:
        if len(self.terms) * len(other.terms) > MOST * MOST:
            return unknown(self.why or other.why or "a sum of too many terms")
        product = {(a | b, m + n) for a, m in self.terms for b, n in other.terms}
        return _bounded(product, self.why or other.why)

    def inverse(self) -> Terms:
        """One over it: the sign of the power turns, and a divisor's origin doesn't matter to the quotient."""
        if len(self.powers) > 1:
            return unknown(self.why or "it divides by a sum of different powers of the factor")
        return Terms(frozenset((frozenset(), -power) for power in self.powers or {0}), self.why)

    def power(self, exponent: object) -> Terms:
        """It, raised to an exponent."""
        if not self.carries:
            return Terms(self.terms, self.why)
        if isinstance(exponent, int) and not isinstance(exponent, bool) and len(self.terms) == 1:
            return Terms(frozenset((tags, power * exponent) for tags, power in self.terms), self.why)
        return unknown(self.why or f"a power of the factor is raised to {exponent!r:.40}")

    def tagged(self, tag: str) -> Terms:
        """The same, from this origin too."""
        return Terms(frozenset((tags | {tag}, power) for tags, power in self.terms), self.why)

    def bent(self, what: str) -> Terms:
        """What a function that isn't linear makes of it: the same origins, and no power where there was one."""
        if self.carries:
            return unknown(self.why or f"{what} isn't linear, and gets a value that carries the factor")
        return self

    def plain(self) -> Terms:
        """The same origins with no power at all: what normalising leaves."""
        return Terms(frozenset((tags, 0) for tags in {tags for tags, _ in self.terms}), self.why)


def _bounded(terms: Iterable[Term], why: str) -> Terms:
    found = frozenset(terms)
    return Terms(found, why) if len(found) <= MOST else unknown(why or "a sum of too many terms")


def unknown(why: str) -> Terms:
    """A value whose powers can't be known."""
    return Terms(frozenset({(frozenset(), 0)}), why)


def power_of(exponent: int, *tags: str) -> Terms:
    """A single term."""
    return Terms(frozenset({(frozenset(tags), exponent)}))


ZERO = Terms()
ONE = power_of(0)
FACTOR = power_of(1)
