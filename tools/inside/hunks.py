"""Line differences between two texts, grouped into hunks; exact, and near linear on large files."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

QUADRATIC = 4_000_000
"""Largest product of line counts for which the thorough matcher is used on a gap without common unique lines."""


@dataclass(frozen=True)
class Block:
    """One run of differing lines, 0-based and half open: old[old_start:old_end] became new[new_start:new_end]."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


@dataclass
class Hunk:
    """Neighbouring blocks with their context, as a unified diff shows them (0-based, half open)."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int
    blocks: list[Block] = field(default_factory=list)

    @property
    def header(self) -> str:
        """The @@ line, with 1-based starts as `diff -u` writes them."""
        return f"@@ -{_range(self.old_start, self.old_end)} +{_range(self.new_start, self.new_end)} @@"


def _range(start: int, end: int) -> str:
    return f"{start + (end > start)},{end - start}"


def split_lines(text: str) -> list[str]:
    """Lines as Python's parser and `diff` number them: split at newline only, which is dropped; CR stays."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def blocks(old: Sequence[str], new: Sequence[str]) -> list[Block]:
    """The differing runs of two sequences of lines, in order."""
    found: list[Block] = []
    _between(old, new, 0, len(old), 0, len(new), found)
    return _joined(found)


def equal_runs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int]]:
    """The common runs of two sequences as (old start, new start, length), in order."""
    runs, a, c = [], 0, 0
    for block in [*blocks(old, new), Block(len(old), len(old), len(new), len(new))]:
        if block.old_start > a:
            runs.append((a, c, block.old_start - a))
        a, c = block.old_end, block.new_end
    return runs


def _joined(found: list[Block]) -> list[Block]:
    out: list[Block] = []
    for block in sorted(found, key=lambda each: (each.old_start, each.new_start)):
        last = out[-1] if out else None
        if last and last.old_end == block.old_start and last.new_end == block.new_start:
            out[-1] = Block(last.old_start, block.old_end, last.new_start, block.new_end)
        else:
            out.append(block)
    return out


def _between(old: Sequence[str], new: Sequence[str], a: int, b: int, c: int, d: int, found: list[Block]) -> None:
    """Differences of old[a:b] and new[c:d]: trim the common ends, split at unique common lines, recurse."""
    while a < b and c < d and old[a] == new[c]:
        a, c = a + 1, c + 1
    while a < b and c < d and old[b - 1] == new[d - 1]:
        b, d = b - 1, d - 1
    if a == b or c == d:
        if a < b or c < d:
            found.append(Block(a, b, c, d))
        return
    anchors = _anchors(old, new, a, b, c, d)
    if not anchors:
        _thorough(old, new, a, b, c, d, found)
        return
    left, right = a, c
    for i, j in anchors:
        _between(old, new, left, i, right, j, found)
        left, right = i + 1, j + 1
    _between(old, new, left, b, right, d, found)


def _thorough(old: Sequence[str], new: Sequence[str], a: int, b: int, c: int, d: int, found: list[Block]) -> None:
    if (b - a) * (d - c) > QUADRATIC:
        found.append(Block(a, b, c, d))
        return
    matcher = SequenceMatcher(None, old[a:b], new[c:d], autojunk=b - a > 400)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag != "equal":
            found.append(Block(a + i, a + j, c + k, c + m))


def _anchors(old: Sequence[str], new: Sequence[str], a: int, b: int, c: int, d: int) -> list[tuple[int, int]]:
    """Lines that occur exactly once on both sides, in the longest order-preserving selection."""
    places = _once(old, a, b)
    others = _once(new, c, d)
    pairs = [(i, others[line]) for line, i in places.items() if line in others]
    return _longest_rising(pairs)


def _once(lines: Sequence[str], start: int, end: int) -> dict[str, int]:
    seen: dict[str, int] = {}
    for i in range(start, end):
        seen[lines[i]] = -1 if lines[i] in seen else i
    return {line: i for line, i in seen.items() if i >= 0}


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Patience sorting: pairs are rising in the first member; pick the most with the second rising too."""
    tops: list[int] = []
    at: list[int] = []
    previous: list[int] = []
    for n, (_, j) in enumerate(pairs):
        pile = bisect_left(tops, j)
        previous.append(at[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [j]
        at[pile : pile + 1] = [n]
    chain: list[tuple[int, int]] = []
    n = at[-1] if at else -1
    while n >= 0:
        chain.append(pairs[n])
        n = previous[n]
    return chain[::-1]


def group(found: list[Block], old_total: int, new_total: int, context: int) -> list[Hunk]:
    """Hunks with up to `context` unchanged lines around each block; near blocks share a hunk."""
    hunks: list[Hunk] = []
    for block in found:
        a, c = max(0, block.old_start - context), max(0, block.new_start - context)
        b, d = min(old_total, block.old_end + context), min(new_total, block.new_end + context)
        if hunks and a <= hunks[-1].old_end and c <= hunks[-1].new_end:
            hunks[-1].old_end, hunks[-1].new_end = b, d
        else:
            hunks.append(Hunk(a, b, c, d))
        hunks[-1].blocks.append(block)
    return hunks


def diff_text(hunk: Hunk, old: Sequence[str], new: Sequence[str], limit: int) -> tuple[str, int]:
    """The hunk as a unified diff, at most about `limit` characters.

    Returns:
        The text, and how many of its lines were left out.
    """
    lines = [hunk.header]
    at = hunk.old_start
    for block in hunk.blocks:
        lines += [" " + line for line in old[at : block.old_start]]
        lines += ["-" + line for line in old[block.old_start : block.old_end]]
        lines += ["+" + line for line in new[block.new_start : block.new_end]]
        at = block.old_end
    lines += [" " + line for line in old[at : hunk.old_end]]
    used = 0
    for n, line in enumerate(lines):
        used += len(line) + 1
        if used > limit and n:
            return "\n".join(lines[:n]), len(lines) - n
    return lines[0][:limit] if used > limit else "\n".join(lines), 0


_WORD = re.compile(r"\w+|[^\w\s]")


def words(text: str) -> list[str]:
    """Identifiers, numbers and single punctuation marks of a text."""
    return _WORD.findall(text)


def likeness(a: Sequence[str], b: Sequence[str]) -> float:
    """Share of common words, counted with multiplicity: 0 nothing in common, 1 the same bag."""
    if not a or not b:
        return 0.0
    counts: dict[str, int] = {}
    for word in a:
        counts[word] = counts.get(word, 0) + 1
    common = 0
    for word in b:
        if counts.get(word, 0) > 0:
            counts[word] -= 1
            common += 1
    return 2 * common / (len(a) + len(b))
