"""The sandbox contract: what every backend gives, whatever it is made of."""

from __future__ import annotations

import signal as signals
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

CLONE = "/clone"
"""Where the deployed source (stock plus patches) lies inside every sandbox."""

STOCK = "/stock"
"""Where the stock source lies inside every sandbox, when the deployment names one."""

PATCHES = "/patches"
"""Where each patch's own files lie inside every sandbox, as it found and left them: `<id>/before/`, `<id>/after/`."""


@dataclass(frozen=True)
class Limits:
    """What one call may use.

    Attributes:
        seconds: wall time, after which every process of the call is killed.
        memory_bytes: address space of each process.
        processes: processes and threads alive at once.
        output_bytes: size of stdout, of stderr, and of any file written.
    """

    seconds: float = 60.0
    memory_bytes: int = 4 << 30
    processes: int = 256
    output_bytes: int = 64 << 20


@dataclass(frozen=True)
class Mount:
    """A host path shown read-only inside the sandbox at `target`."""

    source: Path
    target: str


@dataclass(frozen=True)
class Completed:
    """How one command inside the sandbox ended; a non-zero exit is a result, not an error.

    Attributes:
        argv: the command as it ran inside.
        exit_code: its exit status; None when a signal or the time limit ended it.
        signal: the signal that ended it, or None.
        stdout: file holding its standard output, at most `Limits.output_bytes` long.
        stderr: the same for standard error.
        seconds: wall time, the sandbox's own start included.
        timed_out: the time limit ended it.
        clipped: stdout or stderr reached the output limit, so the command was stopped there.
    """

    argv: tuple[str, ...]
    exit_code: int | None
    signal: int | None
    stdout: Path
    stderr: Path
    seconds: float
    timed_out: bool = False
    clipped: bool = False

    def describe(self) -> str:
        """One phrase for a reader: `exit 2`, `killed by SIGSEGV`, `stopped after 60.0 s`."""
        if self.timed_out:
            return f"stopped at the time limit, after {self.seconds:.1f} s"
        if self.clipped:
            return f"stopped at the output limit, {self.stdout.stat().st_size:,} bytes"
        if self.signal is not None:
            return f"killed by {signals.Signals(self.signal).name}"
        return f"exit {self.exit_code}"

    def error_text(self, limit: int = 2000) -> str:
        """The end of standard error, decoded, at most `limit` bytes."""
        with self.stderr.open("rb") as stream:
            stream.seek(max(0, self.stderr.stat().st_size - limit))
            return stream.read().decode("utf-8", "replace").strip()


@dataclass(frozen=True)
class Guarantee:
    """One promise of the contract, whether this backend holds it here, and if not why."""

    name: str
    holds: bool
    why: str = ""


@dataclass(frozen=True)
class Command:
    """What to run: argv (never a shell string), standard input, environment by name, extra mounts."""

    argv: Sequence[str]
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = CLONE
    mounts: Sequence[Mount] = ()
    bare: bool = False
    """It is a static program that starts no processes, such as ripgrep: show it the source and nothing else, no system
    folders, /proc, /dev or /tmp, and don't count its processes. Saves a third of a call's overhead."""
    writable: bool = False
    """Give the command a throw-away layer to write in; it is gone when the command ends."""
    limits: Limits | None = None


class Sandbox(ABC):
    """A place where commands see the clone at `/clone`, the stock tree at `/stock`, and little else."""

    name: ClassVar[str]
    """The backend's name, as `sandbox.backend` in sleuth.yaml spells it."""

    python: tuple[str, ...]
    """Start of a command line for an isolated Python inside (standard library only)."""

    rg: str
    """Path of ripgrep inside."""

    limits: Limits
    """For commands that bring none of their own."""

    notes: list[str]
    """What a reader should know about how the clone is shown, such as a copy instead of an overlay."""

    @abstractmethod
    def exec(self, command: Command) -> Completed:
        """Run one command to its end.

        The command has its own process group and namespaces, no network, no host environment, and sees the source
        read-only unless `command.writable`. At the time limit every process of it is killed, grandchildren included.

        Returns:
            How it ended, for any exit code, signal, time-out or clipped output. A program that doesn't exist inside
            ends with exit code 127.

        Raises:
            SandboxUnavailable: this backend can't work on this machine.
            SandboxDied: the sandbox ended without reporting the command's end.
        """

    @abstractmethod
    def scoped(self, scratch: Path) -> Self:
        """The same sandbox with its output files in the existing folder `scratch`, for the caller to delete."""

    @abstractmethod
    def guarantees(self) -> list[Guarantee]:
        """Each promise of this contract, with whether it holds on this machine."""
