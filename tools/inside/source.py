"""Read-only access to an untrusted tree: paths that stay inside it, regular files only, sizes bounded."""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Container, Iterator

from .fail import InsideError
from .paths import regular

LARGEST = 4 << 20
"""Bytes of the largest source file that is read whole; no hand-written source file comes near."""

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


class Unreadable(Exception):
    """A file that can't be read as source; the message says why."""


class Tree:
    """The files below one root, by their path relative to it (posix, undecodable bytes escaped).

    Attributes:
        root: absolute path of the root, symlinks resolved.
    """

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self._names: dict[str, dict[str, bool]] = {}
        self._canonical: dict[str, str | None] = {}
        self._bytes: dict[str, bytes] = {}

    def names(self, folder: str) -> dict[str, bool]:
        """Entries of a folder, each with whether it is (or links to) a folder; empty if it can't be listed."""
        if folder not in self._names:
            try:
                with os.scandir(os.path.join(self.root, folder)) as entries:
                    self._names[folder] = {entry.name: _is_folder(entry) for entry in entries}
            except (OSError, ValueError):
                self._names[folder] = {}
        return self._names[folder]

    def is_file(self, path: str) -> bool:
        """Whether the path names something that isn't a folder; `read` decides whether it is a regular file."""
        folder, name = posixpath.split(path)
        return self.names(folder).get(name) is False

    def is_folder(self, path: str) -> bool:
        """Whether the path names a folder, or a link to one."""
        folder, name = posixpath.split(path)
        return path == "" or self.names(folder).get(name) is True

    def canonical(self, path: str) -> str | None:
        """The one path by which a file is known, symlinks followed; None when it leaves the tree or loops."""
        if path not in self._canonical:
            self._canonical[path] = self._resolve(path)
        return self._canonical[path]

    def _resolve(self, path: str) -> str | None:
        try:
            real = os.path.realpath(os.path.join(self.root, path))
        except (OSError, ValueError):
            return None
        if real == self.root:
            return ""
        prefix = self.root.rstrip("/") + "/"
        return real[len(prefix) :] if real.startswith(prefix) and os.path.lexists(real) else None

    def read(self, path: str) -> bytes:
        """The bytes of a regular file inside the tree.

        Raises:
            Unreadable: it is missing, leaves the tree, is no regular file, or is larger than `LARGEST`.
        """
        if path not in self._bytes:
            self._bytes[path] = self.load(path)
        return self._bytes[path]

    def load(self, path: str) -> bytes:
        """Like `read`, without keeping the bytes."""
        inside = self.canonical(path)
        if inside is None:
            raise Unreadable("it doesn't exist inside the tree")
        full = os.path.join(self.root, inside)
        try:
            status = os.stat(full)
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable("it isn't a regular file")
            if status.st_size > LARGEST:
                raise Unreadable(f"it is {status.st_size:,} bytes long, over {LARGEST:,}")
            # Even if a fifo takes the file's place now, opening it can't block.
            descriptor = os.open(full, os.O_RDONLY | os.O_NONBLOCK)
            with open(descriptor, "rb") as stream:
                return stream.read(LARGEST + 1)
        except OSError as error:
            raise Unreadable(error.strerror or "it can't be opened") from None

    def walk(self, left_out: Container[str]) -> Iterator[str]:
        """Paths of the Python files, in no order; links aren't followed, folders of these names are left out."""
        for folder, folders, names in os.walk(self.root):
            folders[:] = [f for f in folders if f not in left_out]
            inside = os.path.relpath(folder, self.root)
            prefix = "" if inside == "." else inside + "/"
            yield from (prefix + name for name in names if name.endswith(".py"))

    def load_walked(self, path: str) -> bytes:
        """Like `load`, for a path that `walk` gave: a plain file needs no look at where its path leads."""
        try:
            descriptor = os.open(f"{self.root}/{path}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except (OSError, ValueError):
            return self.load(path)
        with open(descriptor, "rb", buffering=0) as stream:
            size = os.fstat(descriptor).st_size
            return (stream.read(size) or b"") if size <= LARGEST else b""

    def contains(self, path: str, needle: bytes) -> bool:
        """Whether a readable file holds these bytes."""
        try:
            return needle in self.read(path)
        except Unreadable:
            return False

    def require(self, path: str) -> str:
        """The canonical path of a text file that a user named.

        Raises:
            InsideError: it lies outside the tree, is missing, a folder, unreadable or not text.
        """
        full = regular(self.root, path)
        found = os.path.relpath(full, self.root)
        try:
            data = self.read(found)
        except Unreadable as error:
            raise InsideError(f"{path}: can't be read: {error}") from None
        if b"\0" in data[:8192]:
            raise InsideError(f"{path}: not a text file (it holds NUL bytes)")
        return found


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads in a circle
        return False


def decode(data: bytes) -> str:
    r"""Source bytes as text: byte order mark, coding cookie, then UTF-8; what doesn't decode is replaced.

    Line ends become `\n`, as Python's own tokenizer counts lines, and form feeds before a line go.
    """
    encoding = "utf-8"
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    else:
        for line in data.split(b"\n", 2)[:2]:
            cookie = _COOKIE.match(line)
            if cookie:
                encoding = cookie.group(1).decode("ascii", "replace")
                break
    try:
        text = data.decode(encoding, "replace")
    except (LookupError, ValueError):
        text = data.decode("utf-8", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n\f", "\n")
