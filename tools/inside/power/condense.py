"""From runs to worlds: the fewest conditions that tell the outcomes apart.

Where every world was run, one decision tree over the answers tells all outcomes apart. Else the runs that gave a count
are told apart, from each other and from those that failed under the same conditions; runs that ended in an exception,
or couldn't be counted, form worlds of their own, each with the answer that led there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import log2

from .trial import Result

Answers = dict[str, str]
Row = tuple[Answers, Result]
When = list[tuple[str, str]]
Outcome = tuple[int | None, str, str]


@dataclass
class Leaf:
    """Runs of one outcome, and the conditions under which they ran."""

    when: When
    rows: list[Row]


def outcome(result: Result) -> Outcome:
    """What tells two runs apart: the count, the reason it isn't known, or the exception."""
    return (result.count, result.unknown, result.raises)


def condense(rows: list[Row], complete: bool) -> list[Leaf]:
    """Worlds, counts first. Where every world was run and none failed, they don't overlap."""
    counted = [row for row in rows if row[1].count is not None]
    failed = [row for row in rows if row[1].count is None]
    if complete or not counted:
        return _together(_grow(rows, []))
    leaves = [one for leaf in _grow(counted, []) for one in _refined(leaf, failed)]
    leaves = [Leaf([*leaf.when, *_untried(leaf, rows)], leaf.rows) for leaf in leaves]
    return [*leaves, *_failures(failed, counted)]


def _together(leaves: Iterable[Leaf]) -> list[Leaf]:
    """Counts first, then each kind of failure by itself."""
    found = list(leaves)
    kinds = list(dict.fromkeys(outcome(leaf.rows[0][1]) for leaf in found))
    return sorted(found, key=lambda leaf: (leaf.rows[0][1].count is None, _rank(leaf, kinds)))


def _rank(leaf: Leaf, kinds: list[Outcome]) -> int:
    found = outcome(leaf.rows[0][1])
    return 0 if found[0] is not None else kinds.index(found)


def _refined(leaf: Leaf, failed: list[Row]) -> Iterable[Leaf]:
    """A leaf of counted runs, told apart from the runs that failed under the same conditions."""
    met = [row for row in failed if all(row[0].get(name, answer) == answer for name, answer in leaf.when)]
    leaves = _grow([*leaf.rows, *met], leaf.when) if met else [leaf]
    return [one for one in leaves if one.rows[0][1].count is not None]


def _grow(rows: list[Row], when: When) -> Iterable[Leaf]:
    if not rows:
        return []
    if len({outcome(result) for _, result in rows}) <= 1:
        return [Leaf(when, rows)]
    name = _best(rows, {name for name, _ in when})
    if name is None:
        kinds: dict[Outcome, list[Row]] = {}
        for row in rows:
            kinds.setdefault(outcome(row[1]), []).append(row)
        return [Leaf(when, some) for some in kinds.values()]
    leaves: list[Leaf] = []
    for answer in _answers(rows, name):
        some = [row for row in rows if row[0].get(name, answer) == answer]
        leaves += _grow(some, [*when, (name, answer)])
    return leaves


def _failures(failed: list[Row], counted: list[Row]) -> Iterable[Leaf]:
    """One leaf for each way to fail, with the answers that all its runs share and no counted run has."""
    kinds: dict[Outcome, list[Row]] = {}
    for row in failed:
        kinds.setdefault(outcome(row[1]), []).append(row)
    for rows in kinds.values():
        shared = set.intersection(*(set(answers.items()) for answers, _ in rows))
        never = [one for one in shared if not any(answers.get(one[0]) == one[1] for answers, _ in counted)]
        order = list(rows[0][0].items())
        told = sorted(never, key=order.index) or [one for one in order[-1:] if one in shared]
        yield Leaf(told[:4], rows)


def _untried(leaf: Leaf, rows: list[Row]) -> When:
    """Answers that all runs of a leaf share, where another answer leads on to worlds of which none was counted."""
    shared = set.intersection(*(set(answers.items()) for answers, _ in leaf.rows)) - set(leaf.when)
    order = list(leaf.rows[0][0].items())
    return [one for one in sorted(shared, key=order.index) if _leads_on(*one, rows)]


def _leads_on(name: str, answer: str, rows: list[Row]) -> bool:
    others = [row for row in rows if row[0].get(name, answer) != answer]
    if not others or any(result.count is not None for _, result in others):
        return False
    return not any(result.raises and list(answers)[-1] == name for answers, result in others)


def _answers(rows: list[Row], name: str) -> list[str]:
    return list(dict.fromkeys(answers[name] for answers, _ in rows if name in answers))


def _best(rows: list[Row], used: set[str]) -> str | None:
    """The question that tells most about the outcome; the one asked first among equals."""
    names = dict.fromkeys(name for answers, _ in rows for name in answers if name not in used)
    scored = [(_left(rows, name), n, name) for n, name in enumerate(names) if len(_answers(rows, name)) > 1]
    # A question that only some runs met may make no sense in the others: first those that decide whether it is met.
    now = round(_entropy([outcome(result) for _, result in rows]), 9)
    always = [one for one in scored if one[0] < now and all(one[2] in answers for answers, _ in rows)]
    return min(always or scored)[2] if scored else None


def _left(rows: list[Row], name: str) -> float:
    """The uncertainty that is left when the answer is known; runs that weren't asked count in every answer."""
    total, weight = 0.0, 0
    for answer in _answers(rows, name):
        some = [outcome(result) for answers, result in rows if answers.get(name, answer) == answer]
        total += len(some) * _entropy(some)
        weight += len(some)
    return round(total / weight, 9)


def _entropy(outcomes: list[Outcome]) -> float:
    counts = Counter(outcomes)
    return -sum(n / len(outcomes) * log2(n / len(outcomes)) for n in counts.values())
