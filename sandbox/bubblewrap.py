"""The bubblewrap backend: Linux namespaces without root, an overlay for the clone, nothing installed, nothing left."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from .base import CLONE, PATCHES, STOCK, Command, Completed, Guarantee, Limits, Sandbox
from .binaries import ISOLATE, KERNEL, SEAL, START_SECONDS, Binary, find_binary, find_rg
from .cgroup import find_parent, join, process_group
from .clone import Clone, View, copy_view, walk
from .errors import SandboxDied
from .process import INIT, Ended, Gated, counts_processes, limit, run, size

RG = "/sleuth/bin/rg"
NOT_FOUND = 127
"""Exit code for a program that isn't there, as a shell gives it."""
NOT_RUNNABLE = 126
"""Exit code for a file that is there and can't be run, likewise."""

SIGNALS = {int(s) for s in signal.Signals}
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store")
ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime")
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    # Sets come in the same order in every run, so that two runs find the same.
    "PYTHONHASHSEED": "0",
}
MOST_BINDS = 64
"""Files of a layer up to which each gets a mount of its own."""
ROOM = ("--size", str(256 << 20), "--tmpfs")
"""A writable folder in memory, of bounded size."""


class Bubblewrap(Sandbox):
    """One case's sandbox. Every call gets fresh namespaces over the same clone; there is no process between calls."""

    name = "bubblewrap"
    rg = RG

    def __init__(self, clone: Clone, scratch: Path, limits: Limits | None = None, binary: Binary | None = None) -> None:
        """Check that this machine can show the clone.

        Args:
            clone: what to show.
            scratch: an existing folder for outputs and, where no overlay can be had, for copies.
            limits: for calls that bring none of their own.
            binary: the bwrap to use; the best one found by default.

        Raises:
            SandboxUnavailable: no bwrap works here.
        """
        self.binary = binary or find_binary()
        self.clone, self.scratch, self.limits = clone, scratch, limits or Limits()
        self.python: tuple[str, ...] = (_python(), "-P", "-s", "-S", "-B")
        self.notes: list[str] = []
        self._tree = self._show(clone.tree, CLONE)
        self._stock = self._show(clone.stock, STOCK) if clone.stock else []
        self._patches = ["--ro-bind", str(clone.steps), PATCHES] if clone.steps else []

    def scoped(self, scratch: Path) -> Self:
        """The same sandbox with its outputs in another folder, so that one call's files can be dropped together."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, scratch=scratch)
        return other

    def _show(self, view: View, target: str) -> list[str]:
        if view.layer is None:
            return ["--ro-bind", str(view.lower), target]
        binds = _binds(view.lower, view.layer, target)
        if binds is not None:
            return binds
        overlay = [*_sources(view), "--ro-overlay", target]
        if self.binary.has_overlay and self._mounts(overlay):
            return overlay
        copy = Path(tempfile.mkdtemp(prefix="copy-", dir=self.scratch))
        self.notes.append(f"{target}: no overlay can be had over {view.lower}; its files were copied instead")
        copy_view(view, copy)
        return ["--ro-bind", str(copy), target]

    def _mounts(self, overlay: Sequence[str]) -> bool:
        argv = [self.binary.path, "--unshare-all", "--ro-bind", find_rg(), "/rg", *overlay, "--", "/rg", "--version"]
        with contextlib.suppress(TimeoutError):
            return run(argv, seconds=START_SECONDS).returncode == 0
        return False

    def exec(self, command: Command) -> Completed:
        """See `Sandbox.exec`. A command that ends with 128 + N is reported as ended by signal N."""
        limits = command.limits or self.limits
        with self._writable(command) as tree, tempfile.TemporaryFile(dir=self.scratch) as stdin:
            stdin.write(command.stdin)
            stdin.seek(0)
            out, err = self._output("stdout"), self._output("stderr")
            with out.open("wb") as out_stream, err.open("wb") as err_stream:
                options = self._options(command, tree)
                streams = (stdin.fileno(), out_stream.fileno(), err_stream.fileno())
                with contextlib.closing(Gated(options, command.argv, *streams)) as gated:
                    ended, reported = self._guard(gated, limits, err, counted=not command.bare)
        return _completed(command, limits, ended, reported, out, err)

    def _guard(self, gated: Gated, limits: Limits, err: Path, *, counted: bool) -> tuple[Ended, int | None]:
        first = gated.first_pid(START_SECONDS)
        if first is None:
            raise SandboxDied(f"bubblewrap did not come up: {_tail(err)}")
        with _limited(first, limits, err, counted=counted):
            gated.open()
            ended = gated.wait(first, limits.seconds)
        reported = gated.reported_exit()
        if reported is None and not ended.timed_out:
            reported = _not_started(_tail(err))
            if reported is None:
                raise SandboxDied(f"bubblewrap ended with status {ended.status} and no report: {_tail(err)}")
        return ended, reported

    def _output(self, kind: str) -> Path:
        handle, path = tempfile.mkstemp(prefix=f"{kind}-", dir=self.scratch)
        os.close(handle)
        return Path(path)

    def _options(self, command: Command, tree: list[str]) -> list[str]:
        options = [self.binary.path, *ISOLATE]
        if not command.bare:
            options += [*KERNEL, *ROOM, "/dev/shm", *ROOM, "/tmp", *_system()]
        options += [*tree, *self._stock, *self._patches, "--ro-bind", find_rg(), RG]
        for mount in command.mounts:
            options += ["--ro-bind", str(mount.source), mount.target]
        for name, value in {**ENVIRONMENT, **command.env}.items():
            options += ["--setenv", name, value]
        return [*options, *(() if command.bare else SEAL), "--remount-ro", "/", "--chdir", command.cwd]

    @contextlib.contextmanager
    def _writable(self, command: Command) -> Iterator[list[str]]:
        """The clone's mount options for one call; a call that writes gets a layer, or a copy where a layer won't do."""
        view = self.clone.tree
        overlay = [*_sources(view), "--tmp-overlay", CLONE]
        if not command.writable:
            yield self._tree
        elif self._editable and self.binary.has_overlay and self._mounts(overlay):
            yield overlay
        else:
            with tempfile.TemporaryDirectory(prefix="copy-", dir=self.scratch) as copy:
                copy_view(view, Path(copy))
                yield ["--bind", copy, CLONE]

    @functools.cached_property
    def _editable(self) -> bool:
        """Whether an overlay can edit every file: a plain user's overlay can't take over someone else's."""
        me = os.geteuid()
        return me == 0 or all(info.st_uid == me for _, _, info in walk(self.clone.tree.lower))

    def guarantees(self) -> list[Guarantee]:
        """See `Sandbox.guarantees`."""
        counted = counts_processes() or find_parent() is not None
        reason = "the kernel doesn't count root's processes" if os.geteuid() == 0 else "this kernel is older than 5.14"
        return [
            Guarantee("original never written", True),
            Guarantee("no network", True),
            Guarantee("no host environment", True),
            Guarantee("grandchildren killed at the time limit", True),
            Guarantee("memory limit", True, "for each process"),
            Guarantee("process limit", counted, "" if counted else f"{reason}, and no control group can be made here"),
            Guarantee("output limit", True),
        ]


