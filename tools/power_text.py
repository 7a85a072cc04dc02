"""A worlds table of power counting as plain text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .power_count import PowerData, World

ROWS = 24
"""Entries of one section; the data has the rest."""
CLIP = 240
"""Characters of one condition; the data has it whole."""


def render(data: PowerData) -> str:
    """Each world with its count and the lines that apply the factor, then what the counts rest on."""
    entry = data.entry
    counted = [world for world in data.worlds if world.count is not None]
    rest = [world for world in data.worlds if world.count is None]
    more = "" if data.complete else "; more combinations exist"
    lines = [
        f"{data.factor}, counted in {data.runs:,} runs of {entry.symbol} ({entry.path}:{entry.line}){more}",
        *_section("applied", [row for world in counted for row in _world(data, world)]),
        *_section("not counted", [row for world in rest for row in _world(data, world)]),
        *_section("rests on", [f"  {one}" for one in data.assumptions]),
        *_section("can't be seen", [f"  {one.path}:{one.line}: {one.why}" for one in data.blind]),
    ]
    return "\n".join(lines)


def _section(title: str, rows: list[str]) -> Iterator[str]:
    if rows:
        yield f"{title}:"
        yield from rows[:ROWS]
    if len(rows) > ROWS:
        yield f"  … {len(rows) - ROWS:,} more; the data has them all"


def _world(data: PowerData, world: World) -> Iterator[str]:
    when = " and ".join(_clip(f"{one.guard} is {one.is_}") for one in world.when) or "in every run that got there"
    what = f"{world.count} ×" if world.count is not None else world.raises or f"unknown: {world.unknown}"
    yield f"  {what}, when {when}" if world.when else f"  {what}, {when}"
    for number in world.sites if world.count is not None else ():
        site = data.sites[number]
        yield f"      {site.path}:{site.line}: {site.kind}: {site.text}"


def _clip(text: str) -> str:
    return text if len(text) <= CLIP else text[: CLIP - 1] + "…"
