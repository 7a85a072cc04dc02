"""Run one entry on two states of a tree with the same guards, and say in which worlds the count isn't the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from ..exactly_once.core import Arguments, OutOfBudget
from ..exactly_once.diagram import Diagrams, Node, TooManyWorlds, leaves, support
from ..exactly_once.effort import Effort
from ..exactly_once.entries import Entry
from ..exactly_once.follow import construct
from ..exactly_once.program import Function, Program
from ..exactly_once.table import Outcome, spell
from ..exactly_once.together import Together
from ..exactly_once.values import FunctionValue, Tuple
from .counting import Watching

RAISES = "an exception ends it"
SHOWN = 3
LOOKED_AT = 200
MOST_ROWS = 12
TENSORS = ("hidden_states", "q", "query", "x", "hidden", "inputs", "input_", "input", "hs")
"""Names of the parameter that a block computes its output from, the likeliest first."""


@dataclass
class Side:
    """One state, followed.

    Attributes:
        result: an `Outcome` for every world.
        failed: why there is none; empty if there is one.
    """

    engine: Watching
    result: Node
    failed: str = ""
    exact: bool = True

    @property
    def valid(self) -> Node:
        """The worlds in which nothing was raised that ends them; what stands in the others is void."""
        return self.engine.diagrams.negate(self.engine.lost)

    @property
    def counted(self) -> bool:
        """Whether some world has a number."""
        return any(o.count is not None or o.parts for o in map(_outcome, leaves(self.result)))


@dataclass
class Difference:
    """Worlds in which the two states don't come to the same."""

    kind: str
    before: Outcome
    after: Outcome
    when: list[str]
    hangs_on: list[str] = field(default_factory=list)
    new_guards: list[str] = field(default_factory=list)


def follow(engine: Watching, function: Function, source: str, seconds: float) -> Side:
    """Run a function, of an object built by its class's constructor, from the parameter `source` on if it is given."""
    engine.until, engine.begin, engine.source = engine.effort.after(seconds), function, source
    try:
        result = _run(engine, function)
        d = engine.diagrams
        outcomes = d.map(engine.outcome, _laid_out(d.under(engine.alive, result), d))
        whole = d.ite(engine.alive, outcomes, d.leaf(Outcome(None, unknown=RAISES)))
        return Side(engine, d.under(d.negate(engine.lost), whole), exact=engine.lost_whole)
    except (TooManyWorlds, OutOfBudget, RecursionError) as error:
        why = str(error) or "calls inside calls, deeper than can be followed"
        return Side(engine, engine.leaf(Outcome(None, unknown=why)), why)


def _laid_out(result: Node, d: Diagrams) -> Node:
    """A returned tuple, whose items are diagrams of their own, as one diagram of tuples of single values."""

    def values_of(value: Any) -> frozenset[Any] | Node:
        if not isinstance(value, Tuple):
            return frozenset([value])
        together: Node = d.leaf(frozenset())
        for item in value.items:
            together = d.map2(lambda a, b: a | b, together, d.map(values_of, item))
        return together

    return d.map(lambda values: Tuple(tuple(map(d.leaf, values))), d.map(values_of, result))


def _run(engine: Watching, function: Function) -> Node:
    built = construct(engine, Entry(function))
    frame, nothing = engine.module_frame(function.module), Arguments([], {}, entry=True)
    return engine.enter(FunctionValue(function, built), nothing, frame, engine.alive)


def source_of(function: Function) -> str:
    """The parameter that a block computes its output from; empty where it takes none."""
    names = [a.arg for a in function.node.args.args if a.arg not in ("self", "cls")]
    return next((name for name in TENSORS if name in names), names[0] if names else "")


def same(program: Program, entry: Entry, make: Watching) -> Function | None:
    """The entry's function in another state of the tree."""
    function = entry.function
    path = function.owner.module.path if function.owner else function.module.path
    owner = function.owner.name if function.owner else function.name
    made = program.top_level(path, owner) if program.tree.is_file(path) else None
    if isinstance(made, Function) or made is None:
        return made
    found = make.method(made, function.name)
    return Function(found.module, found.node, made) if found is not None else None


def differences(before: Side, after: Side) -> list[Difference]:
    """In which worlds the counts aren't the same, those with the gravest kinds first."""
    if before.failed or after.failed:
        return []
    d = after.engine.diagrams
    asked, asks = support(before.result), support(after.result)
    new = [name for name in after.engine.handed_to if name not in before.engine.handed_to]
    pairs = d.map2(lambda a, b: (_plain(a), _plain(b)), before.result, after.result)
    found = []
    for (one, other), where in d.values(pairs):
        where = d.both(where, d.both(before.valid, after.valid))
        if one == other or where is d.false:
            continue
        hangs = _hangs_on(after, where) if other.count == 0 else {}
        hung = _hangs_on(before, where) if one.count == 0 else {}
        kind = _kind(one, other, bool(hangs), bool(hung))
        if kind in ("never", "handed_over") and new:
            kind = "replaced"
        if kind != "unknown" and support(where) & (asked - asks) and support(where) & (asks - asked):
            kind = "reworded"
        said = list((hangs or hung).values()) if kind != "replaced" else new
        fresh = [text for key, text in hangs.items() if key not in before.engine.asked]
        found.append(Difference(kind, one, other, _spelled(where, after), said, fresh))
    return sorted(found, key=lambda f: KINDS.index(f.kind))


