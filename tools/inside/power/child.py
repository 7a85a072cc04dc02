"""A process for each run, so that code that loops, allocates, forks or dies takes only its own run with it.

The child has no standard input or output, few resources, and a pipe on which it tells each question as it is answered
and its result at the end, every line after a token that it was given in memory. The parent reads the pipe within a time
limit, then kills the child's whole process group and every process left behind.

What isn't guarded: the code under test runs in the same process as the stand-ins. Code written to fool this very
instrument can find them (through frames, the garbage collector, or a real module of the standard library), and can
then forge a result. What changes the instrument's functions or built-ins by assignment is noticed, and makes the run
unknown.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import secrets
import select
import signal
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from .trial import Result

MOST_BYTES = 8 << 20
"""Of one result."""
MEMORY = 1 << 30
"""Address space that a run may add to what the parent uses."""
OPEN_FILES = 64


Tell = Callable[[dict[str, Any]], None]


def separately(work: Callable[[Tell], Result], seconds: float) -> Result:
    """`work(tell)` in a process of its own.

    Where the process doesn't end well, the result is unknown, with the reason, and has the questions told until then.
    """
    token = secrets.token_hex(16).encode()
    reader, writer = os.pipe()
    sys.stdout.flush()
    others = set(_children())
    # The sandbox counts and kills what starts here; a world that hangs must not take the others with it.
    pid = os.fork()  # noqa: TID251
    if pid == 0:
        os.close(reader)
        _child(work, token, writer)
    os.close(writer)
    try:
        said, late = _listen(reader, seconds)
    finally:
        os.close(reader)
        status, strays = _end(pid, others)
    return _understood(said, token, _why(late, strays, status, seconds))


def _child(work: Callable[[Tell], Result], token: bytes, writer: int) -> None:
    def say(kind: str, body: dict[str, Any]) -> None:
        message = b"%s %s %s\n" % (token, kind.encode(), json.dumps(body).encode())
        while message:
            message = message[os.write(writer, message) :]

    try:
        _confine()
        before = fingerprint()
        result = work(lambda choice: say("choice", choice))
        if fingerprint() != before:
            result = Result(unknown="the code changed the instrument while it ran", choices=result.choices)
        say("result", asdict(result))
    finally:
        os._exit(0)


def _confine() -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    used = _address_space()
    for limit, value in (
        (resource.RLIMIT_AS, used + MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))
    for name in ("SIGALRM", "SIGTERM", "SIGINT"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)


def _address_space() -> int:
    with contextlib.suppress(OSError, ValueError), open("/proc/self/statm") as stream:
        return int(stream.read().split()[0]) * resource.getpagesize()
    return 1 << 30


def fingerprint() -> tuple[Any, ...]:
    """What the instrument and the built-ins consist of: names and the identity of their code."""
    import builtins

    package = __package__ or ""
    modules = [module for name, module in sorted(sys.modules.items()) if name.startswith(package)]
    parts: list[Any] = [(name, id(value)) for name, value in sorted(vars(builtins).items()) if name != "_"]
    for module in modules:
        parts += [(module.__name__, *one) for one in _members(module)]
    return tuple(parts)


def _members(module: types.ModuleType) -> Iterator[tuple[str, int]]:
    for name, value in sorted(vars(module).items()):
        if isinstance(value, types.FunctionType):
            yield name, id(value.__code__)
        elif isinstance(value, type) and value.__module__ == module.__name__:
            yield from ((f"{name}.{key}", id(getattr(one, "__code__", one))) for key, one in _methods(value))


def _methods(cls: type) -> list[tuple[str, Any]]:
    return [(key, one) for key, one in sorted(vars(cls).items()) if isinstance(one, types.FunctionType)]


def _listen(reader: int, seconds: float) -> tuple[bytes, bool]:
    """What the child says until it closes the pipe, and whether time ran out first."""
    said, last = bytearray(), time.monotonic() + seconds
    while len(said) <= MOST_BYTES:
        left = last - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            return bytes(said), True
        piece = os.read(reader, 1 << 16)
        if not piece:
            break
        said += piece
    return bytes(said), False


def _end(pid: int, others: set[int]) -> tuple[int, int]:
    """Kill what is left of the child's process group, and whatever else it left behind; `others` were there before.

    Returns:
        The child's wait status, and how many processes it had left behind.
    """
    found = 0
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    for _ in range(64):
        strays = [one for one in _children() if one not in others]
        if not strays:
            break
        found += len(strays)
        for stray in strays:
            with contextlib.suppress(ProcessLookupError):
                os.kill(stray, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(stray, 0)
    return status, found


@contextlib.contextmanager
def adopting_strays() -> Iterator[None]:
    """Meanwhile be the parent of processes whose own parent has died, so that none outlives its run (Linux)."""
    _adopt(1)
    try:
        yield
    finally:
        _adopt(0)


def _adopt(yes: int) -> None:
    with contextlib.suppress(OSError, ImportError, AttributeError):
        import ctypes

        set_child_subreaper = 36
        ctypes.CDLL(None).prctl(set_child_subreaper, yes, 0, 0, 0)


def _children() -> list[int]:
    with contextlib.suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as stream:
        return [int(one) for one in stream.read().split()]
    return []


def _understood(said: bytes, token: bytes, why: str) -> Result:
    """The result that the child told, unless there is none or the process didn't end well."""
    choices: list[dict[str, Any]] = []
    results: list[Result] = []
    forged = len(said) > MOST_BYTES
    for line in said.split(b"\n")[:-1]:
        start, _, rest = line.partition(b" ")
        kind, _, body = rest.partition(b" ")
        try:
            if start == token and kind == b"choice":
                choices.append(json.loads(body))
            elif start == token and kind == b"result":
                results.append(Result(**json.loads(body)))
            else:
                forged = True
        except (ValueError, TypeError):
            forged = True
    if forged or len(results) > 1:
        return Result(unknown="the code wrote to the instrument's own channel", choices=choices)
    return results[0] if results and not why else Result(unknown=why or "the code ended its process", choices=choices)


def _why(late: bool, strays: int, status: int, seconds: float) -> str:
    """What was wrong with how the process ended."""
    if strays:
        return f"the code started processes, {strays} of which were still there at its end"
    if late:
        return f"the code didn't end within {seconds:g} s and was stopped"
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
        return f"the code ended its process, killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return ""
