"""A patch's effect on the count as text for a reader."""

from __future__ import annotations

from typing import Any

ROWS = 8
SAID = {
    "broken": "it breaks worlds that were right, or that were refused",
    "exact": "exactly once, or as before, in every world in which it can matter",
    "inert": "it changes nothing that could be counted",
    "same contract": "exactly once wherever that can be counted; elsewhere it does what its sibling does",
    "not reached": "the entry never comes to what it changes",
    "disagreement": "the two instruments disagree, so nothing is said",
    "undecided": "it can't be decided",
}


def render(data: dict[str, Any]) -> str:
    """The outcome, its reasons, the changed classes by themselves, then each entry's worlds."""
    lines = [f"{data['factor']}, {data['patch']}: {SAID[data['outcome']]}", *(f"  {r}" for r in data["reasons"])]
    lines += [f"  taken as known: {name} = {value}" for name, value in data["facts"].items()]
    for unit in data["units"]:
        lines += _unit(unit)
    for entry in data["entries"]:
        if entry["rows"]:
            lines += _entry(entry)
    for run in data["runs"]:
        told = " or ".join(map(str, run["counts"])) or "no count"
        lines.append(
            f"run on stand-ins, {run['symbol']} gives {told}{'' if run['complete'] else ', in a sample of runs'}"
        )
    failed = [e for e in data["entries"] if e["failed"]]
    lines += [f"{len(failed)} runs gave no answer, the first: {failed[0]['failed']}"] if failed else []
    return "\n".join(lines)


def _unit(unit: dict[str, Any]) -> list[str]:
    where = "nowhere" if unit["cubes"] == [] else _conditions(unit["cubes"]) or f"not confined: {unit['why']}"
    lines = ["", f"{unit['path']}: {unit['name']} by itself differs: {where}"]
    for row in unit["rows"][:ROWS]:
        lines.append(f"  {row['method']}: {row['before']} → {row['after']}, when {' or '.join(row['when'])}")
    if unit["run"]:
        word = {True: "the same", False: "something else", None: "nothing that decides"}[unit["agrees"]]
        lines.append(f"  run on stand-ins it says {word}: {_counts(unit['run'])}")
    for each in unit["siblings"]:
        told = _counts(each["contract"]) if each["contract"] else "can't be followed"
        lines.append(f"  {each['name']} ({each['path']}:{each['line']}) in its place: {told}")
    return lines


def _conditions(cubes: list[dict[str, list[str]]] | None) -> str:
    told = [" and ".join(n if v == ["true"] else f"not {n}" for n, v in cube.items()) for cube in cubes or ()]
    return " or ".join(f"where {text}" if text else "everywhere" for text in told)


def _counts(counts: dict[str, dict[str, list[int]]]) -> str:
    def one(found: list[int]) -> str:
        return " or ".join(map(str, found)) or "no count"

    return "; ".join(f"{one(c['true'])} where {name}, {one(c['false'])} where not" for name, c in counts.items())


def _entry(entry: dict[str, Any]) -> list[str]:
    scope = "".join(f", {name} = {value}" for name, value in entry["slice"].items())
    lines = ["", f"{entry['path']}:{entry['line']} {entry['symbol']}{scope}: worlds in which the patch can matter"]
    for row in entry["rows"][:ROWS]:
        lines.append(f"  {row['kind']}: {row['before']} → {row['after']}")
        lines += [f"      when {text}" for text in row["when"][:2]]
        lines += [f"      {site['path']}:{site['line']}  {site['text']}" for site in row["sites"]]
    left = len(entry["rows"]) - ROWS
    return lines + ([f"  and {left} more"] if left > 0 else [])
