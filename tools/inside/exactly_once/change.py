"""What a patch does to the count: one entry before and after it, in the worlds where the patch can matter.

Both runs share one manager of diagrams, so that their worlds are the same worlds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ..chunks import without_texts
from .core import OutOfBudget
from .diagram import MOST_NODES, Branch, Diagrams, Guard, Node, TooManyWorlds
from .effort import Effort
from .engine import Engine
from .entries import Entry, named
from .focus import Focus
from .follow import construct, run
from .instances import ManyClasses
from .program import Program
from .sinks import Sinks
from .summary import LOOKED_AT, SHOWN
from .table import Outcome, outcomes, spell
from .together import Together

MOST_TOGETHER = 60_000
"""Nodes for all classes of an object together; with more they are followed one by one, which is faster then."""
GAVE_UP = (TooManyWorlds, OutOfBudget, RecursionError)
BAD = ("broken", "let through")
GOOD = ("right", "same")
_SETTING = re.compile(r"(^|[^\w])(\w*config|cfg|\w*args)\.|environ|getenv|\benvs?\.|env_", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_DEF = re.compile(r"^([ \t]*)(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)


@dataclass
class Asked:
    """What is to be counted, in two states of a tree.

    Attributes:
        ordinary: more facts, for which to look where all worlds together are too many.
        until: when to give up, by the work that `effort` has counted.
    """

    before: Program
    after: Program
    factor: str
    sinks: Sinks
    facts: dict[str, str]
    ordinary: dict[str, str]
    until: float
    effort: Effort

    def engines(
        self, until: float, facts: dict[str, str] | None = None, focus: Focus | None = None, most: int = MOST_NODES
    ) -> list[Engine]:
        """An engine for each state, over the same diagrams."""
        shared = Together(most, self.effort)
        made = []
        for program in (self.before, self.after):
            engine = Engine(program, self.factor, self.sinks, facts or self.facts, diagrams=shared)
            engine.until, engine.focus = until, focus or Focus()
            made.append(engine)
        return made


@dataclass(frozen=True)
class End:
    """What one run comes to in a world: an outcome, or the exception that ends it."""

    outcome: Outcome
    raises: str = ""

    @property
    def says(self) -> str:
        """In a word or two."""
        if self.raises:
            return f"raises ({self.raises})"
        if self.outcome.parts:
            return "parts differ: " + " and ".join(map(str, self.outcome.parts))
        return f"unknown, because {self.outcome.unknown}" if self.outcome.count is None else str(self.outcome.count)

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes two ends the same, wherever the factor is applied."""
        return self.outcome.count, self.outcome.parts, self.outcome.unknown, self.raises


@dataclass
class Compared:
    """One entry's worlds, before and after.

    Attributes:
        rows: what became of them, and when.
        certain: conditions under which no world is right, and some are wrong that weren't; empty if there are none.
        blind: what could change the count and can't be seen, with the patch alone.
        failed: why there are no rows.
    """

    entry: Entry
    slice: dict[str, str]
    rows: list[dict[str, Any]] = field(default_factory=list)
    certain: list[str] = field(default_factory=list)
    blind: list[str] = field(default_factory=list)
    failed: str = ""
    facts_used: set[str] = field(default_factory=set)
    assumptions: list[str] = field(default_factory=list)


def ends(result: Node, engine: Engine) -> Node:
    """What every world comes to; sites are left to each engine."""
    d = engine.diagrams
    found = d.map(lambda outcome: End(outcome), outcomes(result, engine))
    for raised in engine.raised:
        found = d.ite(raised.when, d.leaf(End(Outcome(None), f"{raised.path}:{raised.line} {raised.text}")), found)
    return found


def paired(engines: list[Engine], results: list[Node]) -> Node:
    """What every world comes to before and after."""
    before, after = (ends(result, engine) for result, engine in zip(results, engines, strict=True))
    return engines[0].diagrams.map2(lambda a, b: (a, b), before, after)


def kind_of(before: End, after: End) -> str:
    """What became of a world: see `tools/factor_change.py`."""
    a, b = before.outcome, after.outcome
    if after.raises:
        return "refused"
    if b.count is None and not b.parts:
        return "unknown"
    if before.key == after.key:
        return "same"
    if b.count == 1:
        return "right"
    if before.raises:
        return "let through"
    if a.count == 1:
        return "broken"
    return "unknown" if a.count is None and not a.parts else "wrong before"


