"""The tree as it is with one state of a patch's files, as the patch found them or as it left them."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Container, Iterator

from .source import Tree, Unreadable


class Overlay(Tree):
    """A tree in which some files are another folder's; a file that only the other state has isn't there."""

    def __init__(self, root: str, state: str, other: str) -> None:
        super().__init__(root)
        self.state = Tree(state)
        self.touched = sorted({*files_below(state), *files_below(other)})

    def names(self, folder: str) -> dict[str, bool]:
        """See `Tree.names`."""
        fresh = folder not in self._names
        found = super().names(folder)
        if fresh:
            prefix = f"{folder}/" if folder else ""
            for path in self.touched:
                if path.startswith(prefix):
                    name, _, rest = path[len(prefix) :].partition("/")
                    if rest:
                        found.setdefault(name, True)
                    elif self.state.is_file(path):
                        found[name] = False
                    else:
                        found.pop(name, None)
        return found

    def canonical(self, path: str) -> str | None:
        """See `Tree.canonical`."""
        return posixpath.normpath(path) if path in self.touched else super().canonical(path)

    def load(self, path: str) -> bytes:
        """See `Tree.load`."""
        if path not in self.touched:
            return super().load(path)
        if not self.state.is_file(path):
            raise Unreadable("it doesn't exist inside the tree")
        return self.state.load(path)

    def walk(self, left_out: Container[str]) -> Iterator[str]:
        """See `Tree.walk`."""
        yield from (path for path in super().walk(left_out) if path not in self.touched)
        for path in self.touched:
            kept = not any(part in left_out for part in path.split("/")[:-1])
            if path.endswith(".py") and kept and self.state.is_file(path):
                yield path

    def load_walked(self, path: str) -> bytes:
        """See `Tree.load_walked`."""
        return self.load(path) if path in self.touched else super().load_walked(path)

    def require(self, path: str) -> str:
        """See `Tree.require`."""
        return path if path in self.touched and self.state.is_file(path) else super().require(path)


def files_below(root: str) -> list[str]:
    """Every file below a folder, relative to it."""
    found = []
    for folder, folders, names in os.walk(root):
        folders.sort()
        found += [posixpath.relpath(posixpath.join(folder, name), root) for name in sorted(names)]
    return found
