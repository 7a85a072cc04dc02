"""The worlds table: what a diagram says, as rows that a person reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .core import Core
from .diagram import Node, leaves
from .values import Murky, Obj, Tensor, Tuple


@dataclass(frozen=True)
class Outcome:
    """What a world comes to.

    Attributes:
        count: how often the factor is applied; None where it isn't known or the parts differ.
        parts: the counts of the routed parts where they differ.
        unknown: why it isn't known.
        sites: the places that applied it, in order.
    """

    count: int | None
    sites: tuple[int, ...] = ()
    unknown: str = ""
    parts: tuple[int, ...] = ()


@dataclass
class Row:
    """Worlds that come to the same.

    Attributes:
        when: the worlds.
        plain: the same for a reader, without what holds in all worlds that are left anyway.
        aside: the exception says nothing of the factor.
    """

    outcome: Outcome
    when: Node
    plain: Node
    raises: str = ""
    aside: bool = False


def outcomes(result: Node, engine: Core) -> Node:
    """What a returned value comes to in each world."""
    return engine.diagrams.map(lambda found: outcome_of(found, engine), carried(result, engine))


def carried(result: Node, engine: Core) -> Node:
    """For each world the tensors, and values that aren't clear, which are returned: also in a tuple or an object."""
    return _carried(result, engine, frozenset())


def _carried(node: Node, engine: Core, inside: frozenset[int]) -> Node:
    d = engine.diagrams
    nothing: Node = d.leaf(())

    def parts(value: Any) -> Node:
        if isinstance(value, Tensor | Murky):
            return d.leaf((value,))
        items: list[Node] = []
        if isinstance(value, Tuple):
            items = list(value.items)
        elif isinstance(value, Obj) and id(value) not in inside and not inside:
            items = [item for item in value.attrs.values() if engine.is_hot(item)]
        found = nothing
        for item in items:
            held = inside | {id(value)} if isinstance(value, Obj) else inside
            found = d.map2(lambda a, b: tuple(dict.fromkeys((*a, *b))), found, _carried(item, engine, held))
        return found

    return d.map(parts, node)


def outcome_of(found: tuple[Any, ...], engine: Core) -> Outcome:
    """The count that the values which are returned stand for."""
    murky = next((v for v in found if isinstance(v, Murky)), None)
    if murky is not None:
        return Outcome(None, unknown=murky.reason)
    everything = [t for v in found if isinstance(v, Tensor) for t in v.terms]
    terms = [t for t in everything if t.routed]
    elsewhere = [t for t in everything if not t.routed and t.k and not t.part]
    if elsewhere and (terms or engine.routers_seen):
        place = engine.sites[elsewhere[0].sites[0]] if elsewhere[0].sites else None
        where = f" ({place.path}:{place.line})" if place else ""
        return Outcome(None, unknown=f"something is scaled that isn't seen to come from the router{where}")
    terms = terms or elsewhere
    if not terms:
        return Outcome(None, unknown="no routed part reaches the result")
    counts = sorted({t.k for t in terms})
    sites = tuple(dict.fromkeys(s for t in sorted(terms, key=lambda t: (t.k, t.sites)) for s in t.sites))
    if len(counts) == 1:
        return Outcome(counts[0], sites)
    if min(counts) < 0:
        return Outcome(None, sites, f"a part carries the factor to the power {min(counts)}")
    told = " and ".join(map(str, counts))
    return Outcome(None, sites, f"its parts carry the factor differently: {told} times", tuple(counts))


def flat(value: Any) -> Iterator[Any]:
    """A value, or those that a tuple or an object holds in whatever world."""
    if isinstance(value, Tuple):
        for item in value.items:
            for leaf in leaves(item):
                yield from flat(leaf.value)
    elif isinstance(value, Obj):
        held = (leaf.value for item in value.attrs.values() for leaf in leaves(item))
        yield from (each for each in held if isinstance(each, Tensor | Murky))
    else:
        yield value


def make(result: Node, reached: Node, engine: Core) -> list[Row]:
    """Rows for a result, and for what is raised on the way.

    Exceptions that say nothing of the factor are marked `aside`; the other rows leave their worlds out, unless
    telling them apart would take more than can be spelled.
    """
    d = engine.diagrams
    reached = d.both(reached, engine.alive)
    exact = engine.lost_whole
    kept = d.negate(engine.lost) if exact else d.true
    found = outcomes(d.under(d.both(reached, kept), result), engine)
    rows = []
    for outcome, plain in d.values(found, reached):
        when = d.both(plain, kept)
        if when is not d.false:
            rows.append(Row(outcome, when, d.under(reached, plain)))
    for raised in engine.raised:
        rows.append(Row(Outcome(None), raised.when, raised.when, f"{raised.path}:{raised.line} {raised.text}"))
    for raised in engine.losses if exact else ():
        text = f"{raised.path}:{raised.line} {raised.text}"
        rows.append(Row(Outcome(None), raised.when, raised.when, text, aside=True))
    return rows


def spell(cube: dict[str, tuple[str, ...]], engine: Core) -> str:
    """One alternative as a reader would say it."""
    parts = []
    for key, values in cube.items():
        guard = engine.diagrams.guards[key]
        if guard.values == ("true", "false"):
            parts.append(
                guard.name
                if values == ("true",)
                else f"not ({guard.name})"
                if " " in guard.name
                else f"not {guard.name}"
            )
        elif guard.values[0][0] in "<=>" and guard.values[0][1:2] == " ":
            signs = "".join(v[0] for v in values)
            sign = {"<": "<", "=": "==", ">": ">", "<=": "<=", "=>": ">=", "<>": "!="}[signs]
            parts.append(f"{guard.name} {sign} {values[0][2:]}")
        elif len(values) > len(guard.values) / 2 and len(guard.values) > 3:
            rest = [v for v in guard.values if v not in values]
            parts.append(f"{guard.name} not in ({', '.join(rest)})" if len(rest) > 1 else f"{guard.name} != {rest[0]}")
        else:
            parts.append(
                f"{guard.name} = {values[0]}" if len(values) == 1 else f"{guard.name} in ({', '.join(values)})"
            )
    return " and ".join(parts) or "always"
