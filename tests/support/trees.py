"""Builders of small and hostile trees, and the shortest way to a sandbox or a tool call over one."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sleuth.sandbox.base import Limits
from sleuth.sandbox.binaries import Binary, find_binary
from sleuth.sandbox.bubblewrap import Bubblewrap
from sleuth.sandbox.clone import Clone, View
from sleuth.sandbox.deployment import Deployment
from sleuth.tools.base import ToolContext
from sleuth.tools.call import Artefact, Caller, ToolResult
from sleuth.tools.registry import get_tool

BACKENDS = ("bubblewrap", "bubblewrap-copy")
"""Every way in which a clone can be shown on this machine; the second is what a bwrap without overlays does."""


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    """Write `files` below `root`, folders included."""
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def hostile(root: Path) -> Path:
    """A tree with everything a careless reader trips over; `ok.py` is the one plain file."""
    write(
        root,
        {"ok.py": "needle = 1\n", "empty.py": "", "binary.bin": b"ELF\0needle\n\xff", "package/in.py": "needle = 2\n"},
    )
    (root / "out").symlink_to("/usr/bin")
    (root / "shadow").symlink_to("/etc/shadow")
    (root / "up").symlink_to("../" * 40 + "etc/hostname")
    (root / "loop").symlink_to("loop2")
    (root / "loop2").symlink_to("loop")
    (root / "dangling").symlink_to("nowhere")
    (root / "folder-link").symlink_to("package")
    (root / "round").symlink_to(".")
    os.mkfifo(root / "pipe")
    for name in ODD_NAMES:
        Path(os.fsdecode(bytes(os.fsencode(root)) + b"/" + name)).write_text("needle = 3\n")
    (root / "secret.py").write_text("needle = 4\n")
    (root / "secret.py").chmod(0)
    return root


ODD_NAMES = {
    b"new\nline.py": r"new\x0aline.py",
    b"bad\xff.py": r"bad\xff.py",
    rb"literal\x0a.py": r"literal\x5cx0a.py",
    b"-rf.py": "-rf.py",
    b"sp ace'\".py": "sp ace'\".py",
    "caf\u00e9\u202egnp.py".encode(): r"café\xe2\x80\xaegnp.py",
    b"\x1b[31mred.py": r"\x1b[31mred.py",
    b"a:b,c.py": "a:b,c.py",
}
"""File names, and how each is shown."""


def clone_of(tree: Path, layer: Path | None = None, stock: Path | None = None) -> Clone:
    """A clone without a deployment description."""
    return Clone(View(tree, layer), View(stock) if stock else None, [], [])


def open_backend(kind: str, clone: Clone, scratch: Path, limits: Limits | None = None) -> Bubblewrap:
    """The backend called `kind` of `BACKENDS`, with its files in the new folder `scratch`."""
    scratch.mkdir(parents=True)
    old = Binary(find_binary().path, (0, 8)) if kind == "bubblewrap-copy" else None
    return Bubblewrap(clone, scratch, limits, old)


@dataclass
class Bench:
    """Calls tools on one tree and keeps their artefacts in a folder."""

    tree: Path
    place: Path
    limits: Limits | None = None
    backend: str = "bubblewrap"
    kept: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.place.mkdir()
        sandbox = open_backend(self.backend, clone_of(self.tree), self.place / "box", self.limits)
        deployment = Deployment(name="test", tree=self.tree)
        self.caller = Caller(ToolContext(sandbox, deployment), self._keep, self.place)

    def _keep(self, name: str, path: Path) -> Artefact:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        self.kept[digest] = path.rename(self.place / digest)
        return Artefact(name=name, digest=digest, size=self.kept[digest].stat().st_size)

    def call(self, name: str, **args: Any) -> ToolResult:
        """One call, as a case makes it."""
        return self.caller.call(get_tool(name), args)
