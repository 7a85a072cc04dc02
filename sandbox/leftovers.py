"""What a sleuth that was killed may leave running, and its end.

bwrap's first process inside the sandbox asks the kernel to die with its parent only after the parent has told it to go
on. Where sleuth is killed in between, the parent dies first, and that process then waits for its word for ever.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def end_leftovers(folder: Path) -> None:
    """Kill every bwrap of this user that still holds a file below `folder`, which no living sleuth uses."""
    below = os.path.realpath(folder) + "/"
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            _end(process, below)


def _end(process: Path, below: str) -> None:
    """Kill one process if it is such a bwrap; the handle makes sure that it is the one that was looked at."""
    if (process / "comm").read_text(errors="replace") != "bwrap\n":
        return
    handle = os.pidfd_open(int(process.name))
    try:
        if any(os.readlink(file).startswith(below) for file in (process / "fd").iterdir()):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)
