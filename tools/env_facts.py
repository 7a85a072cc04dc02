"""Bring sources together: which value counts, where places disagree, what nobody set."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, Literal

from .base import ToolData
from .env_argv import Scalar, Value, snake
from .env_secrets import hide, in_text, is_secret
from .env_sources import Findings, Reading

Origin = Literal["described", "process", "container", "default"]
Kind = Literal["env", "arg", "config", "platform"]
PRECEDENCE = ("process", "container", "described")
KINDS: tuple[Kind, ...] = ("arg", "env", "config", "platform")
MAX_REWRITES = 5


class Fact(ToolData):
    """One value of one name in one place.

    Attributes:
        name: variables and config keys as they are, arguments in snake_case.
        kind: env, arg, config or platform.
        value: the value; of a default that is computed when the server starts, null.
        set: somebody set it, as opposed to a default.
        source: the place, for a reader.
        origin: described, process, container or default.
        line: line in the source's file, from 1; 0 where there is none.
        effective: the value that counts for this name.
        note: what else there is to know, such as the expression of a computed default.
    """

    name: str
    kind: Kind
    value: Scalar | list[Scalar]
    set: bool
    source: str
    origin: Origin
    line: int
    effective: bool
    note: str = ""


class Claim(ToolData):
    """One side of a conflict."""

    value: Scalar | list[Scalar]
    source: str
    origin: Origin


class Conflict(ToolData):
    """A name on which two places disagree, and why that is one."""

    name: str
    kind: str
    why: str
    values: list[Claim]


class EnvProbeData(ToolData):
    """Findings.

    Attributes:
        facts: every value found, by kind and name, the effective one first.
        values: effective value by name; an argument under each of its spellings.
        unset: names asked for that nobody set and that have no certain default.
        conflicts: names on which places disagree.
        failed: sources that could not be read, with why.
        notes: what limits the answer.
        looked_at: sources that were read.
    """

    facts: list[Fact]
    values: dict[str, Scalar | list[Scalar]]
    unset: list[str]
    conflicts: list[Conflict]
    failed: list[str]
    notes: list[str]
    looked_at: list[str]

    def control_found(self) -> bool | None:
        """See `ToolData.control_found`: places where it could stand were read; nobody set it there."""
        return bool(self.looked_at) and not self.failed


Group = tuple[Kind, str]


class Answer:
    """Everything that was found, for the names asked for."""

    def __init__(self, names: list[str], found: list[Findings], defaults: dict[str, Any]) -> None:
        self.names, self.found = names, found
        self.aliases: dict[str, dict[str, Any]] = defaults.get("aliases", {})
        self.sites: list[dict[str, Any]] = defaults.get("found", [])
        self.chosen: dict[str, int] = defaults.get("chosen", {})
        self.disputed: list[str] = defaults.get("conflicts", [])
        self.skipped: list[dict[str, str]] = defaults.get("skipped", [])
        self.more_skipped: int = defaults.get("skipped_more", 0)
        self.spellings = self._spellings()
        self.groups = self._groups()
        self.absent = {k for f in found if f.origin == "process" for k in f.complete}

    def data(self, looked_at: list[str]) -> EnvProbeData:
        """The findings, with secrets hidden."""
        facts = [fact for group in self._ordered() for fact in self._facts(group)]
        return EnvProbeData(
            facts=facts,
            values=self._values(facts),
            unset=[n for n in self.names if not self._known(n, facts)],
            conflicts=list(self._conflicts()),
            failed=[clean(text) for f in self.found for text in f.failed],
            notes=[*(clean(n) for f in self.found for n in f.notes), *self._limits()],
            looked_at=looked_at,
        )

    def _spellings(self) -> dict[str, list[str]]:
        """Every spelling of an argument by its own name."""
        out: dict[str, list[str]] = {}
        for typed, option in self.aliases.items():
            out.setdefault(option["name"], [option["name"]]).extend([*option["names"], typed])
        return {name: list(dict.fromkeys(all_)) for name, all_ in out.items()}

    def _name(self, reading: Reading) -> str:
        option = self.aliases.get(reading.name) if reading.kind == "arg" else None
        return option["name"] if option else reading.name

    def _groups(self) -> dict[Group, list[Reading]]:
        """Readings of one name, the one that counts first; of an option given twice, the last."""
        groups: dict[Group, list[Reading]] = {}
        for findings in self.found:
            for reading in findings.readings:
                group: Group = (_kind(reading.kind), self._name(reading))
                if self._asked(group):
                    groups.setdefault(group, []).append(reading)
        for readings in groups.values():
            readings.reverse()
            readings.sort(key=lambda r: (not r.override, PRECEDENCE.index(r.origin)))
        return groups

    def _asked(self, group: Group) -> bool:
        return not self.names or any(self._fits(name, group) for name in self.names)

    def _fits(self, asked: str, group: Group) -> bool:
        kind, name = group
        if kind == "arg":
            spelled = self.spellings.get(name, [name])
            return any(_match(snake(asked), s) for s in spelled)
        nested = kind == "config" and fnmatchcase(name, f"*.{asked}")
        return nested or _match(asked, name)

    def _default_groups(self) -> dict[Group, list[int]]:
        """Sites of the defaults of names asked for."""
        groups: dict[Group, list[int]] = {}
        for number, site in enumerate(self.sites):
            # A field of a model's config class is the default of a config key.
            kind = "config" if site["kind"] == "arg" and site["rank"] > 1 else site["kind"]
            group: Group = (_kind(kind), site["name"])
            if self.names and self._asked(group):
                groups.setdefault(group, []).append(number)
        return groups

    def _ordered(self) -> list[Group]:
        both = {*self.groups, *self._default_groups()}
        return sorted(both, key=lambda g: (KINDS.index(g[0]), g[1]))

    def _counting(self, group: Group) -> Reading | None:
        """The reading that counts, if any: what a running process lacks isn't set."""
        readings = self.groups.get(group, [])
        return next((r for r in readings if not self._lacking(group, r)), None)

    def _lacking(self, group: Group, reading: Reading) -> bool:
        kind = "arg" if reading.override else group[0]
        return kind in self.absent and reading.origin != "process"

    def _facts(self, group: Group) -> Iterator[Fact]:
        kind, name = group
        counting = self._counting(group)
        for reading in self.groups.get(group, []):
            lacking = self._lacking(group, reading) and counting is None
            yield Fact(
                name=clean(name),
                kind=kind,
                value=clean_value(hide(name, reading.value)),
                set=True,
                source=clean(in_text(reading.source)),
                origin=_origin(reading.origin),
                line=reading.line,
                effective=reading is counting,
                note="the running process lacks it" if lacking else "",
            )
        yield from self._default_facts(group, is_set=counting is not None)

    def _default_facts(self, group: Group, is_set: bool) -> Iterator[Fact]:
        """The default that counts, and the places that say something else."""
        numbers = self._default_groups().get(group, [])
        chosen = self.chosen.get(group[1])
        same = 0
        for number in numbers:
            site = self.sites[number]
            agrees = chosen is not None and site["known"] and site["agrees"]
            if number != chosen and (agrees or not site["listed"]):
                same += agrees
                continue
            yield self._default_fact(group, site, number == chosen and not is_set)

    def _default_fact(self, group: Group, site: dict[str, Any], effective: bool) -> Fact:
        kind, name = group
        value = site["default"] if site["known"] and _is_value(site["default"]) else None
        return Fact(
            name=clean(name),
            kind=kind,
            value=clean_value(hide(name, value)),
            set=False,
            source=clean(f"default in {site['file']}:{site['line']}"),
            origin="default",
            line=site["line"],
            effective=effective,
            note=clean(_site_note(name, site)),
        )

    def _values(self, facts: list[Fact]) -> dict[str, Value]:
        values: dict[str, Value] = {}
        # What somebody set comes before a default of the same name but of another kind.
        for fact in sorted((f for f in facts if f.effective), key=lambda f: not f.set):
            names = self.spellings.get(fact.name, []) if fact.kind == "arg" else []
            for name in [fact.name, *names]:
                values.setdefault(name, fact.value)
        nested = [f for f in facts if f.effective and f.kind == "config" and "." in f.name]
        last = [f.name.rpartition(".")[2] for f in nested]
        for fact, name in zip(nested, last, strict=True):
            if name in self.names and last.count(name) == 1:
                values.setdefault(name, fact.value)
        return values

    def _known(self, asked: str, facts: list[Fact]) -> bool:
        return any(f.effective and self._fits(asked, (f.kind, f.name)) for f in facts)

    def _conflicts(self) -> Iterator[Conflict]:
        for group in self._ordered():
            readings = self.groups.get(group, [])
            if group[0] in ("env", "arg"):
                yield from self._between(group, readings)
                yield from self._twice(group, readings)
            sites = [self.sites[n] for n in self._default_groups().get(group, [])]
            if group[1] in self.disputed and self._counting(group) is None:
                claims = [_site_claim(group[1], s) for s in sites if s["listed"] and s["known"]]
                yield Conflict(name=clean(group[1]), kind=group[0], why=DIFFER, values=claims)

    def _between(self, group: Group, readings: list[Reading]) -> Iterator[Conflict]:
        """The last word of each origin against the others'."""
        last = {r.origin: r for r in reversed(readings)}
        lacking = group[0] in self.absent and "process" not in last and bool(last)
        texts = {_text(r.value) for r in last.values()}
        if lacking or len(texts) > 1:
            named = " and ".join(o for o in ("described", "container") if o in last)
            why = f"{named}, but the running process lacks it" if lacking else "sources disagree"
            claims = [_claim(group[1], last[o]) for o in PRECEDENCE if o in last]
            yield Conflict(name=clean(group[1]), kind=group[0], why=why, values=claims)

    def _twice(self, group: Group, readings: list[Reading]) -> Iterator[Conflict]:
        for origin in PRECEDENCE:
            own = [r for r in reversed(readings) if r.origin == origin]
            differ = len({_text(r.value) for r in own}) > 1
            if len(own) > 1 and (differ or (group[0] == "arg" and own[0].spelled)):
                claims = [_claim(group[1], r) for r in own]
                yield Conflict(name=clean(group[1]), kind=group[0], why=TWICE, values=claims)

    def _limits(self) -> Iterator[str]:
        for skipped in self.skipped:
            yield clean(f"defaults: {skipped['file']} was left out: {skipped['why']}")
        if self.more_skipped:
            yield f"defaults: {self.more_skipped} more files were left out"


