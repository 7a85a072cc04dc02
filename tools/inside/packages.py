"""Where imported modules lie: package roots, relative imports, namespace folders."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from .source import Tree

COMMON_ROOTS = ("", "python", "src", "lib")
"""Folders that repositories put on the import path, tried after the importing file's own root."""

_HIDDEN = (".", "_", "node_modules")


class Packages:
    """Finds module files by dotted name, by looking at file names only."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._roots: dict[str, str] = {}
        self._tops: dict[tuple[str, str], list[str]] = {}
        self._others: list[str] | None = None
        self._places: dict[tuple[str, tuple[str, ...], int], list[str]] = {}

    def places(self, importer: str, dotted: Sequence[str], level: int) -> list[str]:
        """Module files or package folders that an import statement's module part can mean.

        Args:
            importer: path of the importing file.
            dotted: the module's parts, without leading dots.
            level: the number of leading dots, 0 for an absolute import.
        """
        folder = posixpath.dirname(importer)
        key = (folder, tuple(dotted), level)
        if key not in self._places:
            self._places[key] = self._find(importer, dotted, level)
        return self._places[key]

    def _find(self, importer: str, dotted: Sequence[str], level: int) -> list[str]:
        if level:
            folder = posixpath.dirname(importer)
            ups = [".."] * (level - 1)
            start = posixpath.normpath(posixpath.join(folder, *ups)) if ups else folder
            if start.startswith(".."):
                return []
            starts = ["" if start == "." else start]
        else:
            starts = self.tops(importer, dotted[0])
        for start in starts:
            place: str | None = start
            for name in dotted:
                place = self.step(place, name) if place is not None else None
            if place is not None:
                return [place]
        return []

    def step(self, folder: str, name: str) -> str | None:
        """The module file or folder that a name means inside a folder; a package wins over a module."""
        path = posixpath.join(folder, name)
        names = self.tree.names(folder)
        if names.get(name) and self.init(path):
            return path
        if names.get(name + ".py") is False:
            return path + ".py"
        return path if names.get(name) else None

    def init(self, folder: str) -> str | None:
        """Path of a folder's `__init__.py`, None if it has none."""
        path = posixpath.join(folder, "__init__.py")
        return path if self.tree.is_file(path) else None

    def tops(self, importer: str, name: str) -> list[str]:
        """Folders in which a top-level module of this name lies, in the order Python would likely look."""
        root = self._root_of(posixpath.dirname(importer))
        if (root, name) not in self._tops:
            likely = list(dict.fromkeys([root, *COMMON_ROOTS]))
            found = [folder for folder in likely if self._is_module(folder, name)]
            if not found:
                found = [f for f in self._other_roots() if self.init(posixpath.join(f, name))]
            # Any folder can be a namespace package, so those come last.
            found += [f for f in likely if f not in found and self.step(f, name)]
            self._tops[root, name] = found
        return self._tops[root, name]

    def _is_module(self, folder: str, name: str) -> bool:
        path = posixpath.join(folder, name)
        return self.init(path) is not None or self.tree.is_file(path + ".py")

    def _root_of(self, folder: str) -> str:
        """The folder above a file's outermost package; its own folder when no package holds it."""
        if folder not in self._roots:
            outermost = None
            inner = folder
            while inner:
                if self.init(inner):
                    outermost = inner
                inner = posixpath.dirname(inner)
            self._roots[folder] = folder if outermost is None else posixpath.dirname(outermost)
        return self._roots[folder]

    def _other_roots(self) -> list[str]:
        """Folders up to two levels deep that aren't packages themselves."""
        if self._others is None:
            first = self._folders("")
            self._others = first + [inner for folder in first for inner in self._folders(folder)]
        return self._others

    def _folders(self, folder: str) -> list[str]:
        names = [n for n, is_folder in self.tree.names(folder).items() if is_folder]
        paths = [posixpath.join(folder, n) for n in sorted(names) if not n.startswith(_HIDDEN)]
        return [path for path in paths if self.init(path) is None]
