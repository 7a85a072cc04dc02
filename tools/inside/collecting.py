"""Keep Python's garbage collector out of the way of a script that ends when it has answered."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Don't look for reference cycles inside, nor afterwards among the objects made inside.

    Syntax trees are a great many small objects that live until the process ends: each pass over them costs a tenth of
    a second and frees nothing.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collecting:
            gc.enable()