def compare(asked: Asked, entry: Entry, focus: Focus, settled: bool) -> list[Compared]:
    """The worlds of one entry that come to what `focus` watches; one result a class where an object may have many.

    `settled` says that nothing but objects which the entry's constructor makes leads to what is watched.
    """
    whole = _attempt(asked, entry, focus, settled, {}, asked.until, most=MOST_TOGETHER)
    if isinstance(whole, Compared) and not whole.failed:
        return [whole]
    # One wrong world is enough, so the settings that most deployments have are looked at before all the others.
    waiting = [asked.ordinary, {}] if asked.ordinary else [{}]
    done: list[Compared] = []
    while waiting:
        slice_ = waiting.pop(0)
        share = asked.effort.left(asked.until) / min(len(waiting) + 1, 6)
        may_slice = slice_ in ({}, asked.ordinary)
        found = _attempt(asked, entry, focus, settled, slice_, asked.effort.after(share), may_slice=may_slice)
        if isinstance(found, ManyClasses):
            public_first = sorted(found.values, key=lambda value: value.startswith("_"))
            waiting = [{**slice_, found.name: value} for value in public_first] + waiting
            continue
        done.append(found)
        if found.certain:
            break
    return done


def _attempt(
    asked: Asked,
    entry: Entry,
    focus: Focus,
    settled: bool,
    slice_: dict[str, str],
    until: float,
    *,
    may_slice: bool = False,
    most: int = MOST_NODES,
) -> Compared | ManyClasses:
    engines = asked.engines(until, {**asked.facts, **slice_}, focus, most)
    found = Compared(entry, slice_)
    try:
        entries = [named(e.program, e, entry.name)[0] for e in engines]
        for engine in engines:
            engine.may_slice = may_slice
        built = [construct(engine, at) for engine, at in zip(engines, entries, strict=True)]
        if settled:
            touched = _touched(engines)
            for engine in engines:
                engine.alive = engine.diagrams.both(engine.alive, touched)
        results = [run(engine, at, obj) for engine, at, obj in zip(engines, entries, built, strict=True)]
        found.rows, found.certain = _rows(engines, results)
        found.blind = _new_blind(*engines)
    except ManyClasses as many:
        return many
    except GAVE_UP as error:
        found.failed = str(error) or "calls inside calls, deeper than can be followed"
    found.facts_used = set().union(*(engine.used_facts for engine in engines))
    found.assumptions = list(dict.fromkeys(text for engine in engines for text in engine.assumptions))
    return found


def _new_blind(before: Engine, after: Engine) -> list[str]:
    """What only the later state of the watched files does out of sight; lines move, so that the reason tells it."""
    watched = {path for path, _ in after.focus.functions}
    known = {(path, why) for path, _, why in before.blind}
    return [f"{p}:{line} {why}" for p, line, why in after.blind if p in watched and (p, why) not in known]


def _touched(engines: list[Engine]) -> Node:
    """The worlds in which either run came to what is watched."""
    return engines[0].diagrams.either(engines[0].touched, engines[1].touched)


def _rows(engines: list[Engine], results: list[Node]) -> tuple[list[dict[str, Any]], list[str]]:
    d = engines[0].diagrams
    asked_about = _touched(engines)
    for engine in engines:
        if engine.lost_whole:
            asked_about = d.both(asked_about, d.negate(engine.lost))
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for (before, after), when in d.values(paired(engines, results), asked_about):
        key = (before.key, after.key)
        row = groups.setdefault(key, {"before": before, "after": after, "when": d.false, "sites": {}})
        row["when"] = d.either(row["when"], when)
        row["sites"] |= dict.fromkeys(after.outcome.sites)
    certain = _certain(d, groups.values(), asked_about, set().union(*(e.guessed - e.given for e in engines)))
    return [_row(row, asked_about, engines) for row in groups.values()], _spelled(certain, engines)


def _certain(d: Diagrams, rows: Iterable[dict[str, Any]], asked_about: Node, guessed: set[str]) -> Node:
    """The configurations in which some worlds went wrong and none is right.

    A configuration is a choice of everything that is set: classes, members of an Enum, the platform, and for what was
    right before also what a configuration, the launch arguments and the environment say. Whatever else isn't known (a
    test of an argument that nobody gave) may be impossible together with it. What rests on the arguments of a
    constructor that nobody was seen to call has to be wrong whatever they are. A world that was refused before proves
    less: there only the other worlds that were refused count for it.
    """
    met: dict[tuple[str, bool], Node] = {}
    for row in rows:
        key = kind_of(row["before"], row["after"]), bool(row["before"].raises)
        met[key] = d.either(met.get(key, d.false), row["when"])

    def when(kinds: Iterable[str], refused: bool) -> Node:
        found = d.false
        for kind in kinds:
            found = d.either(found, met.get((kind, refused), d.false))
        return found

    def is_guess(guard: Guard) -> bool:
        return bool(guessed & set(_WORD.findall(guard.key)[:1]))

    elsewhere, certain = d.negate(asked_about), d.false
    for refused, dropped in ((False, _is_test), (True, _is_condition)):
        bad = _project(d, d.either(when(BAD, refused), elsewhere), is_guess, d.both, d.true, {})
        bad = _project(d, d.both(bad, asked_about), dropped, d.either, d.false, {})
        good = _project(d, when(GOOD, refused), dropped, d.either, d.false, {})
        certain = d.either(certain, d.both(bad, d.negate(good)))
    return certain


