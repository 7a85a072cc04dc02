"""Choices, drawn by hypothesis: cheaper than a strategy for each, and they shrink to the first of what is offered."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


@functools.cache
def below(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


class Pick:
    """Makes the choices of one program."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def one(self, offered: Sequence[T]) -> T:
        """One of these, the first for a simple program."""
        return offered[self.draw(below(len(offered)))]

    def chance(self, among: int) -> bool:
        """Yes, once in so many times; no for a simple program."""
        return self.draw(below(among)) == among - 1

    def upto(self, most: int) -> int:
        """A number from 0."""
        return self.draw(below(most + 1))

    def some(self, offered: Sequence[T], most: int) -> list[T]:
        """From one to so many of these, each once."""
        left = list(offered)
        return [left.pop(self.draw(below(len(left)))) for _ in range(1 + self.upto(most - 1))]
