"""Find a file that a user named inside a tree, without ever leaving the tree."""

from __future__ import annotations

import difflib
import errno
import os
import re
import stat

from .fail import InsideError


def resolve(root: str, name: str) -> str:
    """Absolute path of `name` below `root`, symbolic links followed.

    Raises:
        InsideError: no such file (with the nearest name), outside the tree, or a loop of links.
    """
    plain = from_shown(name)
    if "\0" in plain:
        raise InsideError(f"{name!r}: a path can't hold a NUL")
    path = os.path.normpath(os.path.join(root, plain))
    real_root = os.path.realpath(root)
    if not within(path, os.path.normpath(root)):
        raise InsideError(f"{name}: outside the tree; paths are relative to its root")
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise InsideError(f"{name}: no such file in the tree{nearest(path)}") from None
    except OSError as error:
        raise InsideError(f"{name}: can't be reached: {error.strerror}") from error
    try:
        real = os.path.realpath(path, strict=True)
    except OSError as error:
        raise InsideError(_broken(name, path, error)) from error
    if not within(real, real_root):
        raise InsideError(f"{name}: a symbolic link that leads out of the tree, to {to_shown(real)}; it isn't followed")
    return real


_UNSHOWN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\udc80-\udcff]|" + r"\\(?=x[0-9a-f]{2})"
)
r"""What a name or a line can hold that would disturb a terminal, hide, or be taken for one of our own `\xNN`."""


def to_shown(name: str) -> str:
    r"""A name as it is shown: control characters, marks of direction and bytes that aren't UTF-8 as `\xNN`."""
    return _UNSHOWN.sub(escape, name)


def escape(found: re.Match[str]) -> str:
    r"""What was found as `\xNN`, byte by byte."""
    return "".join(rf"\x{byte:02x}" for byte in found[0].encode("utf-8", "surrogateescape"))


def from_shown(name: str) -> str:
    """The inverse of `to_shown`."""
    raw = re.sub(
        rb"\\x([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), name.encode("utf-8", "surrogateescape")
    )
    return raw.decode("utf-8", "surrogateescape")


def regular(root: str, name: str) -> str:
    """Like `resolve`, for a file that is to be read.

    Raises:
        InsideError: as `resolve`, or it is a folder, pipe, socket or device, or can't be read.
    """
    path = resolve(root, name)
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise InsideError(f"{name}: a folder, not a file; it holds {_listing(path)}")
    if not stat.S_ISREG(mode):
        raise InsideError(f"{name}: not a regular file (a pipe, socket or device)")
    if not os.access(path, os.R_OK):
        raise InsideError(f"{name}: can't be read: permission denied")
    return path


def within(path: str, root: str) -> bool:
    """Whether `path` is `root` or lies below it."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def nearest(path: str) -> str:
    """`; did you mean 'x'?` from the names beside a path that isn't there; names the first folder that isn't either."""
    folder, name = os.path.split(path)
    missing = ""
    while not os.path.isdir(folder) and folder != "/":
        folder, name = os.path.split(folder)
        missing = f"; there is no folder '{to_shown(name)}' either"
    near = difflib.get_close_matches(name, _names(folder), n=1, cutoff=0.6)
    return missing + (f"; did you mean '{to_shown(near[0])}'?" if near else "")


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _broken(name: str, path: str, error: OSError) -> str:
    if not os.path.islink(path):
        return f"{name}: can't be reached: {error.strerror}"
    target = to_shown(os.readlink(path))
    kind = "leads in a circle" if error.errno == errno.ELOOP else "leads to nothing inside the sandbox"
    return f"{name}: a symbolic link to {target} that {kind}"


def _listing(path: str) -> str:
    names = _names(path)
    shown = ", ".join(map(to_shown, names[:12]))
    return f"{len(names)} entries: {shown}{', …' if len(names) > 12 else ''}" if names else "nothing"
