"""What earlier answers say about a number or text: `n > 0` and `n == 0` can't both hold in one world."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any


@dataclass
class Bounds:
    """What is known of one unknown value.

    Attributes:
        low, high: the range of a number; `low_open` and `high_open` say that the end itself is left out.
        equal: the one value it has, in a list, or an empty list.
        excluded: values it doesn't have.
        among: values one of which it has, if any are given.
    """

    low: float = -inf
    high: float = inf
    low_open: bool = False
    high_open: bool = False
    equal: list[Any] = field(default_factory=list)
    excluded: list[Any] = field(default_factory=list)
    among: list[Any] = field(default_factory=list)

    def known(self, op: str, other: Any) -> bool | None:
        """The truth of `value op other`, if it follows."""
        if op == "!=":
            answer = self.known("==", other)
            return None if answer is None else not answer
        if self.equal:
            return _compare(op, self.equal[0], other)
        left = [one for one in self.among if one not in self.excluded]
        if op == "==" and self.among and (other not in left or len(left) == 1):
            return other in left
        if op == "==":
            return False if other in self.excluded or (_number(other) and not self._holds(other)) else None
        if not _number(other):
            return None
        if op in (">", "<="):
            answer = True if self._above(other) else False if self.high <= other else None
            return answer if op == ">" or answer is None else not answer
        answer = True if self._below(other) else False if self.low >= other else None
        return answer if op == "<" or answer is None else not answer

    def learn(self, op: str, other: Any, truth: bool) -> None:
        """Keep an answer."""
        if not truth:
            op = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}[op]
        if op == "==":
            self.equal = [other]
        elif op == "!=":
            self.excluded.append(other)
        elif op in (">", ">="):
            self._raise(other, op == ">")
        else:
            self._lower(other, op == "<")
        if self.low == self.high and not self.low_open and not self.high_open:
            self.equal = [int(self.low) if float(self.low).is_integer() else self.low]

    def _raise(self, other: float, is_open: bool) -> None:
        if (other, is_open) > (self.low, self.low_open):
            self.low, self.low_open = other, is_open

    def _lower(self, other: float, is_open: bool) -> None:
        if (-other, is_open) > (-self.high, self.high_open):
            self.high, self.high_open = other, is_open

    def _holds(self, other: float) -> bool:
        above = other > self.low or (other == self.low and not self.low_open)
        return above and (other < self.high or (other == self.high and not self.high_open))

    def _above(self, other: float) -> bool:
        excluded = other in self.excluded and self.low == other
        return self.low > other or (self.low == other and (self.low_open or excluded))

    def _below(self, other: float) -> bool:
        excluded = other in self.excluded and self.high == other
        return self.high < other or (self.high == other and (self.high_open or excluded))


def _number(value: Any) -> bool:
    return isinstance(value, int | float)


def _compare(op: str, left: Any, right: Any) -> bool | None:
    try:
        return bool({"==": left == right, "<": left < right, ">": left > right}.get(op, _loose(op, left, right)))
    except TypeError:
        return (left == right) if op == "==" else None


def _loose(op: str, left: Any, right: Any) -> bool:
    return bool(left <= right) if op == "<=" else bool(left >= right)


CONSTANTS = (int, float, str, bytes, bool)