DIFFER = "places in the source give different defaults"
TWICE = "given more than once; the last counts, unless the option collects its values"


def _kind(text: str) -> Kind:
    return next(k for k in KINDS if k == text)


def _origin(text: str) -> Origin:
    return "process" if text == "process" else "container" if text == "container" else "described"


def _match(pattern: str, name: str) -> bool:
    return fnmatchcase(name, pattern + "*" if pattern.endswith("_") else pattern)


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_value(value: object) -> bool:
    items = value if isinstance(value, list) else [value]
    return all(isinstance(v, bool | int | float | str) or v is None for v in items)


def _claim(name: str, reading: Reading) -> Claim:
    value = clean_value(hide(name, reading.value))
    return Claim(value=value, source=clean(reading.source), origin=_origin(reading.origin))


def _site_claim(name: str, site: dict[str, Any]) -> Claim:
    value = site["default"] if _is_value(site["default"]) else str(site["default"])
    source = clean(f"default in {site['file']}:{site['line']}")
    return Claim(value=clean_value(hide(name, value)), source=source, origin="default")


def _site_note(name: str, site: dict[str, Any]) -> str:
    parts = [site["how"]]
    if site["role"] == "required":
        parts.append("no default: it must be given")
    elif not site["known"] and site["role"] == "default" and not is_secret(name):
        parts.append(f"computed: {site['text']}")
    if lines := site["rewritten"]:
        more = ", …" if len(lines) > MAX_REWRITES else ""
        shown = ", ".join(map(str, lines[:MAX_REWRITES]))
        parts.append(f"assigned again in that file, lines {shown}{more}")
    return "; ".join(parts)


def clean(text: str) -> str:
    """Text that UTF-8 can hold: bytes that had no meaning show as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def clean_value(value: Value) -> Value:
    """The same for a value."""
    if isinstance(value, list):
        return [clean(v) if isinstance(v, str) else v for v in value]
    return clean(value) if isinstance(value, str) else value
