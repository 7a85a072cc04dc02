"""What a tree of sources holds, told again within milliseconds as long as no file has changed.

Standard library only, so that a command which finds its answer kept needn't wait for imports.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SKIPPED = {".git", "__pycache__"}
SETTLED_NS = 2_000_000_000
"""A file that changed this recently might change again within one tick of its clock, so its stamp isn't believed."""

Stamp = list[Any]
"""Size, time of content, time of inode, inode number; a fifth item is the content's digest."""
Found = tuple[str, Stamp | str]
"""A path below the root, and a file's stamp or what else it is."""


@dataclass
class Stamps:
    """Digests of trees by root, and the stamps that let them be believed, kept in `folder`."""

    folder: Path
    digests: dict[Path, str] = field(default_factory=dict)

    def digest(self, root: Path, suffixes: tuple[str, ...]) -> str:
        """SHA-256 over the names of all folders and the contents of all files of these kinds below `root`.

        Links count by their target and aren't followed. Contents are read again only where a file's stamp has changed.
        A `root` that is a file counts by its content alone.
        """
        if root not in self.digests:
            self.digests[root] = self._digest(root, suffixes) if root.is_dir() else _file(os.path.realpath(root))
        return self.digests[root]

    def _digest(self, root: Path, suffixes: tuple[str, ...]) -> str:
        found = sorted(_walk(str(root), suffixes))
        listing = hashlib.sha256(os.fsencode("\0".join(f"{name}\0{what}" for name, what in found))).hexdigest()
        name = os.fsencode("\0".join((os.path.realpath(root), *suffixes)))
        place = self.folder / hashlib.sha256(name).hexdigest()[:32]
        with contextlib.suppress(OSError, ValueError), place.open("rb") as stream:
            known = stream.readline().decode("ascii").split()
            if len(known) == 2 and known[0] == listing:
                return known[1]
        digest, stamps = _contents(str(root), found, _read(place))
        settled = len(stamps) == sum(isinstance(what, list) for _, what in found)
        with contextlib.suppress(OSError):
            replace(place, f"{listing if settled else '-'} {digest}\n{json.dumps(stamps)}")
        return digest


def _walk(root: str, suffixes: tuple[str, ...]) -> Iterator[Found]:
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(os.path.join(root, folder) if folder else root) as entries:
                for entry in entries:
                    name = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.is_symlink():
                        yield name, f"link {os.readlink(entry.path)}"
                    elif entry.is_dir():
                        if entry.name not in SKIPPED:
                            pending.append(name)
                            yield name, "folder"
                    elif entry.name.endswith(suffixes):
                        yield name, _stamp(entry.stat(follow_symlinks=False))
        except OSError as error:
            yield folder, f"closed {error.errno}"


def _stamp(info: os.stat_result) -> Stamp | str:
    if not stat.S_ISREG(info.st_mode):
        return f"special {info.st_mode:o}"  # a device stands for a deleted file in a layer
    return [info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino]


def _read(place: Path) -> dict[str, Stamp]:
    with contextlib.suppress(OSError, ValueError, RecursionError), place.open("rb") as stream:
        stream.readline()
        value = json.load(stream)
        return value if isinstance(value, dict) else {}
    return {}


def _contents(root: str, found: list[Found], known: dict[str, Stamp]) -> tuple[str, dict[str, Stamp]]:
    """The digest of everything found, and the stamps, with digests, that may be believed the next time."""
    total, stamps, recent = hashlib.sha256(), {}, time.time_ns() - SETTLED_NS
    for name, what in found:
        if isinstance(what, list):
            before = known.get(name)
            same = isinstance(before, list) and before[:4] == what and len(before) == 5
            digest = before[4] if before and same else _file(os.path.join(root, name))
            if max(what[1], what[2]) < recent:
                stamps[name] = [*what, digest]
            what = digest
        total.update(os.fsencode(f"{name}\0{what}\0"))
    return total.hexdigest(), stamps


def _file(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with open(descriptor, "rb", buffering=0) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        return f"unreadable {error.errno}"


def replace(path: Path, text: str) -> None:
    """Write a file so that nobody ever sees a half of it.

    Raises:
        OSError: it can't be written; what was there before still is.
    """
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    try:
        with open(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(part, path)
    except OSError:
        os.unlink(part)
        raise