def _is_condition(guard: Guard) -> bool:
    """Whether a guard is true or false, or compares a number: it has no values with names of their own."""
    return guard.values == ("true", "false") or guard.values[0][:1] in "<=>"


def _is_test(guard: Guard) -> bool:
    """Whether a guard is a condition that isn't set from outside."""
    return _is_condition(guard) and not _SETTING.search(guard.key)


def _project(
    d: Diagrams,
    node: Node,
    drop: Callable[[Guard], bool],
    combine: Callable[[Node, Node], Node],
    neutral: Node,
    done: dict[int, Node],
) -> Node:
    """A condition without some guards: where it holds for any (`either`), or for all (`both`) of their values."""
    if not isinstance(node, Branch):
        return node
    if id(node) not in done:
        below = [_project(d, child, drop, combine, neutral, done) for child in node.children]
        if drop(node.guard):
            found = neutral
            for child in below:
                found = combine(found, child)
        else:
            found = d.branch(node.guard, tuple(below))
        done[id(node)] = found
    return done[id(node)]


def _row(row: dict[str, Any], asked_about: Node, engines: list[Engine]) -> dict[str, Any]:
    before, after, d = row["before"], row["after"], engines[0].diagrams
    when = _spelled(d.under(asked_about, row["when"]), engines)
    return {
        "kind": kind_of(before, after),
        "before": before.says,
        "after": after.says,
        "count_before": before.outcome.count,
        "count_after": after.outcome.count,
        "when": when[:SHOWN],
        "more": len(when) > SHOWN,
        "sites": [vars(engines[1].sites[index]) for index in row["sites"]],
    }


def _spelled(when: Node, engines: list[Engine]) -> list[str]:
    """The shortest alternatives of a condition."""
    cubes = sorted(islice(engines[0].diagrams.cubes(when), LOOKED_AT), key=len)
    return [spell(cube, engines[1]) for cube in cubes[: SHOWN + 1]]


def built_by_constructors(program: Program, classes: set[tuple[str, str]]) -> bool:
    """Whether objects of these classes are seen to be made by constructors alone, outside their own files.

    A name that is put into a table, or that another class derives from, may be called from anywhere.
    """
    for path, name in classes:
        mention = re.compile(rf"\b{re.escape(name)}\b")
        for source in program.texts.holding(name.encode()):
            module = program.module(source) if source != path else None
            text = without_texts(module.text) if module is not None else ""
            if not all(_is_harmless(text, found) for found in mention.finditer(text)):
                return False
    return True


def _is_harmless(text: str, mention: re.Match[str]) -> bool:
    """Whether a mention of a class is a call in a constructor, an import, a test or an annotation."""
    start = text.rfind("\n", 0, mention.start()) + 1
    before = text[start : mention.start()]
    if re.match(r"\s*(from|import)\b|.*(isinstance\(|->\s*|:\s*)", before) or "import" in _statement(text, start):
        return True
    if text[mention.end() : mention.end() + 1] == "(":
        return not before.lstrip().startswith("class ") and _inside(text, mention.start()) == "__init__"
    return False


def _statement(text: str, start: int) -> str:
    """The first line of the parenthesis that a line stands in, where it begins with an import."""
    opened = text.rfind("(", 0, start)
    closed = text.rfind(")", 0, start)
    return text[text.rfind("\n", 0, opened) + 1 : opened] if opened > closed else ""


def _inside(text: str, at: int) -> str:
    """Name of the function that a place of a text stands in; empty outside any."""
    line = text.rfind("\n", 0, at) + 1
    indent = len(text[line:at]) - len(text[line:at].lstrip())
    for match in reversed(list(_DEF.finditer(text, 0, line))):
        if len(match[1]) < indent:
            return match[2]
    return ""
