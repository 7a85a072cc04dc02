"""Time two things in turn, so that whatever else the machine does hits both alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    """What is timed, and what has to happen before each time, untimed."""

    action: Callable[[], object]
    prepare: Callable[[], object] = lambda: None

    def seconds(self) -> float:
        self.prepare()
        start = time.perf_counter()
        self.action()
        return time.perf_counter() - start


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        value: what was measured, in `unit`; `×` is a ratio.
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


def in_turn(rounds: int, *jobs: Job) -> list[list[float]]:
    """Seconds of each job in each round, after one round that isn't counted."""
    for job in jobs:
        job.seconds()
    timed = [[job.seconds() for job in jobs] for _ in range(rounds)]
    return [list(column) for column in zip(*timed, strict=True)]


def against(name: str, ours: list[float], raw: list[float], limit: float | None, beside: str) -> Row:
    """A row that gives the median of the rounds' own ratios, and the quartiles as the spread."""
    ratios = [mine / other for mine, other in zip(ours, raw, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    times = f"{_ms(ours)} beside {_ms(raw)} for {beside} (medians)"
    return Row(name, middle, "×", limit, f"{low:.2f}–{high:.2f} in half of {len(raw)} rounds; {times}")


def _ms(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1000:,.0f} ms"


def table(rows: Iterator[Row]) -> Iterator[str]:
    """The rows as lines, each as soon as it is known."""
    yield f"{'measured':<42} {'value':>7}     {'limit':>6}             details"
    for row in rows:
        limit = "" if row.limit is None else f"{row.limit:g} {row.unit}"
        value = f"{row.value:.2f}" if row.value >= 0.1 else f"{row.value:.4f}"
        yield f"{row.name:<42} {value:>7} {row.unit:<2}  {limit:>6}  {row.verdict:<6}   {row.detail}"
