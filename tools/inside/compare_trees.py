"""List two trees and find what differs, without following links or opening anything but regular files."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from .fail import InsideError
from .paths import from_shown, to_shown

PIECE = 1 << 20
IGNORED_FOLDERS = frozenset({b".git", b"__pycache__"})
TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "symlink", stat.S_IFIFO: "fifo",
         stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}  # fmt: skip


@dataclass
class Listing:
    """Every entry below some paths of one tree, by name relative to the root, and how many were ignored, by reason."""

    entries: dict[bytes, os.stat_result] = field(default_factory=dict)
    ignored: dict[str, int] = field(default_factory=dict)
    unreadable: dict[bytes, str] = field(default_factory=dict)


@dataclass
class Difference:
    """One differing entry: `change` is modified, added, deleted, symlink, mode or type; sizes in bytes."""

    name: bytes
    change: str
    note: str = ""
    size: int = 0


def printable(name: bytes) -> str:
    """A name as the other tools show it: odd characters and bytes are spelled as `to_shown` does."""
    return to_shown(name.decode("utf-8", "surrogateescape"))


def type_of(entry: os.stat_result) -> str:
    """`file`, `folder`, `symlink`, `fifo`, `socket` or `device`."""
    return TYPES.get(stat.S_IFMT(entry.st_mode), "device")


def listing(root: bytes, paths: list[bytes]) -> Listing:
    """Everything below `paths` of a tree, folders excluded; links are entries, not ways."""
    found = Listing()
    for path in paths:
        full = os.path.join(root, path) if path else root
        try:
            entry = os.lstat(full)
        except OSError:
            continue
        if stat.S_ISDIR(entry.st_mode):
            _below(root, path, found)
        else:
            found.entries[path] = entry
    return found


def _below(root: bytes, path: bytes, found: Listing) -> None:
    waiting = [path]
    while waiting:
        folder = waiting.pop()
        try:
            entries = list(os.scandir(os.path.join(root, folder) if folder else root))
        except OSError as error:
            found.unreadable[folder] = f"folder can't be read: {error.strerror}"
            continue
        for each in entries:
            name = os.path.join(folder, each.name) if folder else each.name
            is_folder = each.is_dir(follow_symlinks=False)
            reason = _ignored(each.name, is_folder)
            if reason:
                found.ignored[reason] = found.ignored.get(reason, 0) + 1
            elif is_folder:
                waiting.append(name)
            else:
                _enter(each, name, found)


def _enter(entry: os.DirEntry[bytes], name: bytes, found: Listing) -> None:
    try:
        found.entries[name] = entry.stat(follow_symlinks=False)
    except OSError as error:
        found.unreadable[name] = f"can't be looked at: {error.strerror}"


def _ignored(name: bytes, is_folder: bool) -> str:
    if is_folder and name in IGNORED_FOLDERS:
        return f"{name.decode()} folder"
    return "compiled Python (*.pyc)" if name.endswith(b".pyc") and not is_folder else ""


def read(path: bytes) -> bytes:
    """A regular file's bytes.

    Raises:
        OSError: it can't be read, or isn't (any longer) a regular file.
    """
    with open(opened(path), "rb") as stream:
        return stream.read()


def opened(path: bytes) -> int:
    """A descriptor for reading; a fifo, device or link is refused instead of waited for or followed."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(0, "not a regular file")
    return handle


def equal_bytes(a: bytes, b: bytes) -> bool:
    """Whether two files of the same size hold the same bytes; reads no more than a mebibyte at a time."""
    with open(opened(a), "rb", buffering=0) as x, open(opened(b), "rb", buffering=0) as y:
        while True:
            left, right = x.read(PIECE), y.read(PIECE)
            if left != right:
                return False
            if not left:
                return True


def requested(paths: list[str], root: bytes, stock: bytes) -> list[bytes]:
    """The paths to compare, as names relative to the roots; the whole tree when none is given.

    Raises:
        InsideError: a path leaves the tree, goes through a link, or is in neither tree (with what is near it).
    """
    return sorted({_requested(path, (root, stock)) for path in paths}) or [b""]


