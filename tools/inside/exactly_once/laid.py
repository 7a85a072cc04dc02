"""A tree with other files laid over it: the source as it was before a patch."""

from __future__ import annotations

import posixpath

from ..source import Tree, Unreadable


class Laid(Tree):
    """The files of one root, some of them taken from another root instead and some not there.

    Attributes:
        over: the files that replace those of the root, or are added to it.
        gone: paths that are hidden.
    """

    def __init__(self, root: str, over: Tree, names: list[str], gone: set[str]) -> None:
        super().__init__(root)
        self.over, self.gone = over, gone
        self._laid = set(names)

    def names(self, folder: str) -> dict[str, bool]:
        """See `Tree.names`."""
        found = {n: f for n, f in super().names(folder).items() if posixpath.join(folder, n) not in self.gone}
        for path in self._laid:
            rest = posixpath.relpath(path, folder or ".")
            if not rest.startswith(".."):
                head, _, below = rest.partition("/")
                found[head] = bool(below)
        return found

    def canonical(self, path: str) -> str | None:
        """See `Tree.canonical`."""
        if path in self._laid:
            return path
        return None if path in self.gone else super().canonical(path)

    def load(self, path: str) -> bytes:
        """See `Tree.load`."""
        if path in self._laid:
            return self.over.load(path)
        if path in self.gone:
            raise Unreadable("it doesn't exist inside the tree")
        return super().load(path)
