"""What a long analysis of nested code needs of the interpreter."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

RECURSION = 20_000
RARELY = (50_000, 20, 100)
"""Nearly all that is made lives to the end: looking for cycles at the usual pace would take a third of the time."""


@contextmanager
def deeply() -> Iterator[None]:
    """Let calls nest deeper, and look for garbage rarely, while the block runs."""
    limit, thresholds = sys.getrecursionlimit(), gc.get_threshold()
    sys.setrecursionlimit(RECURSION)
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        gc.set_threshold(*thresholds)
