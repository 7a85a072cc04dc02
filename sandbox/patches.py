"""Patch files: read, named, and applied into a layer over a tree that itself stays untouched."""

from __future__ import annotations

import codecs
import email.errors
import email.header
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchedFile, PatchSet

from .deployment import PatchEntry
from .errors import PatchError
from .hunks import Text
from .layer import Entry, Layer
from .yamlfile import did_you_mean

MAX_PATCH_BYTES = 64 << 20
NOWHERE = "/dev/null"
_LINK, _MODULE = "120000", "160000"
"""git's modes of a symbolic link and of a submodule."""
_EPOCH = re.compile(r"(1970-01-01|1969-12-31) \d\d:\d\d:\d\d(\.0+)?( [+-]\d{4})?$")


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
    files = [_shown_name(f) for f in _parse(text, path)]
    if not files:
        raise PatchError(f"{path}: no change in it; a unified diff (git diff, git format-patch, diff -u) is needed")
    ident = entry.id or re.sub(r"[^A-Za-z0-9._+-]+", "-", path.stem)
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
            _shown_name(file)
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
    words = " ".join(found[1].split())
    try:
        decoded = str(email.header.make_header(email.header.decode_header(words)))
    except (LookupError, ValueError, email.errors.HeaderParseError):
        decoded = words
    return re.sub(r"^\[PATCH[^\]]*\]\s*", "", decoded)


def _names(file: PatchedFile) -> tuple[str | None, str | None]:
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


def _shown_name(file: PatchedFile) -> str:
    before, after = _names(file)
    name = after or before
    if name is None or not PurePosixPath(name).parts:
        raise PatchError("a change without a file name")
    if ".." in PurePosixPath(name).parts or "\0" in name:
        raise PatchError(f"{name!r}: a patch may only name files inside the tree")
    return name


def _check_modes(file: PatchedFile) -> None:
    for mode in (file.source_mode, file.target_mode):
        if mode is not None and not re.fullmatch(f"100[0-7]{{3}}|{_LINK}|{_MODULE}", mode):
            raise PatchError(f"{_shown_name(file)}: {mode} is no file mode that git knows")


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
    places = (_strip(name, strip) for strip in range(len(PurePosixPath(name).parts)))
    return next((place for place in places if not place.startswith("/") and has(place)), None)


def apply_patches(layer: Layer, patches: Sequence[Patch], *, reverse: bool = False) -> list[str]:
    """Apply patches in order (or take them out, last first) into `layer`.

    Hunks must match the tree's lines exactly; a hunk may stand at other line numbers, which is noted.

    Returns:
        Notes for a reader: moved hunks, and files of a patch that this tree doesn't ship.

    Raises:
        PatchError: a hunk doesn't fit; names patch, file, hunk and the first line that differs.
        SandboxUnavailable: a file can't be hidden on this kernel.
    """
    notes: list[str] = []
    for patch in reversed(patches) if reverse else patches:
        try:
            notes += _Application(layer, patch, reverse).apply()
        except PatchError as error:
            raise PatchError(f"{patch.path}: {error}") from error
    return notes


