"""What tests of the sandbox share: the shortest ways to run something in it, and to see what is left of it outside."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from sleuth.sandbox.base import Command, Completed
from sleuth.sandbox.bubblewrap import Bubblewrap


def sh(box: Bubblewrap, script: str, **options: object) -> Completed:
    """Run a shell script inside."""
    return box.exec(Command(["sh", "-c", script], **options))  # type: ignore[arg-type]


def out(done: Completed) -> str:
    """Its standard output."""
    return done.stdout.read_text()


def python(box: Bubblewrap, source: str, **options: object) -> Completed:
    """Run a Python program inside."""
    return box.exec(Command([*box.python, "-c", source], **options))  # type: ignore[arg-type]


def processes(mark: str) -> list[int]:
    """Processes of the host, in whatever namespace, whose command line holds `mark`."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


def eventually(test: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether `test` holds within `seconds`."""
    last = time.monotonic() + seconds
    while not (held := test()) and time.monotonic() < last:
        time.sleep(0.01)
    return held
