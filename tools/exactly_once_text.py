"""The worlds tables as plain text that a person reads, at most `WIDTH` columns wide.

Works on plain data, as the tool's findings are kept, so that an answer found again is shown without loading the tool.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

WIDTH = 100
ROWS = 12
"""Entries of one section; the data has the rest."""
PLACES = 6
SENTENCE = 240
"""Characters of a condition in a summary; the worlds below it have it whole."""
ALTERNATIVES = 2
"""Alternatives of one condition, likewise."""

Json = Mapping[str, Any]


def render(data: Json) -> str:
    """What was found first, then each entry's table, then what is known about the deployment."""
    lines = [*_heading(data), *_suspects(data), *_findings(data["findings"])]
    plain: list[str] = []
    lost: dict[str, list[str]] = {}
    for table in data["tables"]:
        if _is_plain(table):
            plain.append(_place(table))
        elif reasons := _undecided(table):
            lost.setdefault(reasons, []).append(_place(table))
        else:
            lines += ["", *_table(table)]
    lines += _places("exactly once, whatever the configuration", plain)
    for reasons, places in lost.items():
        lines += _places(f"undecided: {reasons}", places)
    return "\n".join([*lines, *_facts(data["facts"]), *_broken(data["broken"])])


def _heading(data: Json) -> Iterator[str]:
    tables, left = len(data["tables"]), data["entries_left_out"]
    more = f"; {left:,} more entries weren't followed" if left else ""
    counts = ", ".join(map(str, data["counts"])) or "none"
    rest = [f"{_many(data[key], 'world', 'worlds')} {what}" for key, what in _REST if data[key]]
    yield f"{data['factor']}: {_many(tables, 'table', 'tables')}{more}; counts: {'; '.join([counts, *rest])}"
    if data["timed_out"]:
        yield "time ran out: --seconds gives more, --entry and --set leave less to follow"


_REST = (("undecided", "undecided"), ("raising", "ending in an exception"))


def _suspects(data: Json) -> Iterator[str]:
    """Places that deviate, each with those it was compared with."""
    rows: list[str] = []
    suspects = data.get("suspects", [])
    for one in suspects[:ROWS]:
        when = f"; when {one['when']}" if one["when"] else ""
        where = f"{one['path']}:{one['line']}"
        rows += _wrapped(f"{where} {_KINDS.get(one['kind'], one['kind'])}? {one['why']}{when}", "  ", "      ")
        seen = [f"{at['path']}:{at['line']}{f' ({note})' if (note := at['note']) else ''}" for at in one["see"]]
        if seen:
            rows += _wrapped("compare " + ", ".join(seen[:PLACES]), "      ", "          ")
    yield from _section("used unlike their siblings (to be checked; nothing was counted)", rows, len(suspects))
    if data.get("compared") and not suspects:
        files = _many(len(data["compared"]), "file", "files")
        functions = _many(sum(data["compared"].values()), "function", "functions")
        yield f"nothing uses it unlike its siblings ({functions} of {files} compared)"


def _findings(findings: Sequence[Json]) -> Iterator[str]:
    """Findings that come about in the same worlds as one, with the places that have a say in them."""
    groups: dict[tuple[str, str, str], list[Json]] = {}
    for one in findings:
        groups.setdefault((one["kind"], one["why"], one["when"]), []).append(one)
    rows: list[str] = []
    for (kind, why, when), places in list(groups.items())[:ROWS]:
        said = f"{_KINDS.get(kind, kind)}: {why}{f'; when {when}' if when and when != 'always' else ''}"
        rows += _wrapped(said, "  ", "      ")
        where = dict.fromkeys(f"{one['path']}:{one['line']}" for one in places)
        rows += _wrapped("see " + ", ".join(list(where)[:PLACES]), "      ", "          ")
    yield from _section("findings", rows, len(groups))


_KINDS = {
    "wrong": "APPLIED WRONGLY",
    "never": "NEVER APPLIED",
    "twice": "APPLIED MORE THAN ONCE",
    "differs": "PARTS DIFFER",
}


def _is_plain(table: Json) -> bool:
    """Whether there is nothing to say but `once`."""
    rests = table["assumptions"] or table["blind"] or table["findings"]
    return not rests and len(table["worlds"]) == 1 and table["worlds"][0]["count"] == 1


def _undecided(table: Json) -> str:
    """Why nothing is known in any world; empty where something is."""
    worlds = [world for world in table["worlds"] if not world["aside"]]
    return "; ".join(dict.fromkeys(world["unknown"] for world in worlds)) if all(w["unknown"] for w in worlds) else ""


def _places(title: str, places: Sequence[str]) -> Iterator[str]:
    if not places:
        return
    yield ""
    yield from _wrapped(f"{title}:", "", "    ")
    yield from (line for place in places[: 2 * ROWS] for line in _wrapped(place, "  ", "      "))
    if len(places) > 2 * ROWS:
        yield f"  … {len(places) - 2 * ROWS:,} more; the data has them"


def _place(table: Json) -> str:
    entry = table["entry"]
    where = " and ".join(f"{name} is {value}" for name, value in table["slice"].items())
    return f"{entry['symbol']}  {entry['path']}:{entry['line']}{f', where {where}' if where else ''}"


