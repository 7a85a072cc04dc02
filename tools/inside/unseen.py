"""What a trace could not follow, as rows of its reply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .definitions import Module, covers
from .graph import Exploration, Explorer
from .imports import Resolver
from .occurrences import Occurrence
from .paths import to_shown

Row = dict[str, Any]


def unseen_rows(explorer: Explorer, explored: Exploration, found: list[Occurrence], name: str) -> list[Row]:
    """Lines of the visited definitions that hide what happens to a name, those near a mention of it first.

    Args:
        explorer: the finished search.
        explored: what it reached.
        found: the mentions; those inside a lambda or closure are rows too.
        name: the identifier.
    """
    resolver = explorer.resolver
    modules = {v.definition.module.path: v.definition.module for v in explored.visits}
    rows = [*_marked(explored, name)]
    for item in found:
        if item.captured and not item.alias:
            rows.append(_row(modules[item.file], item.line, item.captured, item.scope, True))
    for module in modules.values():
        rows += _lost(resolver, module, name)
    for file, (line, why) in resolver.failed.items():
        touches = explorer.worth_opening(file)
        rows.append(_record(file, line, why, "unparsable", "", touches))
    unique: dict[tuple[str, int, str], Row] = {}
    for row in rows:
        unique.setdefault((row["file"], row["line"], row["kind"]), row)
    return sorted(unique.values(), key=lambda row: not row["touches"])


def _marked(explored: Exploration, name: str) -> Iterator[Row]:
    for mark in explored.marks:
        module = mark.scope.module
        near = module.lines_with(name)
        inside = mark.scope.outer is not None
        touches = covers(near, mark.scope.node) if inside else mark.line in near
        yield _row(module, mark.line, mark.kind, mark.scope.qualname, touches)


def _lost(resolver: Resolver, module: Module, name: str) -> Iterator[Row]:
    """Imports of a visited file that lead nowhere, and its definitions that can't be parsed."""
    near = module.lines_with(name)
    for star in module.stars:
        if resolver.star_is_lost(module, star):
            yield _row(module, star.line, "star_import", "", bool(near))
    for path, line in resolver.missing:
        if path == module.path:
            yield _row(module, line, "unresolved_import", "", line in near)
    for line, why in module.source.failures.items():
        yield _record(module.path, line, why, "unparsable", "", bool(near))


def _row(module: Module, line: int, kind: str, scope: str, touches: bool) -> Row:
    return _record(module.path, line, module.text(line), kind, scope, touches)


def _record(file: str, line: int, text: str, kind: str, scope: str, touches: bool) -> Row:
    shown = to_shown(file)
    return {"file": shown, "line": line, "text": text, "kind": kind, "scope": scope, "touches": touches}
