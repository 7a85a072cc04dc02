"""Start a process, give it its limits, wait, and leave nothing of it behind. The only module that starts any."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import resource
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .base import Limits
from .errors import CommandError

COUNTS_SINCE = (5, 14)
"""The first kernel that counts processes for each user namespace, so that the host's don't use up the limit."""
INIT = 1
"""bubblewrap's own process inside the sandbox, which a process limit counts too."""
LONGEST_POLL = 2**31 - 1
"""Milliseconds, the most that poll(2) takes."""


@dataclass(frozen=True)
class Ended:
    """How a process ended: `status` as `Popen.returncode` gives it, wall time in seconds, whether time ran out."""

    status: int
    seconds: float
    timed_out: bool = False


def run(argv: Sequence[str], *, seconds: float, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a trusted helper (pip, bwrap --version) and capture its output.

    Raises:
        TimeoutError: it did not end within `seconds`; its process group has been killed.
        FileNotFoundError: no such program.
    """
    child = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        out, err = child.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{argv[0]} did not end within {seconds:.0f} s") from None
    finally:
        kill_group(child)
    return subprocess.CompletedProcess(argv, child.returncode, out, err)


def kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill every process of the child's group, which start_new_session made its own, and reap the child."""
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream:
            stream.close()


class Gated:
    """A bubblewrap process that waits at a gate until its limits are set on the sandbox's first process.

    bwrap reports the first process on `--json-status-fd` and holds it on `--block-fd`. Setting limits from outside
    keeps Python from having to run code between fork and exec, which isn't safe once threads exist.
    """

    def __init__(self, bwrap: Sequence[str], inner: Sequence[str], stdin: int, stdout: int, stderr: int) -> None:
        """Start `bwrap … --json-status-fd N --block-fd M -- inner…` with the given descriptors.

        Raises:
            CommandError: the command line can't be handed to any process.
        """
        self._start = time.monotonic()
        status_read, status_write = os.pipe()
        gate_read, self._gate = os.pipe()
        extra = ["--json-status-fd", str(status_write), "--block-fd", str(gate_read), "--"]
        try:
            self.child = subprocess.Popen(
                [*bwrap, *extra, *inner],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(status_write, gate_read),
                start_new_session=True,
                cwd="/",
                env={},
            )
        except (OSError, ValueError) as error:
            os.close(status_read)
            os.close(self._gate)
            raise _unstartable(inner, error) from error
        finally:
            os.close(status_write)
            os.close(gate_read)
        self._status = os.fdopen(status_read, "rb")

    def first_pid(self, seconds: float) -> int | None:
        """The sandbox's first process as the host numbers it; None when bwrap ended or hung before making one."""
        line = self._status.readline() if _readable(self._status.fileno(), seconds) else b""
        return int(json.loads(line)["child-pid"]) if line.strip() else None

    def open(self) -> None:
        """Let the command start; if the sandbox has died meanwhile, its missing report will say so."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._gate, b"\n")

    def wait(self, first: int, seconds: float) -> Ended:
        """Wait for the end; at the time limit kill the first process, and with it every process of its namespace."""
        timed_out = True  # so too when the wait is interrupted
        try:
            timed_out = not self._ended_within(seconds)
        finally:
            if timed_out:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(first, signal.SIGKILL)
        return Ended(self.child.wait(), time.monotonic() - self._start, timed_out)

    def _ended_within(self, seconds: float) -> bool:
        """Sleep until the child ends; Popen.wait(timeout) would poll, and cost up to 50 ms a call."""
        handle = os.pidfd_open(self.child.pid)
        try:
            return _readable(handle, seconds)
        finally:
            os.close(handle)

    def reported_exit(self) -> int | None:
        """The exit code that bwrap wrote after the command ended, 128 + N for signal N; None when it wrote none."""
        for line in self._status.read().splitlines():
            with contextlib.suppress(ValueError):
                report = json.loads(line)
                if "exit-code" in report:
                    return int(report["exit-code"])
        return None

    def close(self) -> None:
        """Kill what is left and close every descriptor."""
        kill_group(self.child)
        os.close(self._gate)
        self._status.close()


def _readable(handle: int, seconds: float) -> bool:
    """Wait for a descriptor of any number; select would refuse those from 1024."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(min(seconds * 1000, LONGEST_POLL)))


def _unstartable(command: Sequence[str], error: OSError | ValueError) -> Exception:
    """A command line that no process can have is the caller's mistake; anything else is passed on."""
    if isinstance(error, OSError) and error.errno != errno.E2BIG:
        return error
    if isinstance(error, OSError):
        longest = max(command, key=len)
        return CommandError(f"a command line too long; its longest word has {len(longest):,} bytes: {longest[:40]!r}")
    bad = next((word for word in command if re.search("[\0\ud800-\udfff]", word)), command[0])
    return CommandError(f"a command line can't hold a NUL or half a character: {bad[:60]!r}")


def counts_processes() -> bool:
    """Whether the kernel's limit on a user's processes serves here: it never counts root's."""
    release = tuple(int(n) for n in re.findall(r"\d+", os.uname().release)[:2])
    return os.geteuid() != 0 and release >= COUNTS_SINCE


def limit(pid: int, limits: Limits) -> None:
    """Set the kernel's limits on `pid`; every process it starts inherits them.

    Raises:
        OSError: `pid` is gone, or isn't ours.
    """
    wanted = {
        resource.RLIMIT_AS: limits.memory_bytes,
        resource.RLIMIT_FSIZE: limits.output_bytes,
        resource.RLIMIT_CORE: 0,
    }
    if counts_processes():
        wanted[resource.RLIMIT_NPROC] = limits.processes + INIT
    for kind, value in wanted.items():
        _, hard = resource.prlimit(pid, kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.prlimit(pid, kind, (value, value))


def size(path: Path) -> int:
    """Bytes in a file, 0 when it isn't there."""
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0