def _table(table: Json) -> Iterator[str]:
    yield from _wrapped(_place(table), "", "    ")
    yield from _summary(table["summary"])
    aside = sum(world["aside"] for world in table["worlds"])
    if aside:
        yield f"  left out: {_many(aside, 'way', 'ways')} to fail that say nothing of the factor (the data has them)"
    for world in sorted((w for w in table["worlds"] if not w["aside"]), key=_telling):
        yield from _world(table, world)
    yield from _section(
        "  rests on", [line for text in table["assumptions"] for line in _wrapped(text, "    ", "      ")]
    )
    blind = [f"{one['path']}:{one['line']}: {one['why']}" for one in table["blind"]]
    yield from _section("  can't be seen", [line for text in blind for line in _wrapped(text, "    ", "      ")])


def _summary(rows: Sequence[Json]) -> Iterator[str]:
    """One sentence where it is a short one, else one a line, each with its first condition only."""
    sentence = "; ".join(f"{_outcome(row)} {_when(row)}".rstrip() for row in rows)
    if len(sentence) <= SENTENCE:
        yield from _wrapped(sentence, "  ", "    ")
        return
    for row in rows:
        short = {**row, "when": row["when"][:1], "more": row["more"] or len(row["when"]) > 1}
        yield from _wrapped(f"{_outcome(row)} {_when(short)}".rstrip(), "  ", "    ")


def _when(row: Json) -> str:
    if row["when"] in (["always"], ["otherwise"]):
        return "" if row["when"] == ["always"] else "otherwise"
    return "when " + " or ".join(map(_clipped, row["when"])) + (" or …" if row["more"] else "")


def _clipped(text: str) -> str:
    return text if len(text) <= SENTENCE else text[: SENTENCE - 1] + "…"


def _outcome(row: Json) -> str:
    """A count, or why there is none."""
    if row["count"] is not None:
        return str(row["count"])
    if row["parts"]:
        return f"{' and '.join(map(str, row['parts']))} in different parts"
    return f"raises {row['raises']}" if row["raises"] else f"unknown ({row['unknown']})"


def _telling(world: Json) -> int:
    """Counts other than one come first, then one, then what isn't known, then what ends in an exception."""
    if world["count"] is not None:
        return int(world["count"] == 1)
    return 3 if world["raises"] else 0 if world["parts"] else 2


def _world(table: Json, world: Json) -> Iterator[str]:
    mark = f"{world['count']} ×" if world["count"] is not None else "!" if world["raises"] else "?"
    if world["count"] is None:
        yield from _wrapped(f"{mark:<5}{_outcome(world)}", "  ", "       ")
        mark = ""
    yield from _conditions(mark, world)
    for number in world["sites"]:
        site = table["sites"][number]
        yield from _wrapped(f"{site['path']}:{site['line']} {site['kind']}: {site['text']}", "       at ", "          ")


def _conditions(mark: str, world: Json) -> Iterator[str]:
    """What all alternatives share, then what each adds."""
    common, rests = shared(world)
    if not rests or rests == [""]:
        yield from _wrapped(f"{mark:<5}{'when ' + common if common else 'always'}", "  ", "         ")
        return
    if common:
        yield from _wrapped(f"{mark:<5}when {common}", "  ", "         ")
        mark = ""
    for number, rest in enumerate(rests[:ALTERNATIVES]):
        word = ("and " if common else "when ") if not number else "or "
        yield from _wrapped(f"{mark:<5}{word}{rest}", "  ", "         ")
        mark = ""
    if len(rests) > ALTERNATIVES or world["more"]:
        left = "many" if world["more"] else f"{len(rests) - ALTERNATIVES:,}"
        yield f"       or … {left} more; the data has {'some' if world['more'] else 'all'} of them"


def shared(world: Json) -> tuple[str, list[str]]:
    """The clauses that every alternative of a condition has, and the rest of each, empty where nothing is left."""
    texts = [text for text in world["text"] if text != "always"]
    split = [text.split(" and ") for text in texts]
    # A guard's own text may hold an `and`; and what isn't listed may lack what all that are listed share.
    if world["more"] or any(len(parts) != len(cube) for parts, cube in zip(split, world["when"], strict=False)):
        return ("", texts) if len(texts) > 1 else ("".join(texts), [])
    common = [part for part in split[0] if all(part in parts for parts in split)] if split else []
    rests = [" and ".join(part for part in parts if part not in common) for parts in split]
    return " and ".join(common), [] if rests == [""] else rests


def _facts(facts: Sequence[Json]) -> Iterator[str]:
    used = [f"{fact['guard']} = {fact['value']}  ({fact['source']})" for fact in facts if fact["used"]]
    unused = [f"{fact['guard']} = {fact['value']}: {fact['why']}" for fact in facts if fact["why"]]
    for title, rows in (("facts that fixed a guard", used), ("facts that fixed nothing", unused)):
        yield from _section(title, [line for row in rows for line in _wrapped(row, "  ", "      ")])
    rest = len(facts) - len(used) - len(unused)
    if rest:
        yield f"{_many(rest, 'setting', 'settings')} of the deployment met no guard"


def _broken(broken: Mapping[str, str]) -> Iterator[str]:
    yield from _section("not read", [f"  {path}: {why}" for path, why in broken.items()])


def _section(title: str, rows: Sequence[str], total: int = 0) -> Iterator[str]:
    if not rows:
        return
    yield f"{title}:"
    shown = rows if total else rows[: 2 * ROWS]
    yield from shown
    left = total - ROWS if total else len(rows) - len(shown)
    if left > 0:
        yield f"    … {left:,} more; the data has them"


def _wrapped(text: str, first: str, later: str) -> list[str]:
    flat = " ".join(text.split(" "))
    return wrap(flat, WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False) or [first.rstrip()]


def _many(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"
