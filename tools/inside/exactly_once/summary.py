"""What a table comes to: one sentence, and the findings that a reader should look at first."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

from .diagram import Node
from .engine import Engine
from .table import Outcome, Row, spell

SHOWN = 3
"""Alternatives that a sentence spells out."""
LOOKED_AT = 400
MOST_PLACES = 24


@dataclass
class Group:
    """Worlds with the same count, wherever it is applied."""

    outcome: Outcome
    raises: str
    when: Node
    sites: tuple[int, ...]


def grouped(rows: list[Row], engine: Engine) -> list[Group]:
    """Rows by what they come to, whatever the places; those that come to once last."""
    found: dict[tuple[Any, ...], Group] = {}
    for row in rows:
        key = (row.outcome.count, row.outcome.parts, row.outcome.unknown, row.raises)
        group = found.setdefault(key, Group(row.outcome, row.raises, engine.diagrams.false, ()))
        group.when = engine.diagrams.either(group.when, row.plain)
        group.sites = tuple(dict.fromkeys((*group.sites, *row.outcome.sites)))
    return sorted(found.values(), key=lambda g: g.outcome.count == 1 and not g.raises)


def says(group: Group) -> str:
    """What happens in a group's worlds, in a word or two."""
    if group.raises:
        return f"raises ({group.raises})"
    if group.outcome.parts:
        return "parts differ: " + " and ".join(map(str, group.outcome.parts))
    if group.outcome.count is None:
        return f"unknown, because {group.outcome.unknown}"
    return str(group.outcome.count)


def alternatives(when: Node, engine: Engine) -> list[str]:
    """The shortest alternatives of a condition, spelled out."""
    cubes = sorted(islice(engine.diagrams.cubes(when), LOOKED_AT), key=len)
    return [spell(cube, engine) for cube in cubes[:SHOWN]]


def summary(groups: list[Group], engine: Engine) -> list[dict[str, Any]]:
    """For each count the conditions under which it holds, `otherwise` for the last."""
    told = []
    for number, group in enumerate(groups, 1):
        last = number == len(groups)
        more = len(list(islice(engine.diagrams.cubes(group.when), SHOWN + 1))) > SHOWN
        told.append(
            {
                "count": group.outcome.count,
                "parts": list(group.outcome.parts),
                "unknown": "" if group.raises else group.outcome.unknown,
                "raises": group.raises,
                "says": says(group),
                "when": ["otherwise" if len(groups) > 1 else "always"] if last else alternatives(group.when, engine),
                "more": more and not last,
            }
        )
    return told


def findings(groups: list[Group], engine: Engine, path: str, line: int, symbol: str) -> list[dict[str, Any]]:
    """One finding for each place that has a say in worlds where the count isn't one.

    A wrong count comes about between places (a flag, who sets it, who applies), so each of them is named: the entry,
    where the factor is applied, the classes that the worlds name, and the tests that tell these worlds from others.
    """
    found = []
    for group in groups:
        kind = _kind(group)
        if not kind:
            continue
        shortest = min(islice(engine.diagrams.cubes(group.when), LOOKED_AT), key=len, default={})
        places = {(path, line, symbol): "entry"}
        for index in group.sites:
            site = engine.sites[index]
            places.setdefault((site.path, site.line, site.symbol), f"applied here ({site.kind})")
        for key, values in shortest.items():
            for place, role in _of_guard(key, values, engine):
                places.setdefault(place, role)
        for place, role in list(places.items())[:MOST_PLACES]:
            found.append(
                {
                    "kind": kind,
                    "count": group.outcome.count,
                    "parts": list(group.outcome.parts),
                    "path": place[0],
                    "line": place[1],
                    "end_line": place[1],
                    "symbol": place[2],
                    "role": role,
                    "when": spell(shortest, engine),
                    "why": f"{engine.factor} is applied {_times(group)} to the routed part of {symbol}",
                }
            )
    return found


def _kind(group: Group) -> str:
    if group.raises or (group.outcome.count is None and not group.outcome.parts):
        return ""
    if group.outcome.parts:
        return "differs"
    if group.outcome.count == 0:
        return "never"
    return "" if group.outcome.count == 1 else "twice"


def _times(group: Group) -> str:
    if group.outcome.parts:
        return " and ".join(f"{n} times" for n in group.outcome.parts) + " (parts differ)"
    return "never" if not group.outcome.count else f"{group.outcome.count} times"


def _of_guard(key: str, values: tuple[str, ...], engine: Engine) -> list[tuple[tuple[str, int, str], str]]:
    guard = engine.diagrams.guards[key]
    found = [((guard.path, guard.line, ""), f"test of {guard.name}")] if guard.path else []
    if key.startswith("type(") and len(values) <= SHOWN:
        for made in engine.made_classes():
            if made.name in values:
                found.append(((made.module.path, made.node.lineno, made.name), "class in these worlds"))
    return found
