"""Changed files over a tree that itself is never written; the same folder serves as an overlay's upper part."""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .errors import PatchError, SandboxUnavailable


@dataclass(frozen=True)
class Entry:
    """A file of the tree, or a symbolic link, whose text is then its target, as in git.

    Attributes:
        text: its content; bytes that aren't UTF-8 are kept as surrogate escapes.
        mode: kind and permissions, as stat gives them.
    """

    text: str
    mode: int

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self.mode)


@dataclass(frozen=True)
class Layer:
    """Changed files of `root`, kept in `folder`; a deleted file is an overlay whiteout there."""

    root: Path
    folder: Path

    def read(self, name: str) -> Entry | None:
        """A file as seen through the layer; None when there is no such file.

        Raises:
            PatchError: the name leads out of the tree or beyond a symbolic link, or isn't a regular file.
        """
        for base in (self.folder, self.root):
            path = _inside(base, name)
            if os.path.lexists(path):
                return self._entry(path, name)
            if base == self.folder and _hidden(base, name):
                return None
        return None

    def _entry(self, path: Path, name: str) -> Entry | None:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return Entry(os.readlink(path), mode)
        if path.parent.is_relative_to(self.folder) and stat.S_ISCHR(mode):
            return None
        if stat.S_ISDIR(mode) and not self._files_below(name):
            return None
        if not stat.S_ISREG(mode):
            raise PatchError(f"{name}: not a regular file in {self.root}")
        try:
            return Entry(path.read_bytes().decode("utf-8", "surrogateescape"), mode)
        except OSError as error:
            raise PatchError(f"{path}: can't be read: {error.strerror}") from error

    def write(self, name: str, entry: Entry) -> None:
        """Put a file or a symbolic link into the layer.

        Raises:
            PatchError: a folder that isn't empty stands there, or it can't be written.
        """
        self.read(name)  # refuses a folder that isn't empty
        try:
            place = self._cleared(name)
            if entry.is_link:
                place.symlink_to(entry.text)
            else:
                place.write_bytes(entry.text.encode("utf-8", "surrogateescape"))
                place.chmod(stat.S_IMODE(entry.mode) | stat.S_IRUSR)
        except (OSError, ValueError) as error:
            raise PatchError(f"{name}: can't be written to {self.folder}: {error}") from error

    def delete(self, name: str) -> None:
        """Hide a file of the tree.

        Raises:
            SandboxUnavailable: this kernel doesn't let a plain user do so.
        """
        place = self._cleared(name)
        if not os.path.lexists(self.root / name):
            return
        try:
            os.mknod(place, stat.S_IFCHR, os.makedev(0, 0))
        except PermissionError as error:
            raise SandboxUnavailable(
                f"{name} can't be hidden in the clone: without root that needs Linux 5.8 (this is {os.uname().release})"
            ) from error

    def _cleared(self, name: str) -> Path:
        """The place of a file in the layer, with nothing there and folders above it."""
        _inside(self.root, name)
        place = _inside(self.folder, name)
        for above in reversed(place.relative_to(self.folder).parents[:-1]):
            folder = self.folder / above
            if os.path.lexists(folder) and not folder.is_dir():
                folder.unlink()  # a deleted file makes way for a folder
            folder.mkdir(exist_ok=True)
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)  # `read` has seen that nothing shows through it any more
        place.unlink(missing_ok=True)
        return place

    def _files_below(self, name: str) -> bool:
        """Whether a folder, seen through the layer, still holds a file."""
        below = {path.relative_to(base) for base in (self.root, self.folder) for path in (base / name).rglob("*")}
        files = (str(path) for path in below if not any((base / path).is_dir() for base in (self.root, self.folder)))
        return any(self.read(file) is not None for file in files)


def _inside(base: Path, name: str) -> Path:
    """`base/name`, where no part above its last is a symbolic link; git refuses those too."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        raise PatchError(f"{name!r}: a patch may only name files inside the tree")
    for above in list(PurePosixPath(name).parents)[-2::-1]:
        link = base / above
        if os.path.islink(link):
            target = os.readlink(link)
            raise PatchError(f"{name}: {above} is a symbolic link to {target}; the patch must name the file itself")
    return base / name


def _hidden(base: Path, name: str) -> bool:
    """Whether a part above the last is no folder in the layer, so that nothing of the tree shows through below it."""
    above = [base / part for part in PurePosixPath(name).parents][:-1]
    return any(os.path.lexists(path) and not path.is_dir() for path in above)