@contextlib.contextmanager
def _limited(first: int, limits: Limits, err: Path, *, counted: bool) -> Iterator[None]:
    """Set the limits on the sandbox's first process; every process inherits them."""
    parent = find_parent() if counted and not counts_processes() else None
    with contextlib.ExitStack() as stack:
        try:
            if parent is not None:
                join(stack.enter_context(process_group(parent, limits.processes + INIT)), first)
            limit(first, limits)
        except OSError as error:
            raise SandboxDied(f"the sandbox's limits can't be set: {error}; bubblewrap said: {_tail(err)}") from error
        yield


def _not_started(said: str) -> int | None:
    """The exit code a shell would give when bubblewrap could not start the command; None when it wasn't that."""
    if not said.startswith("bwrap: execvp "):
        return None
    return NOT_FOUND if said.endswith("No such file or directory") else NOT_RUNNABLE


def _binds(lower: Path, layer: Path, target: str) -> list[str] | None:
    """A layer of few files, each in place of one that is there, as a mount a file: the rest is then read at full speed.

    An overlay makes every file slower to open. None when the layer adds, deletes or links, or holds many files.
    """
    binds = ["--ro-bind", str(lower), target]
    for name, path, info in walk(layer):
        below = lower / name
        if stat.S_ISDIR(info.st_mode) and below.is_dir():
            continue
        if not (stat.S_ISREG(info.st_mode) and below.is_file()) or below.resolve() != lower.resolve() / name:
            return None
        binds += ["--ro-bind", path, f"{target}/{name}"]
    return binds if len(binds) <= 3 * (1 + MOST_BINDS) else None


def _sources(view: View) -> list[str]:
    layers = [view.lower, *([view.layer] if view.layer else [])]
    return [word for path in layers for word in ("--overlay-src", str(path))]


@functools.cache
def _system() -> tuple[str, ...]:
    """Mounts of the host's programs and libraries, read-only; nothing of home, /var, or the rest of /etc."""
    options: list[str] = []
    for path in SYSTEM:
        if os.path.islink(path):
            options += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            options += ["--ro-bind", path, path]
    for name in ETC:
        options += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    prefix = os.path.realpath(sys.base_prefix)
    if not prefix.startswith("/usr/") and prefix != "/usr":
        options += ["--ro-bind", prefix, prefix]
    return tuple(options)


def _python() -> str:
    """The Python that this one's virtual environment was made with: only its folder is shown inside."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def _tail(path: Path) -> str:
    return path.read_bytes()[-2000:].decode("utf-8", "replace").strip() or "no message"


def _completed(command: Command, limits: Limits, ended: Ended, reported: int | None, out: Path, err: Path) -> Completed:
    clipped = max(size(out), size(err)) >= limits.output_bytes
    code = None if ended.timed_out else reported
    sent = code - 128 if code is not None and code - 128 in SIGNALS else None
    return Completed(
        argv=tuple(command.argv),
        exit_code=None if sent else code,
        signal=sent,
        stdout=out,
        stderr=err,
        seconds=ended.seconds,
        timed_out=ended.timed_out,
        clipped=clipped and not ended.timed_out,
    )
