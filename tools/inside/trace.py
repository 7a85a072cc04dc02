"""Trace a symbol: from an entry to where it lives, and what happens to it on the way."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Any

from .collecting import no_collection
from .definitions import Definition
from .elsewhere import files_with
from .fail import InsideError
from .graph import Exploration, Explorer, Limits, Visit
from .imports import Hop, Resolver
from .occurrences import APPLIES, Occurrence, occurrences
from .owners import Owner
from .paths import to_shown
from .source import Tree
from .unseen import unseen_rows

MOST_OCCURRENCES = 2_000
MOST_UNSEEN = 300
MOST_EXAMINED = 5_000
"""Mentions looked at; only made-up files hold more of one symbol."""

_SYMBOL = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_LIVES = ("definition", "attribute_assignment", "assignment", "string", *APPLIES)


@dataclass(frozen=True)
class _Found:
    """A mention and the visit that came upon it first."""

    item: Occurrence
    visit: Visit

    @property
    def rank(self) -> int:
        """0 where the symbol is set, defined or applied; 1 where it is taken or handed over; else 2."""
        if self.item.kind in _LIVES and (self.item.sets or self.item.kind in APPLIES):
            return 0
        return 1 if self.item.kind in ("parameter", "keyword_argument") else 2


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Follow imports, base classes, constructions, calls and references from `entry` to `symbol`.

    Args:
        request: root, symbol (dotted allowed), entry (`path.py` or `path.py:Class.method`), and
            optionally max_depth (files away) and max_lines (to read in files that don't mention it).

    Returns:
        occurrences, chain, home, homes, unseen, reached, elsewhere and left_out, as `symbol_trace` documents them.

    Raises:
        InsideError: the symbol isn't an identifier, or the entry isn't a readable Python file or name.
    """
    with no_collection():
        return _Trace(request).reply()


class _Trace:
    def __init__(self, request: dict[str, Any]) -> None:
        self.symbol = str(request["symbol"]).strip()
        if not _SYMBOL.fullmatch(self.symbol):
            raise InsideError(f"{self.symbol!r}: not an identifier; give a name such as `scale` or `Layer.scale`")
        self.tree = Tree(request["root"])
        self.resolver = Resolver(self.tree)
        self.owner_name, _, self.name = self.symbol.rpartition(".")
        self.entry = entry_definition(self.resolver, request["entry"])
        needle = self.name.encode()
        self.limits = Limits(
            int(request.get("max_depth", Limits.max_depth)),
            int(request.get("max_lines", Limits.most_lines)),
        )
        self.explorer = Explorer(self.resolver, self.limits, lambda path: self.tree.contains(path, needle))

    def reply(self) -> dict[str, Any]:
        explored = self.explorer.explore([self.entry])
        found, elsewhere = self._owned(self._mentions(explored), explored)
        homes = _homes(found)
        home = homes[0] if homes else None
        chain = home["visit"].path() if home else []
        unseen = unseen_rows(self.explorer, explored, [f.item for f in found], self.name)
        listed = [h for h in homes if h["rank"] == homes[0]["rank"]]
        return {
            "occurrences": [self._mention(f) for f in found[:MOST_OCCURRENCES]],
            "chain": [hop_record(self.resolver, hop) for hop in chain],
            "home": home["file"] if home else None,
            "homes": [{k: h[k] for k in ("file", "distance", "reason")} for h in listed],
            "unseen": unseen[:MOST_UNSEEN],
            "reached": self._reached(explored, len(found) + elsewhere, elsewhere),
            "elsewhere": [] if found else files_with(self.tree, self.name),
            "left_out": {
                "occurrences": max(0, len(found) - MOST_OCCURRENCES),
                "unseen": max(0, len(unseen) - MOST_UNSEEN),
            },
        }

    def _mentions(self, explored: Exploration) -> list[_Found]:
        found: dict[tuple[str, int, int, str, str], _Found] = {}
        for visit in explored.visits:
            module = visit.definition.module
            if self.explorer.worth_opening(module.path):
                lines = module.lines_with(self.name)
                left = MOST_EXAMINED - len(found)
                for item in occurrences(visit.definition, self.name, lines, left) if left > 0 else ():
                    key = (item.file, item.line, item.column, item.kind, item.alias)
                    found.setdefault(key, _Found(item, visit))
        order = {visit: n for n, visit in enumerate(explored.visits)}
        nearest: dict[str, int] = {}
        for one in found.values():
            nearest.setdefault(one.item.file, order[one.visit])
        return sorted(found.values(), key=lambda f: (nearest[f.item.file], f.item.line))

    def _owned(self, found: list[_Found], explored: Exploration) -> tuple[list[_Found], int]:
        """For a dotted symbol, the mentions that belong to its owner, and how many don't."""
        if not self.owner_name:
            return found, 0
        name = self.owner_name.rpartition(".")[2]
        owner = Owner(name, self.explorer, explored.visits)
        kept = [one for one in found if owner.has(one.item)]
        return kept, len(found) - len(kept)

    def _mention(self, found: _Found) -> dict[str, Any]:
        item = found.item
        return {
            "file": to_shown(item.file),
            "line": item.line,
            "column": item.column,
            "text": self.resolver.modules[item.file].text(item.line),
            "kind": item.kind,
            "scope": item.scope,
            "detail": item.detail,
            "guards": list(item.guards),
            "alias": item.alias,
            "sets": item.sets,
            "distance": found.visit.distance,
        }

    def _reached(self, explored: Exploration, examined: int, elsewhere: int) -> dict[str, Any]:
        cuts = []
        if examined >= MOST_EXAMINED:
            cuts.append(f"mentions beyond the first {examined:,} were not examined")
        if explored.passed_over:
            cuts.append(
                f"{len(explored.passed_over):,} definitions and files that don't mention {self.name} were left unread "
                f"after {self.limits.most_lines:,} lines of such (max_lines)"
            )
        if explored.too_deep:
            cuts.append(f"ways end {self.limits.max_depth} files from the entry (max_depth)")
        visits = explored.visits
        return {
            "files_opened": len(self.resolver.modules),
            "files_entered": len({v.definition.module.path for v in visits}),
            "definitions": len(visits),
            "depth": max((v.depth for v in visits), default=0),
            "other_owners": elsewhere,
            "cut": "; ".join(cuts),
        }


