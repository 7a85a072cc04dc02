"""How much a run may spend before it has to conclude with what it has."""

from __future__ import annotations

import time


class Budget:
    """Limits on the tool calls of a case and on the wall time of one run."""

    def __init__(self, max_calls: int | None = None, max_seconds: float | None = None) -> None:
        """Start the clock; None is no limit."""
        self.max_calls, self.max_seconds = max_calls, max_seconds
        self._start = time.monotonic()

    def spent(self, calls: int) -> str:
        """What ran out after `calls` finished calls; empty while there is some left."""
        if self.max_calls is not None and calls >= self.max_calls:
            return f"the budget of {self.max_calls} tool calls is spent"
        seconds = time.monotonic() - self._start
        if self.max_seconds is not None and seconds >= self.max_seconds:
            return f"the budget of {self.max_seconds:g} s is spent"
        return ""
