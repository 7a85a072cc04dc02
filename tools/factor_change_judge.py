"""What the worlds before and after a patch, counted by two instruments, allow to be said of it."""

from __future__ import annotations

from typing import Any

from .base import ToolContext, ToolError, ToolTimeout
from .exactly_once_facts import Known
from .inside_call import call_inside

RUNS, RUN_SECONDS = 120, 180.0
"""How much running a changed class on stand-ins may take; only a machine that is far too slow meets the time."""
HARMLESS = {"right", "same", "refused"}
BAD = {"broken", "let through"}
Counts = dict[str, dict[str, list[int]]]


def confirmed(
    found: dict[str, Any], args: Any, known: list[Known], context: ToolContext
) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    """What the script found with what running the code said of it, and the commands.

    A changed class that can be told apart is run by itself; where there is none, the entries are.
    """
    commands: list[tuple[str, ...]] = []

    def ran(path: str, symbol: str) -> dict[str, Any]:
        request = {"factor": args.factor, "entry": {"path": path, "symbol": symbol}}
        request |= {"runs": RUNS, "seconds": RUN_SECONDS, "facts": {fact.guard: fact.value for fact in known}}
        try:
            reply = call_inside(context.sandbox, "power_count", request, RUN_SECONDS * 2)
        except (ToolError, ToolTimeout):
            return {"worlds": [], "complete": False}
        commands.append(reply.command)
        return reply.value

    units, runs = [], []
    for unit in found["units"]:
        by_name: Counts = {}
        if unit["contract"] and unit["methods"]:
            worlds = ran(unit["path"], f"{unit['name']}.{unit['methods'][0]}")["worlds"]
            by_name = {name: _by_value(worlds, name) for name in unit["contract"]}
        units.append({**unit, "run": by_name, "agrees": _agree(unit["contract"], by_name)})
    if not units or any(not unit["contract"] for unit in units):
        for path, symbol in dict.fromkeys((e["path"], e["symbol"]) for e in found["entries"] if e["rows"]):
            said = ran(path, symbol)
            counts = sorted({w["count"] for w in said["worlds"] if w["count"] is not None})
            runs.append({"symbol": symbol, "counts": counts, "complete": said["complete"]})
    return {**found, "units": units, "runs": runs}, commands


def _by_value(worlds: list[dict[str, Any]], name: str) -> dict[str, list[int]]:
    """The counts of the worlds in which a parameter is true, and of those in which it is false."""
    found: dict[str, list[int]] = {}
    for value in ("true", "false"):
        other = "false" if value == "true" else "true"
        possible = [w for w in worlds if {"guard": name, "is": other} not in w["when"]]
        found[value] = sorted({w["count"] for w in possible if w["count"] is not None})
    return found


def _agree(followed: Counts, ran: Counts) -> bool | None:
    """Whether both instruments say the same; None where one of them says nothing."""
    pairs = [(followed[n][v], ran[n][v]) for n in followed if n in ran for v in ("true", "false")]
    told = [(a, b) for a, b in pairs if a and b]
    if not told or len(told) < sum(bool(a) for a, _ in pairs):
        return False if any(a != b for a, b in told) else None
    return all(a == b for a, b in told)


def judge(found: dict[str, Any]) -> dict[str, Any]:
    """`outcome`, its `reasons`, `twice`, `never` and `confirmed`, of what the script and the runs said."""
    rows = [row for entry in found["entries"] for row in entry["rows"]]
    certain = [(entry, text) for entry in found["entries"] for text in entry["certain"][:1]]
    bad = {row["count_after"] for entry, _ in certain for row in entry["rows"] if row["kind"] in BAD} - {None}
    outcome, reasons = _outcome(found, rows, certain)
    agreed = [unit["agrees"] for unit in found["units"] if unit["contract"]]
    if found["runs"]:
        agreed.append(_runs_agree(found, bad))
    return {
        "outcome": outcome,
        "reasons": reasons,
        "twice": outcome == "broken" and any(count > 1 for count in bad),
        "never": outcome == "broken" and 0 in bad,
        "confirmed": bool(agreed) and all(agreed),
    }


def _runs_agree(found: dict[str, Any], bad: set[int]) -> bool:
    """Whether running the entries gave the wrong counts too, or where none is wrong no other ones."""
    ran = {count for run in found["runs"] for count in run["counts"]}
    if bad:
        return bad <= ran
    followed = {row["count_after"] for entry in found["entries"] for row in entry["rows"]}
    return bool(ran) and ran <= followed


def _outcome(found: dict[str, Any], rows: list[dict[str, Any]], certain: list[Any]) -> tuple[str, list[str]]:
    units = found["units"]
    if any(unit["agrees"] is False for unit in units):
        return "disagreement", [_disagreement(unit) for unit in units if unit["agrees"] is False]
    if certain:
        return "broken", [_broken(entry, text) for entry, text in certain]
    failed = [f"{entry['symbol']}: {entry['failed']}" for entry in found["entries"] if entry["failed"]]
    blind = [text for entry in found["entries"] for text in entry["blind"]]
    if failed or blind or found["loose"]:
        return "undecided", [*dict.fromkeys([*failed, *blind]), *found["loose"]][:4]
    confined = bool(units) and len(units) == len({f.rpartition(".")[0] for f in found["changed"]})
    if not rows:
        same = confined and all(unit["cubes"] == [] for unit in units)
        return ("inert", [_inert(unit) for unit in units]) if same else ("not reached", [_unreached(found)])
    open_rows = [row for row in rows if row["kind"] not in HARMLESS]
    if not open_rows:
        return "exact", [_row(row) for row in rows]
    right = any(row["kind"] == "right" for row in rows)
    if right and confined and all(any(s["same"] for s in unit["siblings"]) for unit in units):
        return "same contract", [_contract(unit) for unit in units]
    return "undecided", [_row(row) for row in open_rows][:4]


def _row(row: dict[str, Any]) -> str:
    return f"{row['before']} → {row['after']}, when {' or '.join(row['when'])}{' …' if row['more'] else ''}"


def _broken(entry: dict[str, Any], text: str) -> str:
    bad = [row for row in entry["rows"] if row["kind"] in BAD]
    said = dict.fromkeys(f"{row['before']} → {row['after']}" for row in bad)
    sites = dict.fromkeys(f"{site['path']}:{site['line']}" for row in bad for site in row["sites"])
    scope = [f"{name} = {value}" for name, value in entry["slice"].items()]
    where = f"; applied at {', '.join(sites)}" if sites else ""
    return f"{entry['symbol']}: {'; '.join(said)}, when {' and '.join([text, *scope])}{where}"


def _disagreement(unit: dict[str, Any]) -> str:
    return f"{unit['name']}: following it says {unit['contract']}, running it says {unit['run']}"


def _inert(unit: dict[str, Any]) -> str:
    return f"{unit['name']}.{', '.join(unit['methods'])} returns what it did, whatever its constructor is given"


def _unreached(found: dict[str, Any]) -> str:
    names = ", ".join(dict.fromkeys(entry["symbol"] for entry in found["entries"]))
    return f"{names} never comes to {', '.join(found['changed'])} where that differs"


def _contract(unit: dict[str, Any]) -> str:
    sibling = next(s for s in unit["siblings"] if s["same"])
    said = "; ".join(
        f"{' or '.join(map(str, counts['true']))} × where {name}, {' or '.join(map(str, counts['false']))} × where not"
        for name, counts in unit["contract"].items()
    )
    return (
        f"{unit['name']} applies it {said}, as {sibling['name']} ({sibling['path']}:{sibling['line']}) does, "
        "which is made in the same place"
    )