def _homes(found: list[_Found]) -> list[dict[str, Any]]:
    """Files that the symbol can be said to live in, best first: those that set or apply it, the nearest."""
    by_file: dict[str, list[_Found]] = {}
    for one in found:
        by_file.setdefault(one.item.file, []).append(one)
    homes = []
    for file, ones in by_file.items():
        best = min(ones, key=lambda f: (f.rank, f.visit.distance))
        if any(f.item.kind != "import" for f in ones):
            homes.append(
                {
                    "file": to_shown(file),
                    "rank": best.rank,
                    "distance": best.visit.distance,
                    "visit": best.visit,
                    "reason": _reason([f.item for f in ones]),
                }
            )
    return sorted(homes, key=lambda home: (home["rank"], home["distance"]))


def _reason(items: list[Occurrence]) -> str:
    kinds = {
        "defined": [o for o in items if o.kind == "definition"],
        "set": [o for o in items if o.sets and o.kind not in ("definition", "keyword_argument")],
        "applied": [o for o in items if o.kind in APPLIES],
        "taken": [o for o in items if o.kind == "parameter"],
        "handed on": [o for o in items if o.kind == "keyword_argument"],
    }
    parts = []
    for verb, some in kinds.items():
        lines = sorted({o.line for o in some})
        if lines:
            more = ", …" if len(lines) > 6 else ""
            parts.append(f"{verb} at {', '.join(map(str, lines[:6]))}{more}")
    return "; ".join(parts) or f"read at {items[0].line}"


def hop_record(resolver: Resolver, hop: Hop) -> dict[str, Any]:
    """A hop as the reply spells it: file, line, text, via, name, to_file."""
    module = resolver.modules.get(hop.file)
    return {
        "file": to_shown(hop.file),
        "line": hop.line,
        "text": module.text(hop.line) if module else "",
        "via": hop.via,
        "name": hop.name,
        "to_file": to_shown(hop.to_file),
    }


def entry_definition(resolver: Resolver, entry: str) -> Definition:
    """What an entry such as `path.py` or `path.py:Class.method` names.

    Raises:
        InsideError: no such file or name, or the file isn't Python.
    """
    path, colon, name = entry.rpartition(":")
    if not colon or not _SYMBOL.fullmatch(name) or resolver.tree.is_file(entry):
        path, name = entry, ""
    real = resolver.tree.require(path)
    module = resolver.module(real)
    if module is None:
        raise InsideError(f"{path}: not Python that can be parsed: {resolver.failed[real][1]}")
    definition = module.find(name) if name else module.whole
    if definition is None:
        known = [n for n, found in module.bindings.items() if found[0].kind == "definition"]
        close = difflib.get_close_matches(name, known, 3) or sorted(known)[:8]
        raise InsideError(f"{path} defines no {name}; it has {', '.join(close) or 'no definitions'}")
    return definition
