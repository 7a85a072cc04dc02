"""Patch files: read, and named as the tree names their files."""

from __future__ import annotations

import codecs
import email.errors
import email.header
import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchedFile, PatchSet

from .deployment import PatchEntry
from .errors import PatchError

MAX_PATCH_BYTES = 64 << 20
NOWHERE = "/dev/null"
LINK, MODULE = "120000", "160000"
"""git's modes of a symbolic link and of a submodule."""


@dataclass(frozen=True)
class Patch:
    """One change between stock and deployed: a suspect.

    Attributes:
        id: the suspect's name.
        title: what it claims to do.
        path: the patch file.
        text: its content; bytes that aren't UTF-8 are kept as surrogate escapes.
        files: paths it touches, as the patch spells them without `a/` and `b/`.
    """

    id: str
    title: str
    path: Path
    text: str = field(repr=False)
    files: list[str]

    def parsed(self) -> list[PatchedFile]:
        """The changed files with their hunks."""
        return _parse(self.text, self.path)


def read_patches(entry: PatchEntry) -> list[Patch]:
    """The patches of one entry of sleuth.yaml: the file, or each `*.patch` and `*.diff` of the folder in name order.

    Raises:
        PatchError: nothing to read there, or a file that isn't a unified diff.
    """
    if not entry.path.is_dir():
        return [_read_patch(entry.path, entry)]
    found = sorted(p for p in entry.path.iterdir() if p.suffix in (".patch", ".diff"))
    if not found:
        raise PatchError(f"{entry.path}: no *.patch or *.diff in this folder")
    return [_read_patch(path, PatchEntry(path=path)) for path in found]


def _read_patch(path: Path, entry: PatchEntry) -> Patch:
    text = _text(path)
    files = [shown_name(f) for f in _parse(text, path)]
    if not files:
        raise PatchError(f"{path}: no change in it; a unified diff (git diff, git format-patch, diff -u) is needed")
    ident = entry.id or re.sub(r"[^A-Za-z0-9._+-]+", "-", path.stem).lstrip("._+-") or "patch"
    return Patch(ident, entry.title or _subject(text) or ident, path, text, files)


def _text(path: Path) -> str:
    try:
        if not path.is_file():
            raise PatchError(f"{path}: not a regular file")
        if path.stat().st_size > MAX_PATCH_BYTES:
            raise PatchError(f"{path}: {path.stat().st_size:,} bytes; a patch over {MAX_PATCH_BYTES:,} isn't read")
        raw = path.read_bytes()
    except OSError as error:
        raise PatchError(f"{path}: can't be read: {error.strerror}") from error
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise PatchError(f"{path}: UTF-16 text, as PowerShell writes; make it with `git diff --output=FILE`")
    return _unix_ends(raw.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape"))


def _unix_ends(text: str) -> str:
    """A patch that was converted to CRLF as a whole, headers too, as it was before; the lines of files stay."""
    heads = re.findall(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*$", text, re.MULTILINE)
    whole = bool(heads) and all(head.endswith("\r") for head in heads)
    return text.replace("\r\n", "\n") if whole else text


def _parse(text: str, path: Path) -> list[PatchedFile]:
    try:
        files = list(PatchSet(io.StringIO(text, newline="\n")))
        for file in files:
            shown_name(file)
            _check_modes(file)
        return files
    except (UnidiffParseError, ValueError) as error:
        raise PatchError(f"{path}: not a unified diff: {str(error).strip()}") from error
    except PatchError as error:
        raise PatchError(f"{path}: {error}") from error


def _subject(text: str) -> str:
    """The mail subject of a `git format-patch` file, its folded lines joined and its [PATCH n/m] mark taken off."""
    header = text.partition("\ndiff --git ")[0].partition("\n---\n")[0]
    found = re.search(r"^Subject: (.*(?:\n[ \t].*)*)", header, re.MULTILINE)
    if not found:
        return ""
    words = " ".join(found[1].encode("utf-8", "surrogateescape").decode("utf-8", "replace").split())
    try:
        decoded = str(email.header.make_header(email.header.decode_header(words)))
    except (LookupError, ValueError, email.errors.HeaderParseError):
        decoded = words
    return re.sub(r"^\[PATCH[^\]]*\]\s*", "", decoded)


def names(file: PatchedFile) -> tuple[str | None, str | None]:
    """A file's path before and after, as the patch spells them without `a/` and `b/`; None where there is no file."""
    pair = [None if _unended(n) == NOWHERE else _unprefixed(n) for n in (file.source_file, file.target_file)]
    before, after = pair
    if before is None or after is None or before == after or _is_git(file):
        return before, after
    name = _agreed(before, after)
    return name, name


def _is_git(file: PatchedFile) -> bool:
    return any(line.startswith("diff --git ") for line in file.patch_info or ())


def _agreed(before: str, after: str) -> str:
    """The one file that `diff -u` compared: what both paths end in (`old/x.py`, `new/x.py`), else the shorter name."""
    same: list[str] = []
    for left, right in zip(*(reversed(PurePosixPath(n).parts) for n in (before, after)), strict=False):
        if left != right or left == "/":
            break
        same.insert(0, left)
    return "/".join(same) or min(before, after, key=lambda name: len(PurePosixPath(name).name))


def shown_name(file: PatchedFile) -> str:
    """The path by which a changed file is known: its new one, unless it is deleted.

    Raises:
        PatchError: it has none, or one that leads out of any tree.
    """
    before, after = names(file)
    name = after or before
    if name is None or not PurePosixPath(name).parts:
        raise PatchError("a change without a file name")
    if ".." in PurePosixPath(name).parts or "\0" in name:
        raise PatchError(f"{name!r}: a patch may only name files inside the tree")
    return name


def _check_modes(file: PatchedFile) -> None:
    for mode in (file.source_mode, file.target_mode):
        if mode is not None and not re.fullmatch(f"100[0-7]{{3}}|{LINK}|{MODULE}", mode):
            raise PatchError(f"{shown_name(file)}: {mode} is no file mode that git knows")


def _unprefixed(name: str) -> str:
    return re.sub(r"^[ab]/", "", _unquoted(_unended(name)))


def _unended(name: str) -> str:
    return name.removesuffix("\r")


_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}


def _unquoted(name: str) -> str:
    r"""A path that git quoted (`"a/caf\303\251.py"`) as it is on disk."""
    if not (len(name) > 1 and name.startswith('"') and name.endswith('"')):
        return name

    def plain(found: re.Match[bytes]) -> bytes:
        code = found[1].decode("ascii")
        return bytes([_ESCAPES[code] if code in _ESCAPES else int(code, 8) & 0xFF])

    raw = name[1:-1].encode("utf-8", "surrogateescape")
    return re.sub(rb'\\([abtnvfr"\\]|[0-7]{1,3})', plain, raw).decode("utf-8", "surrogateescape")


def located(patch: Patch, has: Callable[[str], bool]) -> list[str]:
    """The files of a patch as the tree names them; those that the tree doesn't have are left out."""
    found = {name: _first(name, has) for name in patch.files}
    return [place for place in found.values() if place is not None]


def _first(name: str, has: Callable[[str], bool]) -> str | None:
    places = (stripped(name, strip) for strip in range(len(PurePosixPath(name).parts)))
    return next((place for place in places if not place.startswith("/") and has(place)), None)


def stripped(name: str, levels: int) -> str:
    """A path without its first folders."""
    return str(PurePosixPath(*PurePosixPath(name).parts[levels:]))
