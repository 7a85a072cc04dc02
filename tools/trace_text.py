"""A symbol's trace as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .symbol_trace import Mention, TraceData, Unseen

ROWS = 14
"""Entries of one section; the data has the rest."""

CLIP = 240
"""Characters of one condition; the data has it whole."""


def render(data: TraceData) -> str:
    """The home and the way there, who sets it, where it is applied and when, who tests it, what is unseen."""
    if not data.occurrences:
        return "\n".join(_nothing(data))
    other = [f"  {home.file}: {home.reason}" for home in data.homes[1:]]
    tests = [*data.assertions, *(m for m in data.readers if m.kind == "condition")]
    hidden = [u for u in data.unseen if u.touches]
    lines = [
        f"{data.symbol}, traced from {data.entry}",
        f"home: {data.home}: {data.homes[0].reason}" if data.homes else "home: none",
        *_section("the way there", [*_chain(data)]),
        *_section("set or handed on", [_row(m) for m in data.setters]),
        *_section("multiplied or divided by it", [_applied(m) for m in data.applications]),
        *_section("tested or asserted", [_row(m) for m in tests]),
        *_section("also at home in", other),
        *_section("can't be followed, in definitions that mention it", [_unseen(u) for u in hidden]),
        *_reach(data),
    ]
    return "\n".join(lines)


def _section(title: str, rows: Sequence[str]) -> Iterator[str]:
    if rows:
        yield f"{title}:"
        yield from rows[:ROWS]
    if len(rows) > ROWS:
        yield f"  … {len(rows) - ROWS:,} more; the data has them all"


def _chain(data: TraceData) -> Iterator[str]:
    for hop in data.chain:
        yield f"  {hop.file}:{hop.line}: {hop.text}"
        yield f"    → {hop.via} {hop.name}, in {hop.to_file}"


def _row(mention: Mention) -> str:
    return f"{_place(mention)}: {mention.text}"


def _place(mention: Mention) -> str:
    alias = f" (through {mention.alias})" if mention.alias else ""
    where = f" in {mention.scope}" if mention.scope else ""
    return f"  {mention.file}:{mention.line}: {mention.kind}{where}{alias}"


def _applied(mention: Mention) -> str:
    guards = [g if len(g) <= CLIP else g[: CLIP - 1] + "…" for g in mention.guards]
    when = "when " + " and ".join(f"({g})" for g in guards) if guards else "whenever the function runs"
    return f"{_place(mention)}: {mention.detail}\n      {when}"


def _unseen(line: Unseen) -> str:
    return f"  {line.file}:{line.line}: {line.kind}: {line.text}"


def _reach(data: TraceData) -> Iterator[str]:
    reached = data.reached
    yield (
        f"read {reached.definitions:,} definitions in {reached.files_entered:,} files, at most {reached.depth} files "
        f"away; {sum(not u.touches for u in data.unseen):,} more lines that can't be followed don't touch it"
    )
    if reached.other_owners:
        yield f"{reached.other_owners:,} mentions belong to other classes and are left out"
    if reached.cut:
        yield f"cut short: {reached.cut}"


def _nothing(data: TraceData) -> Iterator[str]:
    yield f"{data.symbol} is not met on any way from {data.entry}"
    yield from _reach(data)
    if data.elsewhere:
        yield from _section("control: it is mentioned in", [f"  {f.count:5}  {f.file}" for f in data.elsewhere])
    else:
        yield "control: no Python file of the clone mentions it either; check the spelling"