def _requested(path: str, roots: tuple[bytes, bytes]) -> bytes:
    raw = from_shown(path).encode("utf-8", "surrogateescape")
    for root in roots:
        if raw == root or raw.startswith(root + b"/"):
            raw = raw[len(root) :]
    name = os.path.normpath(raw.lstrip(b"/") or b".")
    if name == b".":
        return b""
    if (name.startswith(b"..") and name.split(b"/")[0] == b"..") or b"\0" in name:
        raise InsideError(f"{path}: leaves the tree; give a path relative to its root")
    if not any(_there(root, name, path) for root in roots):
        raise InsideError(f"{path}: neither in the clone nor in stock{_near(roots, name)}")
    return name


def _there(root: bytes, name: bytes, path: str) -> bool:
    at = root
    pieces = name.split(b"/")
    for n, piece in enumerate(pieces):
        at = os.path.join(at, piece)
        if not os.path.lexists(at):
            return False
        if os.path.islink(at) and n < len(pieces) - 1:
            raise InsideError(f"{path}: goes through the symlink {printable(b'/'.join(pieces[: n + 1]))}")
    return True


def _near(roots: tuple[bytes, bytes], name: bytes) -> str:
    """The names in the nearest existing folder that look like the missing one."""
    folder, missing = os.path.split(name)
    for root in roots:
        full = os.path.join(root, folder)
        if os.path.isdir(full) and not os.path.islink(full):
            names = [printable(each) for each in os.listdir(full)]
            close = difflib.get_close_matches(printable(missing), names, 3, 0.6)
            if close:
                return "; near it: " + ", ".join(os.path.join(printable(folder), each) for each in close)
    return "; paths are relative to the tree's root"


def differences(root: bytes, stock: bytes, new: Listing, old: Listing) -> Iterator[Difference | bytes]:
    """Entries in name order: a Difference, or the bare name of one that is the same on both sides.

    Raises:
        OSError: never; what can't be read is noted in the listing's `unreadable`.
    """
    for name in sorted(new.entries.keys() | old.entries.keys()):
        if name in new.unreadable or name in old.unreadable:
            continue
        a, b = old.entries.get(name), new.entries.get(name)
        if a is None or b is None:
            yield _one_sided(name, a, b)
            continue
        try:
            yield _both(os.path.join(stock, name), os.path.join(root, name), name, a, b) or name
        except OSError as error:
            new.unreadable[name] = f"can't be read: {error.strerror}"


def _one_sided(name: bytes, a: os.stat_result | None, b: os.stat_result | None) -> Difference:
    entry = b or a
    assert entry is not None
    kind = type_of(entry)
    return Difference(name, "added" if b else "deleted", "" if kind == "file" else kind, entry.st_size)


def _both(stock: bytes, clone: bytes, name: bytes, a: os.stat_result, b: os.stat_result) -> Difference | None:
    kinds = type_of(a), type_of(b)
    if kinds[0] != kinds[1]:
        return Difference(name, "type", f"{kinds[0]} became {kinds[1]}")
    if kinds[0] == "symlink":
        targets = os.readlink(stock), os.readlink(clone)
        note = f"{printable(targets[0])} → {printable(targets[1])}"
        return Difference(name, "symlink", note) if targets[0] != targets[1] else None
    if kinds[0] != "file":
        return None
    mode = _mode(a, b)
    one = a.st_dev == b.st_dev and a.st_ino == b.st_ino
    if not one and (a.st_size != b.st_size or not equal_bytes(stock, clone)):
        return Difference(name, "modified", mode, max(a.st_size, b.st_size))
    return Difference(name, "mode", mode) if mode else None


def _mode(a: os.stat_result, b: os.stat_result) -> str:
    """The executable bit, as git tracks it; other permissions depend on who unpacked the tree."""
    bits = a.st_mode & 0o100, b.st_mode & 0o100
    if bits[0] == bits[1]:
        return ""
    return f"mode {stat.S_IMODE(a.st_mode):o} → {stat.S_IMODE(b.st_mode):o}"
