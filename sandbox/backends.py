"""Choose and open a sandbox backend."""

from __future__ import annotations

from pathlib import Path

from .base import Limits, Sandbox
from .clone import Clone
from .errors import SandboxUnavailable


def open_sandbox(backend: str, clone: Clone, scratch: Path, limits: Limits | None = None) -> Sandbox:
    """Open the backend that `sandbox.backend` of sleuth.yaml names; `auto` is bubblewrap.

    Raises:
        SandboxUnavailable: it can't work on this machine; the message says why and what to do.
    """
    if backend in ("auto", "bubblewrap"):
        from .bubblewrap import Bubblewrap

        return Bubblewrap(clone, scratch, limits)
    raise SandboxUnavailable(f"sandbox.backend: {backend}: this version of sleuth has only bubblewrap")
