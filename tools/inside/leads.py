"""Where a search that came back empty should look next: files with hits that the searched file leads to."""

from __future__ import annotations

from typing import Any

from .collecting import no_collection
from .graph import Explorer, Limits
from .imports import Hop, Resolver
from .includes import SUFFIXES, included
from .paths import from_shown, to_shown
from .source import Tree, Unreadable, decode

MOST_LEADS = 20
_LINES = 3_000


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Find which files with hits a searched file imports, inherits from or constructs from.

    Args:
        request: root, file (the one searched), hits (`[{"file", "count"}]`), and optionally depth, the
            number of files a path may go through (2).

    Returns:
        leads: `[{"file", "count", "path": [{"file", "line", "text", "via", "name"}], "distance"}]`, nearest first, at
        most `MOST_LEADS`; unreached: the other hits; why: the reason when the file can't be followed at all.

    Raises:
        InsideError: the searched file isn't a readable text file of the tree.
    """
    with no_collection():
        return _Leads(request).reply()


class _Leads:
    def __init__(self, request: dict[str, Any]) -> None:
        self.tree = Tree(request["root"])
        self.file = self.tree.require(request["file"])
        self.depth = int(request.get("depth", 2))
        self.hits: dict[str, dict[str, Any]] = {}
        self.all_hits = list(request["hits"])
        for hit in self.all_hits:
            path = self.tree.canonical(from_shown(hit["file"]))
            if path is not None and path != self.file:
                self.hits.setdefault(path, hit)

    def reply(self) -> dict[str, Any]:
        if self.file.endswith(SUFFIXES):
            return self._answer(included(self.tree, self.file, self.depth), "")
        if not self.file.endswith((".py", ".pyi")):
            return self._answer({}, "only Python and C-family files say in a readable way where they lead")
        resolver = Resolver(self.tree)
        module = resolver.module(self.file)
        if module is None:
            return self._answer({}, f"it can't be parsed: {resolver.failed[self.file][1]}")
        explorer = Explorer(resolver, Limits(self.depth, _LINES, 3 * _LINES), self._is_hit)
        reached: dict[str, tuple[int, list[Hop]]] = {}
        for visit in explorer.explore([module.whole]).visits:
            path = visit.definition.module.path
            if path in self.hits and path not in reached:
                reached[path] = (visit.distance, visit.path())
        return self._answer(reached, "")

    def _is_hit(self, path: str) -> bool:
        return self.tree.canonical(path) in self.hits

    def _answer(self, reached: dict[str, tuple[int, list[Hop]]], why: str) -> dict[str, Any]:
        found = {path: step for path, step in reached.items() if path in self.hits}
        nearest = sorted(found, key=lambda path: (found[path][0], -self.hits[path]["count"], path))
        leads = []
        for path in nearest[:MOST_LEADS]:
            distance, hops = found[path]
            hit = self.hits[path]
            steps = [self._step(hop) for hop in hops]
            leads.append({"file": hit["file"], "count": hit["count"], "path": steps, "distance": distance})
        told = {lead["file"] for lead in leads}
        unreached = [hit for hit in self.all_hits if hit["file"] not in told]
        return {"leads": leads, "unreached": unreached, "why": why}

    def _step(self, hop: Hop) -> dict[str, Any]:
        try:
            text = decode(self.tree.read(hop.file)).split("\n")[hop.line - 1].strip()[:200]
        except (Unreadable, IndexError):
            text = ""
        return {"file": to_shown(hop.file), "line": hop.line, "text": text, "via": hop.via, "name": hop.name}
