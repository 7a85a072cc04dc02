"""A control group for one call, where this user may make one: unlike a resource limit, it counts root's processes."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

PREFIX = "sleuth-"
STALE_SECONDS = 60.0
"""Age from which an empty group counts as left behind by a sleuth that was killed."""
EMPTY_SECONDS = 2.0
"""How long the kernel may take to reap a killed group's last process."""

_numbers = itertools.count()


@contextlib.contextmanager
def process_group(parent: Path, processes: int) -> Iterator[Path]:
    """A new group below `parent` that holds at most `processes` processes and threads; gone again at the end.

    Raises:
        OSError: it can't be made here.
    """
    folder = parent / f"{PREFIX}{os.getpid()}-{next(_numbers)}"
    folder.mkdir()
    try:
        (folder / "pids.max").write_text(str(processes), encoding="ascii")
        yield folder
    finally:
        _remove(folder)


def join(group: Path, pid: int) -> None:
    """Move `pid` into the group; what it starts from now on is born there."""
    (group / "cgroup.procs").write_text(str(pid), encoding="ascii")


def _remove(folder: Path) -> None:
    """Remove an emptied group; one that still holds a dying process is busy for a moment."""
    last = time.monotonic() + EMPTY_SECONDS
    while time.monotonic() < last:
        with contextlib.suppress(OSError):
            folder.rmdir()
        if not folder.exists():
            return
        time.sleep(0.002)


@functools.cache
def find_parent() -> Path | None:
    """The group below which groups that limit processes can be made; None where this user can make none."""
    with contextlib.suppress(OSError):
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
        own = Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="surrogateescape")
        return first_usable(candidates(mounts, own))
    return None


def candidates(mountinfo: str, own: str) -> Iterator[Path]:
    """Groups that a process's group may be a child of, from the kernel's own tables (proc(5), cgroups(7)).

    In version 1 that is the process's own group in the `pids` hierarchy. In version 2 a group that holds processes
    can't hand controllers down, so it is the nearest of those above.
    """
    mounts = [_mount(line) for line in mountinfo.splitlines()]
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        for root, point, kind, options in mounts:
            if not Path(path).is_relative_to(root) or ".." in Path(path).parts:
                continue  # mounted from elsewhere in the hierarchy: out of this process's reach
            place = point / Path(path).relative_to(root)
            if kind == "cgroup" and "pids" in controllers.split(",") and "pids" in options:
                yield place
            if kind == "cgroup2" and not controllers:
                yield from (above for above in (place, *place.parents) if above.is_relative_to(point))


def _mount(line: str) -> tuple[str, Path, str, list[str]]:
    """Root within the hierarchy, mount point, kind, and options of one line of mountinfo."""
    left, _, right = line.partition(" - ")
    fields, (kind, _, options) = left.split(), right.split(maxsplit=2)
    return fields[3], Path(fields[4]), kind, options.split(",")


def first_usable(places: Iterable[Path]) -> Path | None:
    """The first place where a group can really be made and given a process limit."""
    for place in places:
        with contextlib.suppress(OSError):
            _sweep(place)
            if os.access(place / "cgroup.procs", os.W_OK) and _hands_down(place):
                with process_group(place, 8):
                    return place
    return None


def _hands_down(place: Path) -> bool:
    switch = place / "cgroup.subtree_control"
    return not switch.exists() or "pids" in switch.read_text(encoding="ascii").split()


def _sweep(place: Path) -> None:
    """Remove groups of a sleuth that was killed before it could; the kernel refuses for those in use."""
    for old in place.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - old.stat().st_ctime > STALE_SECONDS:
                old.rmdir()
