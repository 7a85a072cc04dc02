"""How much work an analysis has done, counted and not timed: two runs on the same tree have to say the same."""

from __future__ import annotations

import math
import time

RATE = 100_000
"""Work that an ordinary machine does in a second; a second of what a request may take is that much."""
LOOK_AT_THE_CLOCK = 4_096


class Effort:
    """The work of all analyses that answer one request: expressions that were followed, nodes that were made.

    Args:
        wall: seconds after which everything is given up whatever was done, for a machine that is far too slow.
    """

    __slots__ = ("_deadline", "_look", "done")

    def __init__(self, wall: float = math.inf) -> None:
        self.done = 0
        self._look = 0
        self._deadline = time.monotonic() + wall

    def after(self, seconds: float) -> float:
        """The amount of work done by the time that an ordinary machine needs for so many seconds' worth more."""
        return self.done + seconds * RATE

    def left(self, until: float) -> float:
        """Seconds' worth of work from here to an amount; 0 where it is already done."""
        return max(until - self.done, 0.0) / RATE

    def is_over(self, until: float) -> bool:
        """Whether that amount of work is done, or the clock says that it is far too late."""
        if self.done > until:
            return True
        if self.done >= self._look:
            late = time.monotonic() > self._deadline
            self._look = 0 if late else self.done + LOOK_AT_THE_CLOCK
            return late
        return False
