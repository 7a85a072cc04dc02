"""Memory behind tensors: views of one tensor share it, and parts of it may hold different powers."""

from __future__ import annotations

from .terms import ZERO, Terms

Key = tuple[object, ...]


class Storage:
    """What one allocation holds: `rest`, except where a part has been written on its own.

    Attributes:
        fresh: nobody wrote to it since it was allocated.
        weight: it holds parameters, which nothing writes once they are loaded.
        origin: the memory that this may be a copy of, or the same as; which isn't known.
        allocated: the program allocated it, so that a kernel may be handed it to write to.
    """

    def __init__(self, terms: Terms, allocated: bool = False) -> None:
        self.rest = terms
        self.parts: dict[Key, Terms] = {}
        self.allocated = allocated
        self.fresh = allocated
        self.weight = False
        self.origin: tuple[Storage, Key | None] | None = None

    def read(self, key: Key | None = None) -> Terms:
        """What a part holds; the whole without a key."""
        if key is not None and key in self.parts:
            return self.parts[key]
        if key is not None and self.parts and all(disjoint(key, other) for other in self.parts):
            return self.rest
        return sum(self.parts.values(), ZERO if self._covered() else self.rest)

    def write(self, terms: Terms, key: Key | None = None, *, add: bool = False) -> None:
        """Put terms into a part; `add` keeps what may still be there. What this may be a copy of is left in doubt."""
        self.fresh = False
        if self.origin is not None and terms != self.read(key):
            self.origin[0].write(terms, self.origin[1], add=True)
        if key is None:
            self.rest = self.read() + terms if add else terms
            self.parts.clear()
        else:
            before = self.read(key) if add else ZERO
            self.parts[key] = before + terms

    def _covered(self) -> bool:
        return any(key and (key[0] == "each" or complement(key) in self.parts) for key in self.parts)


def complement(key: Key) -> Key | None:
    """The part that holds what `key` leaves out, where it can be told: `:-1` and `-1:` of the last axis."""
    if key[0] == "upto":
        return ("from", key[1])
    return ("upto", key[1]) if key[0] == "from" else None


def disjoint(key: Key, other: Key) -> bool:
    """Whether two parts surely don't overlap."""
    return complement(key) == other or (key[0] == other[0] == "at" and key != other) or _each(key, other)


def _each(key: Key, other: Key) -> bool:
    return key[0] == other[0] == "each" and key != other


def key_of(index: object, describe: object) -> Key | str | None:
    """Which part an index means: None the whole, "weak" an unknown part.

    Args:
        index: what stands between the brackets.
        describe: function from a stand-in to ("loop" or "number", its name), or None for anything else.
    """
    kinds = [_axis(one, describe) for one in (index if isinstance(index, tuple) else (index,))]
    parts = [kind for kind in kinds if kind is not None]
    if not parts:
        return None
    if "weak" in parts or len(parts) > 1:
        return "weak"
    key = parts[0]
    assert isinstance(key, tuple)
    return key


def _axis(one: object, describe: object) -> Key | str | None:
    if one is None or one is Ellipsis or one is True:
        return None
    if isinstance(one, slice):
        return _slice(one, describe)
    if isinstance(one, int) and not isinstance(one, bool):
        return ("from", -1) if one == -1 else ("at", one)
    return _unknown_axis([describe(one)])  # type: ignore[operator]


def _slice(one: slice, describe: object) -> Key | str | None:
    if one.start is None and one.stop is None and one.step in (None, 1):
        return None
    bounds = [bound for bound in (one.start, one.stop) if bound is not None]
    if all(isinstance(bound, int) for bound in bounds):
        if one.step in (None, 1) and one.start in (None, 0) and isinstance(one.stop, int) and one.stop < 0:
            return ("upto", one.stop)
        if one.step in (None, 1) and one.stop is None and one.start < 0:
            return ("from", one.start)
        return ("slice", one.start, one.stop, one.step)
    found = [describe(bound) for bound in bounds if not isinstance(bound, int)]  # type: ignore[operator]
    if any(kind and kind[0] == "loop" for kind in found) or None in found:
        return _unknown_axis(found)
    if len(bounds) == 1 and one.step in (None, 1):
        return ("upto" if one.start is None else "from", found[0][1])
    return ("slice", *(name for _, name in found), str([bound for bound in bounds if isinstance(bound, int)]))


def _unknown_axis(found: list[tuple[str, str] | None]) -> Key | str:
    loops = [name for kind, name in filter(None, found) if kind == "loop"]
    return ("each", *loops) if loops else "weak"
