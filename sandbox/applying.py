"""Patches applied into a layer, as git and GNU patch would apply them to the tree."""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from unidiff.patch import PatchedFile

from .errors import PatchError
from .hunks import Text
from .layer import Entry, Layer
from .patches import LINK, MODULE, Patch, names, shown_name, stripped
from .yamlfile import did_you_mean

EPOCH = re.compile(r"(1970-01-01|1969-12-31) \d\d:\d\d:\d\d(\.0+)?( [+-]\d{4})?$")
"""The time stamp by which `diff -N` says that a file is not there."""


BEFORE, AFTER = "before", "after"


def apply_patches(
    layer: Layer, patches: Sequence[Patch], *, reverse: bool = False, steps: Path | None = None
) -> list[str]:
    """Apply patches in order (or take them out, last first) into `layer`.

    Hunks must match the tree's lines exactly; a hunk may stand at other line numbers, which is noted.

    Args:
        layer: what to change.
        patches: in the order in which they belong on top of each other.
        reverse: take them out instead.
        steps: where to keep each patch's files as it found and as it left them, in `<id>/before/` and `<id>/after/`.

    Returns:
        Notes for a reader: moved hunks, and files of a patch that this tree doesn't ship.

    Raises:
        PatchError: a hunk doesn't fit; names patch, file, hunk and the first line that differs.
        SandboxUnavailable: a file can't be hidden on this kernel.
    """
    notes: list[str] = []
    for patch in reversed(patches) if reverse else patches:
        try:
            application = _Application(layer, patch, reverse)
            found, left = (AFTER, BEFORE) if reverse else (BEFORE, AFTER)
            _keep(layer, application.touched(), steps and steps / patch.id / found)
            notes += application.apply()
            _keep(layer, application.touched(), steps and steps / patch.id / left)
        except PatchError as error:
            raise PatchError(f"{patch.path}: {error}") from error
    return notes


def _keep(layer: Layer, names: list[str], folder: Path | None) -> None:
    """Copy the named files, as seen through the layer, into a folder of their own."""
    if folder is None:
        return
    folder.mkdir(parents=True)
    for name in names:
        entry = layer.read(name)
        if entry is not None:
            Layer(folder, folder).write(name, entry)


def _commits(files: list[PatchedFile], text: str) -> list[list[PatchedFile]]:
    """The files of each commit in a patch file, which may hold several: at a mail's first line, or a file's return.

    Within a commit a file stands once. Without mails, a renamed file's own change is taken for an earlier commit's.
    """
    starts = [n for n, line in enumerate(text.split("\n"), 1) if re.match(r"From [0-9a-f]{40} ", line)]
    groups: list[list[PatchedFile]] = []
    seen: set[tuple[int, str | None]] = set()
    for file in files:
        mail, (before, after) = bisect.bisect(starts, file.diff_line_no or 0), names(file)
        key = (mail, shown_name(file))
        renamed = before is not None and after is not None and before != after and not _is_copy(file)
        returns = key in seen or (renamed and not starts and (mail, before) in seen)
        if not groups or returns or all(number != mail for number, _ in seen):
            groups.append([])
            seen = set()
        seen.add(key)
        groups[-1].append(file)
    return groups


def _is_copy(file: PatchedFile) -> bool:
    return any(line.startswith("copy from ") for line in file.patch_info or ())


@dataclass(frozen=True)
class _Change:
    """What becomes of one file: a name to hide, a name to write, whether that name must be free, and what to write."""

    gone: str | None
    name: str | None
    new: bool
    entry: Entry


class _Application:
    """One patch going into (or out of) one layer."""

    def __init__(self, layer: Layer, patch: Patch, reverse: bool) -> None:
        self.layer, self.patch, self.reverse = layer, patch, reverse
        self.notes: list[str] = []
        self.files = patch.parsed()
        self.strip = self._strip(self.files)

    def apply(self) -> list[str]:
        groups = _commits(self.files, self.patch.text)
        for group in reversed(groups) if self.reverse else groups:
            self._group(group, self.strip)
        return self.notes

    def touched(self) -> list[str]:
        """Every file that the patch names and that has a place in this tree."""
        found = {n for file in self.files for n in names(file) if n and (not self.strip or self._fits(n, self.strip))}
        return sorted(stripped(name, self.strip) for name in found)

    def _group(self, files: list[PatchedFile], strip: int) -> None:
        """All of a commit at once: its copies and renames speak of the tree before it, and deletions make room."""
        changes = [change for file in files if (change := self._change(file, strip))]
        for change in changes:
            if change.gone:
                self.layer.delete(change.gone)
        for change in changes:
            if change.name and change.new:
                self._refuse_over(change.name)
            if change.name:
                self.layer.write(change.name, change.entry)

    def _names(self, file: PatchedFile) -> tuple[str | None, str | None]:
        before, after = names(file)
        return (after, before) if self.reverse else (before, after)

    def _strip(self, files: list[PatchedFile]) -> int:
        """Leading folders to drop: a patch against `python/sglang/x.py` fits a tree that holds `sglang/x.py`."""
        names = [n for f in files if (n := self._names(f)[0]) is not None]
        deepest = max((len(PurePosixPath(n).parts) for n in names), default=1)
        refused: list[PatchError] = []
        fitting = [sum(self._has(stripped(n, strip), refused) for n in names) for strip in range(deepest)]
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

    def _change(self, file: PatchedFile, strip: int) -> _Change | None:
        """What a file's part of the patch comes to; None, and a note, where it has no place in this tree."""
        before, after = self._names(file)
        known = before if before is not None else after
        if strip and known is not None and not self._fits(known, strip):
            top = PurePosixPath(known).parts[0]
            self.notes.append(f"{self.patch.id}: {known} left out: the tree doesn't ship {top}/ files of this kind")
            return None
        before, after = (n and stripped(n, strip) for n in (before, after))
        name = before or after or ""
        if MODULE in (file.source_mode, file.target_mode):
            self.notes.append(f"{self.patch.id}: {name} left out: a submodule, whose files aren't in the patch")
            return None
        entry = self._before(file, before)
        if file.is_binary_file:
            raise PatchError(f"{name}: a binary change can't be applied from a text diff")
        text = Text(entry.text if entry else "", name, self.reverse).apply(file, self.notes)
        result = Entry(text, self._mode(file, entry))
        return self._moved(file, before, None if self._vanishes(file) else after, result)

    def _moved(self, file: PatchedFile, before: str | None, after: str | None, entry: Entry) -> _Change:
        if _is_copy(file) and self.reverse:
            return _Change(before, None, False, entry)
        gone = before if before != after and not _is_copy(file) else None
        return _Change(gone, after, before != after, entry)

    def _vanishes(self, file: PatchedFile) -> bool:
        """Whether `diff -N` says by an epoch time stamp that the emptied file is gone (as GNU patch reads it)."""
        stamp = file.source_timestamp if self.reverse else file.target_timestamp
        return self._side(file, before=False) == (0, 0) and bool(EPOCH.match(stamp or ""))

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
        if file and entry.is_link != (self._stated_mode(file, before=True) == LINK):
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
