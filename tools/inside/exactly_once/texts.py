"""The text of a tree's Python files, read once: which define a class, which hold a word."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..source import Tree, Unreadable

_HEAD = re.compile(rb"class[ \t]+(\w+)[ \t]*\(([^)]*)\)")
_IDENTIFIER = re.compile(rb"\w+")
_SKIPPED = {"test", "tests", "docs", "node_modules", ".git", "__pycache__"}


class Texts:
    """The Python files of a tree, tests left out."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._sources: list[str] | None = None
        self._data: dict[str, bytes] = {}
        self._classes: dict[str, list[tuple[str, str]]] | None = None
        self._holding: dict[bytes, list[str]] = {}
        self._stored: dict[str, bool] = {}

    @property
    def sources(self) -> list[str]:
        """Their paths, in order."""
        if self._sources is None:
            self._sources = sorted(self.tree.walk(_SKIPPED))
        return self._sources

    def data(self, path: str) -> bytes:
        """A file's bytes, none where it can't be read."""
        found = self._data.get(path)
        if found is None:
            found = self._data[path] = self._read(path)
        return found

    def _read(self, path: str) -> bytes:
        try:
            return self.tree.load_walked(path)
        except Unreadable:
            return b""

    def holding(self, needle: bytes) -> list[str]:
        """The files that hold these bytes."""
        if needle not in self._holding:
            self._holding[needle] = [path for path in self.sources if needle in self.data(path)]
        return self._holding[needle]

    def stored(self, name: str) -> bool:
        """Whether something could set an attribute of that name on an object from outside its class.

        A store (`x.name = …`), a keyword argument, or the name as a string other than in `getattr` and `hasattr`.
        """
        if name not in self._stored:
            word = re.escape(name.encode())
            quoted = rb"(?<![\w.])(?:getattr|hasattr)\(\s*[^,\n]+,\s*[\"']%s[\"']" % word
            store = re.compile(
                rb"\.%s\s*(?::[^=\n]*)?(?:[-+*/|&]?=)(?!=)|[(,]\s*%s\s*=(?!=)|^\s*%s\s*=(?!=)[^\n]*,\s*$"
                % (word, word, word),
                re.MULTILINE,
            )
            self._stored[name] = any(
                store.search(data) or _count(data, name) > len(re.findall(quoted, data))
                for data in map(self.data, self.holding(name.encode()))
            )
        return self._stored[name]

    @property
    def classes(self) -> dict[str, list[tuple[str, str]]]:
        """For each base's name, the classes of the tree that name it as a base: (path, class)."""
        if self._classes is None:
            self._classes = {}
            for path in self.sources:
                for name, bases in _heads(self.data(path)):
                    for base in _IDENTIFIER.findall(bases):
                        self._classes.setdefault(base.decode("ascii", "replace"), []).append((path, name))
        return self._classes


def _count(data: bytes, name: str) -> int:
    return data.count(f'"{name}"'.encode()) + data.count(f"'{name}'".encode())


def _heads(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and bases of the classes that stand flush left."""
    data = b"\n" + data
    at = data.find(b"\nclass")
    while at >= 0:
        match = _HEAD.match(data, at + 1)
        if match is not None:
            yield match[1].decode("ascii", "replace"), match[2]
        at = data.find(b"\nclass", at + 1)