KINDS = (
    "twice",
    "never",
    "parts_differ",
    "again",
    "handed_over",
    "replaced",
    "reworded",
    "other_ranks",
    "more",
    "fewer",
    "once",
    "unknown",
)


def _kind(one: Outcome, other: Outcome, hangs: bool, hung: bool) -> str:
    if other.parts and not one.parts and one.count is not None:
        return "parts_differ"
    if one.count is None or other.count is None:
        return "unknown"
    if other.count == one.count:
        return "other_ranks"
    if other.count > one.count:
        if one.count == 0:
            return "twice" if other.count > 1 else "again" if hung else "more"
        return "twice"
    if other.count == 0:
        return "handed_over" if hangs else "never"
    return "once" if other.count == 1 else "fewer"


def _hangs_on(side: Side, where: Node) -> dict[str, str]:
    """Guards that the worlds of a zero hang on, spelled: with another value of one alone there would be a count."""
    d = side.engine.diagrams
    found: dict[str, str] = {}
    for cube in islice(d.cubes(where), LOOKED_AT):
        for key in support(side.result):
            if key in cube and any(_count(leaf) for leaf in leaves(_flipped(side.result, cube, key, d))):
                found.setdefault(key, spell({key: cube[key]}, side.engine))
    return found


def _flipped(node: Node, cube: dict[str, tuple[str, ...]], key: str, d: Diagrams) -> Node:
    """A result in worlds like a cube's but for the value of one guard."""
    guard = d.guards[key]
    others = [v for v in guard.values if v not in cube[key]]
    worlds = d.false
    for value in others:
        worlds = d.either(worlds, d.test(guard, value))
    for name, values in cube.items():
        if name != key:
            among = d.false
            for value in values:
                among = d.either(among, d.test(d.guards[name], value))
            worlds = d.both(worlds, among)
    return d.under(worlds, node) if worlds is not d.false else d.leaf(Outcome(0))


def _outcome(leaf: Node) -> Outcome:
    found: Outcome = getattr(leaf, "value")  # noqa: B009 - a leaf's value, which its base doesn't declare
    return found


def _count(leaf: Node) -> int:
    return _outcome(leaf).count or 0


def _plain(outcome: Outcome) -> Outcome:
    return replace(outcome, sites=())


def _spelled(where: Node, side: Side) -> list[str]:
    cubes = sorted(islice(side.engine.diagrams.cubes(where), LOOKED_AT), key=len)
    return [spell(cube, side.engine) for cube in cubes[:SHOWN]]


def rows(side: Side) -> list[dict[str, Any]]:
    """A side's table: each outcome with its shortest alternatives and its places."""
    d, found = side.engine.diagrams, []
    for outcome, where in islice(d.values(side.result), MOST_ROWS):
        where = d.both(where, side.valid)
        if where is d.false:
            continue
        sites = [side.engine.sites[s] for s in outcome.sites]
        found.append(
            {
                "count": outcome.count,
                "parts": list(outcome.parts),
                "unknown": outcome.unknown,
                "when": _spelled(where, side),
                "sites": [f"{s.path}:{s.line}" for s in sites],
                "calls": [s.text for s in sites],
            }
        )
    return found


Maker = Callable[[Program, Diagrams], Watching]
"""Makes an engine for a tree."""


def both(
    before: Program | None,
    after: Program,
    entry: Entry,
    make: Maker,
    sources: list[str],
    seconds: float,
    effort: Effort,
) -> tuple[Side | None, Side]:
    """Follow an entry in both states, from the first of the sources for which a state has a number.

    A source is a parameter to follow; the empty one means whatever the router makes.
    """
    until = effort.after(seconds)
    found: tuple[Side | None, Side] | None = None
    for number, source in enumerate(sources):
        # What comes first is likelier to be it, and gets more of the time.
        share = effort.left(until) * (0.8 if number + 1 < len(sources) else 1.0)
        diagrams = Together(effort=effort)
        second = follow(make(after, diagrams), entry.function, source, share / (2 if before else 1))
        first = _first(before, entry, make, diagrams, source, share / 2) if before is not None else None
        counted = second.counted or (first is not None and first.counted)
        if found is None or counted:
            found = first, second
        if counted:
            break
    assert found is not None
    return found


def _first(before: Program, entry: Entry, make: Maker, diagrams: Diagrams, source: str, seconds: float) -> Side | None:
    engine = make(before, diagrams)
    function = same(before, entry, engine)
    return follow(engine, function, source, seconds) if function is not None else None
