"""The worlds table as the reply spells it."""

from __future__ import annotations

from typing import Any

from ..source import Unreadable
from .condense import Leaf, condense, outcome
from .explore import Explored
from .oracle import StandInError
from .trial import Trial


def report(trial: Trial, explored: Explored) -> dict[str, Any]:
    """The worlds, where the factor is applied in them, and what they rest on."""
    sites: dict[tuple[str, int, str], int] = {}
    guards: dict[str, dict[str, Any]] = {}
    for _, result in explored.runs:
        for choice in result.choices:
            guards.setdefault(choice["name"], choice)
    worlds = [_world(leaf, sites, explored) for leaf in condense(explored.runs, explored.complete)]
    if not explored.complete:
        why = f"{explored.left:,} more worlds are known of, and the budget ended before they were run"
        worlds.append({"when": [], "count": None, "unknown": why, "raises": "", "sites": [], "runs": 0})
    line = _line(trial, trial.path, trial.symbol)
    return {
        "factor": trial.factor,
        "entry": {"path": trial.path, "symbol": trial.symbol, "line": line},
        "worlds": worlds,
        "sites": [_site(trial, *site) for site in sites],
        "guards": [_guard(one) for one in guards.values() if _matters(one, worlds)],
        "assumptions": _assumptions(explored),
        "blind": _blind(explored),
        "findings": [one for world in worlds for one in _finding(trial, world, line)],
        "complete": explored.complete,
        "runs": len(explored.runs),
    }


def _world(leaf: Leaf, sites: dict[tuple[str, int, str], int], explored: Explored) -> dict[str, Any]:
    result = leaf.rows[0][1]
    met = [sites.setdefault((path, line, kind), len(sites)) for path, line, kind in result.sites]
    return {
        "when": [{"guard": name, "is": answer} for name, answer in leaf.when],
        "count": result.count,
        "unknown": result.unknown,
        "raises": result.raises,
        "sites": met,
        "runs": len(leaf.rows),
    }


def _guard(choice: dict[str, Any]) -> dict[str, Any]:
    fixed = choice["options"][choice["answer"]] if choice["fixed"] else None
    return {
        "name": choice["name"],
        "path": choice["path"],
        "line": choice["line"],
        "values": choice["options"],
        "fixed": fixed,
    }


def _matters(choice: dict[str, Any], worlds: list[dict[str, Any]]) -> bool:
    return choice["fixed"] or any(choice["name"] == one["guard"] for world in worlds for one in world["when"])


def _site(trial: Trial, path: str, line: int, kind: str) -> dict[str, Any]:
    try:
        file = trial.files.get(path)
    except (Unreadable, StandInError):
        return {"path": path, "line": line, "kind": kind, "text": "", "symbol": ""}
    return {
        "path": path,
        "line": line,
        "kind": kind,
        "text": file.statement_at(line),
        "symbol": file.symbol_at(line),
    }


def _assumptions(explored: Explored) -> list[str]:
    found = dict.fromkeys(one for _, result in explored.runs for one in result.assumptions)
    if not explored.complete:
        found.setdefault(
            f"{len(explored.runs):,} worlds were run and more exist: questions that never changed the count in these "
            "runs are taken not to matter"
        )
    return list(found)


def _blind(explored: Explored) -> list[dict[str, Any]]:
    found = dict.fromkeys(tuple(one) for _, result in explored.runs for one in result.blind)
    return [{"path": path, "line": line, "why": why} for path, line, why in found]


def _line(trial: Trial, path: str, symbol: str) -> int:
    import ast

    body: list[ast.stmt] = trial.files.get(path).statements
    line = 1
    for name in symbol.partition(",")[0].split("."):
        nodes = [one for one in body if getattr(one, "name", "") == name]
        if not nodes:
            return line
        line, body = nodes[0].lineno, getattr(nodes[0], "body", [])
    return line


def _finding(trial: Trial, world: dict[str, Any], line: int) -> list[dict[str, Any]]:
    """Worlds in which the factor isn't applied exactly once."""
    if world["count"] == 1 or world["raises"]:
        return []
    kind = "unknown" if world["count"] is None else "never" if world["count"] == 0 else "twice"
    when = " and ".join(f"{one['guard']} is {one['is']}" for one in world["when"]) or "always"
    why = world["unknown"] or f"the routed part carries the factor {world['count']} times"
    found = {"kind": kind, "count": world["count"], "path": trial.path, "line": line, "end_line": line}
    return [{**found, "symbol": trial.symbol, "when": when, "why": why}]


__all__ = ["outcome", "report"]