class _Application:
    """One patch going into (or out of) one layer."""

    def __init__(self, layer: Layer, patch: Patch, reverse: bool) -> None:
        self.layer, self.patch, self.reverse = layer, patch, reverse
        self.notes: list[str] = []

    def apply(self) -> list[str]:
        files = self.patch.parsed()
        strip = self._strip(files)
        for file in reversed(files) if self.reverse else files:
            self._file(file, strip)
        return self.notes

    def _names(self, file: PatchedFile) -> tuple[str | None, str | None]:
        before, after = _names(file)
        return (after, before) if self.reverse else (before, after)

    def _strip(self, files: list[PatchedFile]) -> int:
        """Leading folders to drop: a patch against `python/sglang/x.py` fits a tree that holds `sglang/x.py`."""
        names = [n for f in files if (n := self._names(f)[0]) is not None]
        deepest = max((len(PurePosixPath(n).parts) for n in names), default=1)
        refused: list[PatchError] = []
        fitting = [sum(self._has(_strip(n, strip), refused) for n in names) for strip in range(deepest)]
        if any(fitting):
            return fitting.index(max(fitting))
        new = [file for file in files if self._is_new(file)]
        if len(new) == len(files):
            return self._strip_of_new([n for f in files if (n := self._names(f)[1])])
        if refused:
            raise refused[0]
        raise PatchError(f"none of its files is in {self.layer.root}, e.g. {names[0]}{self._hint(names[0])}")

    def _strip_of_new(self, names: list[str]) -> int:
        """For a patch that only adds files: as many folders off as let the first that stays be in the tree."""
        for strip in range(min(len(PurePosixPath(n).parts) for n in names)):
            if any((self.layer.root / PurePosixPath(n).parts[strip]).is_dir() for n in names):
                return strip
        return 0

    def _hint(self, name: str) -> str:
        known = [p.name for p in self.layer.root.iterdir()] if self.layer.root.is_dir() else []
        return did_you_mean(PurePosixPath(name).parts[0], known)

    def _has(self, name: str, refused: list[PatchError]) -> bool:
        if not name or name.startswith("/"):
            return False
        try:
            return self.layer.read(name) is not None
        except PatchError as error:
            refused.append(error)
            return False

    def _is_new(self, file: PatchedFile) -> bool:
        """Whether the change begins with no file, or with one that may as well be missing, as `diff -N` writes it."""
        return self._names(file)[0] is None or self._side(file, before=True) == (0, 0)

    def _side(self, file: PatchedFile, *, before: bool) -> tuple[int, int] | None:
        """Start and length of the only hunk on one side; None when there are several, or none."""
        if len(file) != 1:
            return None
        hunk = file[0]
        old, new = (hunk.source_start, hunk.source_length), (hunk.target_start, hunk.target_length)
        return old if before != self.reverse else new

    def _file(self, file: PatchedFile, strip: int) -> None:
        before, after = self._names(file)
        known = before if before is not None else after
        if strip and known is not None and not self._fits(known, strip):
            top = PurePosixPath(known).parts[0]
            self.notes.append(f"{self.patch.id}: {known} left out: the tree doesn't ship {top}/ files of this kind")
            return
        before, after = (n and _strip(n, strip) for n in (before, after))
        name = before or after or ""
        if _MODULE in (file.source_mode, file.target_mode):
            self.notes.append(f"{self.patch.id}: {name} left out: a submodule, whose files aren't in the patch")
            return
        entry = self._before(file, before)
        if after and before != after:
            self._refuse_over(after)
        if file.is_binary_file:
            raise PatchError(f"{name}: a binary change can't be applied from a text diff")
        text = Text(entry.text if entry else "", name, self.reverse).apply(file, self.notes)
        self._put(file, before, None if self._vanishes(file) else after, Entry(text, self._mode(file, entry)))

    def _put(self, file: PatchedFile, before: str | None, after: str | None, entry: Entry) -> None:
        copied = any(line.startswith("copy from ") for line in file.patch_info or ())
        if before and before != after and not (copied and not self.reverse):
            self.layer.delete(before)
        if after and not (copied and self.reverse):
            self.layer.write(after, entry)

    def _vanishes(self, file: PatchedFile) -> bool:
        """Whether `diff -N` says by an epoch time stamp that the emptied file is gone (as GNU patch reads it)."""
        stamp = file.source_timestamp if self.reverse else file.target_timestamp
        return self._side(file, before=False) == (0, 0) and bool(_EPOCH.match(stamp or ""))

    def _fits(self, name: str, strip: int) -> bool:
        """Whether a file lies below the part of the repository that the tree is made of."""
        parts = PurePosixPath(name).parts
        return len(parts) > strip and (self.layer.root / parts[strip]).exists()

    def _before(self, file: PatchedFile, name: str | None) -> Entry | None:
        """The file as it is; None for one that the patch creates.

        Raises:
            PatchError: it is missing, or a symbolic link where the patch means a file.
        """
        entry = self.layer.read(name) if name else None
        if name is None or (entry is None and self._is_new(file)):
            return None
        if entry is None:
            folder = (self.layer.root / name).parent
            near = did_you_mean(PurePosixPath(name).name, [p.name for p in folder.iterdir()]) if folder.is_dir() else ""
            raise PatchError(f"{name} isn't in {self.layer.root}{near}")
        if file and entry.is_link != (self._stated_mode(file, before=True) == _LINK):
            raise PatchError(f"{name}: {'a symbolic link' if entry.is_link else 'no symbolic link'} in the tree")
        return entry

    def _refuse_over(self, name: str) -> None:
        if self.layer.read(name) is not None:
            what = "the patch deletes it" if self.reverse else "the patch creates it"
            raise PatchError(f"{name}: {what}, but it is already in the tree")

    def _stated_mode(self, file: PatchedFile, *, before: bool) -> str | None:
        return file.source_mode if before != self.reverse else file.target_mode

    def _mode(self, file: PatchedFile, entry: Entry | None) -> int:
        old, new = (self._stated_mode(file, before=side) for side in (True, False))
        if entry and (new is None or new == old):
            return entry.mode
        return int(new or "100644", 8)


def _strip(name: str, levels: int) -> str:
    return str(PurePosixPath(*PurePosixPath(name).parts[levels:]))
