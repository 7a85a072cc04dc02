"""Names of one frame that share storage, and when they do."""

from __future__ import annotations

from .diagram import Diagrams, Node

Sharing = dict[str, dict[str, Node]]
"""For each name the others that share its storage, with the condition under which they do."""


def share(names: Sharing, a: str, b: str, when: Node, diagrams: Diagrams) -> None:
    """Two names share storage under a condition: what shares it with one then does with the other."""
    first, second = {a: when, **_under(names, a, when, diagrams)}, {b: when, **_under(names, b, when, diagrams)}
    for one, where in first.items():
        for other, too in second.items():
            if one != other:
                both = diagrams.both(where, too)
                for x, y in ((one, other), (other, one)):
                    known = names.setdefault(x, {})
                    known[y] = diagrams.either(known.get(y, diagrams.false), both)


def _under(names: Sharing, name: str, when: Node, diagrams: Diagrams) -> dict[str, Node]:
    found = {other: diagrams.both(where, when) for other, where in names.get(name, {}).items()}
    return {other: where for other, where in found.items() if where is not diagrams.false}


def part(names: Sharing, name: str, when: Node, diagrams: Diagrams) -> None:
    """A name stands for something else under a condition: it shares nothing then."""
    stays = diagrams.negate(when)
    for other, where in list(names.get(name, {}).items()):
        left = diagrams.both(where, stays)
        for x, y in ((name, other), (other, name)):
            if left is diagrams.false:
                names.get(x, {}).pop(y, None)
            else:
                names[x][y] = left
