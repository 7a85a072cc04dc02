"""What a trace says about one release of a corpus row: flagged, unknown or clean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KINDS = {"scale-never": "never", "scale-twice": "twice", "parallel-reduce-shard": "twice"}
"""The kind of finding that a kind of row asks for; for any other row every kind but `unknown` will do."""
NEAR = 40
"""How many lines a finding may lie outside the row's lines and still be called near."""

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Place:
    """Where a row says that its defect is, or was."""

    kind: str
    file: str
    lines: tuple[int, int]
    symbol: str


@dataclass(frozen=True)
class Judgement:
    """What one trace says about one release.

    Attributes:
        status: `flagged`, `unknown`, `clean` or `failed`.
        finding: the finding that was matched, as the trace printed it; the nearest one of several.
        near: whether that finding is at the row's lines or symbol, None when nothing was matched.
        others: findings of the right kind in other files; they count for nothing.
        why: what makes it unknown or failed.
    """

    status: str
    finding: Json | None = None
    near: bool | None = None
    others: int = 0
    why: str = ""

    def text(self) -> str:
        if self.finding is None:
            why = f" ({self.why})" if self.why else ""
            return self.status + why
        near = "near" if self.near else "elsewhere in the file"
        return f"{self.status} {self.finding.get('kind')}@{self.finding.get('line')} [{near}]"


def by_suspects(place: Place, answers: Sequence[Json]) -> Judgement:
    """Compare the places that deviate with where the row says that the defect is."""
    return _judged(place, _all(answers, "suspects"), _uncompared(place, answers))


def by_worlds(place: Place, tables: Sequence[Json]) -> Judgement:
    """Compare the findings of all tables with where the row says that the defect is."""
    return _judged(place, _all(tables, "findings"), _undecided(place, tables))


def _all(answers: Sequence[Json], key: str) -> list[Json]:
    return [finding for answer in answers for finding in answer.get(key, [])]


def _judged(place: Place, findings: Sequence[Json], undecided: Iterator[str]) -> Judgement:
    wanted = [finding for finding in findings if _wanted(place.kind, str(finding.get("kind")))]
    here = [finding for finding in wanted if finding.get("path") == place.file]
    others = len(wanted) - len(here)
    if here:
        best = max(here, key=lambda finding: is_near(place, finding))
        return Judgement("flagged", best, is_near(place, best), others)
    why = next(undecided, "")
    return Judgement("unknown" if why else "clean", others=others, why=why)


def _uncompared(place: Place, answers: Sequence[Json]) -> Iterator[str]:
    if not any((answer.get("compared") or {}).get(place.file) for answer in answers):
        yield "nothing in the file was compared"


def _wanted(kind: str, found: str) -> bool:
    return found == KINDS[kind] if kind in KINDS else found != "unknown"


def _undecided(place: Place, tables: Sequence[Json]) -> Iterator[str]:
    if not any(table.get("worlds") for table in tables):
        yield "no world was traced"
    for table in tables:
        for finding in table.get("findings", []):
            if finding.get("kind") == "unknown" and finding.get("path") == place.file:
                yield str(finding.get("why") or "unknown")
        if (table.get("entry") or {}).get("path") == place.file:
            yield from (str(w.get("unknown") or "unknown") for w in table.get("worlds", []) if _uncounted(w))


def _uncounted(world: Json) -> bool:
    return world.get("count") is None and not world.get("raises")


def is_near(place: Place, finding: Json) -> bool:
    """Whether a finding is at the row's lines, give or take, or in the function or class the row names first."""
    first, last = place.lines
    start = int(finding.get("line") or 0)
    end = max(start, int(finding.get("end_line") or 0))
    if start <= last + NEAR and end >= first - NEAR:
        return True
    named = re.split(r"[\s/,(]", place.symbol, maxsplit=1)[0]
    symbol = str(finding.get("symbol") or "")
    return bool(named) and (symbol == named or symbol.startswith(named + "."))


def names(factor: str, text: str) -> list[str]:
    """The identifiers that a row's free text stands for.

    Words that are written as identifiers (with an underscore: `k_scale`) stand for themselves. Otherwise `q/k/v scale`
    is three phrases, and a phrase is looked up in `text`, the row's files: its words joined (`yarn_mscale`), then its
    last word, then the others; the first that occurs counts, as it is or, failing that, as the shortest identifiers
    that contain it (`_q_scale_float`).
    """
    words = factor.split()
    plain = [word for word in words if "_" in word and word.isidentifier()]
    if plain:
        return plain
    phrases = [[part, *words[1:]] for part in words[0].split("/")] if words else []
    known = set(re.findall(r"[A-Za-z_]\w*", text))
    found = [name for phrase in phrases for name in _look_up(phrase, known)]
    return list(dict.fromkeys(found))


def _look_up(phrase: list[str], known: set[str]) -> list[str]:
    joined = re.sub(r"\W", "_", "_".join(phrase))
    for word in (joined, *reversed(phrase)):
        if word in known:
            return [word]
        holders = [name for name in known if re.search(rf"(^|_){re.escape(word)}(_|$)", name)]
        if holders:
            shortest = min(map(len, holders))
            return sorted(name for name in holders if len(name) == shortest)
    return []
