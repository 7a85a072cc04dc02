"""Time two things in turn, so that whatever else the machine does hits both alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Action = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Seconds of each repetition."""

    seconds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> tuple[float, float]:
        """The quartiles, as parts of the median."""
        low, _, high = statistics.quantiles(self.seconds, n=4)
        return low / self.median, high / self.median


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, beside what, and what it should come to.

    Attributes:
        value: in the unit that `unit` names: `×` is a ratio of medians.
        limit: the most that `value` should be; None where nothing is promised.
        detail: the numbers behind it.
    """

    name: str
    value: float
    unit: str
    limit: float | None
    detail: str

    @property
    def verdict(self) -> str:
        return "" if self.limit is None else "met" if self.value <= self.limit else "MISSED"


def clock(action: Action) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def in_turn(times: int, *actions: Action) -> list[Timing]:
    """Time each action `times` times, one after the other and in turn, after one unmeasured round of each."""
    for action in actions:
        action()
    rounds = [[clock(action) for action in actions] for _ in range(times)]
    return [Timing(list(column)) for column in zip(*rounds, strict=True)]


def against(name: str, ours: Timing, raw: Timing, limit: float | None, beside: str) -> Row:
    """A row that gives the ratio of the medians."""
    detail = f"{_shown(ours)} beside {_shown(raw)} for {beside}; {len(raw.seconds)} rounds"
    return Row(name, ours.median / raw.median, "×", limit, detail)


def _shown(timing: Timing) -> str:
    low, high = timing.spread
    return f"{timing.median * 1000:.1f} ms (quartiles {low:.2f}–{high:.2f})"


def table(rows: Iterator[Row]) -> Iterator[str]:
    """The rows as lines, each as soon as it is known."""
    yield f"{'measured':<44} {'value':>10}  {'limit':>8}  {'':<6}  details"
    for row in rows:
        limit = "" if row.limit is None else f"{row.limit:g} {row.unit}"
        yield f"{row.name:<44} {row.value:>7.2f} {row.unit:<2}  {limit:>8}  {row.verdict:<6}  {row.detail}"
