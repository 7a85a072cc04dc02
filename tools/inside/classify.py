"""Classes of the changes between two versions of a file, by syntax tree where there is one, else by token rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from .change_kinds import Change, settle
from .classify_config import classify_config
from .classify_python import classify_python
from .classify_repair import parse, parse_fragments
from .classify_text import classify_text
from .classify_tokens import BRACES, HASHES, language_of, statements
from .classify_units import Source
from .hunks import Block, blocks

TESTS = re.compile(r"(^|/)(tests?|testing|unittests?|unit_tests?)/|(^|/)(test_[^/]*|[^/]*_test|conftest)\.\w+$")
CONFIGS = frozenset({"json", "yaml", "toml", "ini"})
MARGINS = (12, 3)
"""Unchanged lines taken with a hunk that stands alone: many show where it is, few are easier to complete."""
RULE_FAILURES = (LookupError, ValueError, TypeError, AttributeError, AssertionError, RecursionError, MemoryError)
FUNCTION = re.compile(r"^(?!\s|//|#|\*|\})[^;=]*?\b([A-Za-z_][\w:]*)\s*\(")


class Classes(NamedTuple):
    """Changes of each hunk, and how they were found: `syntax`, `fragment`, `tokens`, `keys`, `path`, `lines`; or
    `failed`, when a rule broke on the file and nothing is said but that.
    """

    hunks: list[list[Change]]
    method: str


def classify(path: str, old: Sequence[str], new: Sequence[str], hunks: list[list[Block]]) -> Classes:
    """Classes of each hunk (a list of blocks) between the lines of two whole files.

    Invalid syntax is no error: the rules step down to repaired fragments, then to tokens, then to plain lines.
    """
    if TESTS.search(path):
        return Classes([[_first(Change("test_only", "test file"), group)] for group in hunks], "path")
    language = language_of(path)
    try:
        found = _by_language(language, old, new, hunks)
        done = [
            settle(changes or [_layout(old, new, group, language)])
            for changes, group in zip(found.hunks, hunks, strict=True)
        ]
    except RULE_FAILURES as error:
        # A file made to break the rules must not take the others down; it is reported, unclassified.
        odd = Change("text_changed", f"not classified: {type(error).__name__}: {error}")
        return Classes([[_first(odd, group)] for group in hunks], "failed")
    return Classes(done, found.method)


def _by_language(language: str, old: Sequence[str], new: Sequence[str], hunks: list[list[Block]]) -> Classes:
    if language in CONFIGS:
        return Classes(classify_config(old, new, hunks), "keys")
    if language == "python":
        return _python(old, new, hunks)
    if language in BRACES | HASHES:
        return Classes(_scoped(classify_text(old, new, hunks, language), old, new), "tokens")
    return Classes([_lines(old, new, group) for group in hunks], "lines")


def classify_fragment(path: str, old_lines: Sequence[str], new_lines: Sequence[str]) -> list[Change]:
    """Classes of one hunk of a patch where no tree is at hand: its context and `-` lines, its context and `+` lines.

    Line numbers count from the start of the fragment (1-based). Never raises on odd text.
    """
    group = blocks(old_lines, new_lines)
    if not group:
        return []
    return classify(path, old_lines, new_lines, [group]).hunks[0]


def _python(old: Sequence[str], new: Sequence[str], hunks: list[list[Block]]) -> Classes:
    trees = parse(_parsable(old)), parse(_parsable(new))
    if trees[0] is not None and trees[1] is not None:
        sides = Source(list(old), trees[0]), Source(list(new), trees[1])
        try:
            return Classes(classify_python(*sides, hunks), "syntax")
        except RecursionError:
            pass
    return Classes([_fragment(old, new, group) for group in hunks], "fragment")


def _parsable(lines: Sequence[str]) -> str:
    """Text whose line numbers agree with ours: no byte order mark, no lone CR, no undecodable byte."""
    text = "\n".join(line.rstrip("\r").replace("\r", " ").replace("\f", " ") for line in lines)
    return text.removeprefix("\ufeff").encode("utf-8", "replace").decode() + "\n"


def _fragment(old: Sequence[str], new: Sequence[str], group: list[Block]) -> list[Change]:
    """Classify one hunk by its own lines and some around it: as many as parse, else by tokens."""
    for margin in MARGINS:
        a, b = max(0, group[0].old_start - margin), min(len(old), group[-1].old_end + margin)
        c, d = max(0, group[0].new_start - margin), min(len(new), group[-1].new_end + margin)
        inner = [Block(x.old_start - a, x.old_end - a, x.new_start - c, x.new_end - c) for x in group]
        lines = _parsable(old[a:b]).split("\n")[:-1], _parsable(new[c:d]).split("\n")[:-1]
        found = _pieces(lines, inner)
        if found is not None:
            break
    else:
        found = classify_text(*lines, [inner], "python")[0]
    return [_moved(change, a, c) for change in found]


def _pieces(lines: tuple[list[str], list[str]], inner: list[Block]) -> list[Change] | None:
    """Changes by syntax between two pieces of code; None when they can't be made to parse."""
    gone = {n for x in inner for n in range(x.old_start, x.old_end)}
    came = {n for x in inner for n in range(x.new_start, x.new_end)}
    sides = parse_fragments(*lines, gone, came)
    try:
        return classify_python(*sides, [inner])[0] if sides else None
    except RecursionError:
        return None


def _moved(change: Change, old: int, new: int) -> Change:
    stock = change.stock_line + old if change.stock_line else None
    clone = change.clone_line + new if change.clone_line else None
    return replace(change, stock_line=stock, clone_line=clone)


def _first(change: Change, group: list[Block]) -> Change:
    """The change, placed at the first differing line of the hunk."""
    block = group[0]
    stock = block.old_start + 1 if block.old_end > block.old_start else None
    clone = block.new_start + 1 if block.new_end > block.new_start else None
    return replace(change, stock_line=stock, clone_line=clone)


def _lines(old: Sequence[str], new: Sequence[str], group: list[Block]) -> list[Change]:
    """Nothing is known of the language: lines differ, or only their spacing does."""
    gone = "\n".join(line for b in group for line in old[b.old_start : b.old_end])
    came = "\n".join(line for b in group for line in new[b.new_start : b.new_end])
    if gone.split() == came.split():
        return []
    return [_first(Change("text_changed", "lines differ", gone[:400], came[:400]), group)]


def _layout(old: Sequence[str], new: Sequence[str], group: list[Block], language: str) -> Change:
    """No statement differs: comments do, or else only the layout."""
    texts = [
        _comments(old, [(b.old_start, b.old_end) for b in group], language),
        _comments(new, [(b.new_start, b.new_end) for b in group], language),
    ]
    if texts[0] != texts[1]:
        return _first(Change("comment_only", "comments differ"), group)
    return _first(Change("whitespace_only", "layout differs"), group)


def _comments(lines: Sequence[str], ranges: list[tuple[int, int]], language: str) -> list[str]:
    """Words of the comments on some lines: everything outside code, for languages whose comments are known."""
    marks = ("//", "/*", "*") if language in BRACES else ("#",)
    words: list[str] = []
    for a, b in ranges:
        for line in lines[a:b]:
            text = line.strip()
            code = " ".join(t for s in statements(text, language) for t in s.tokens) if language != "other" else text
            if text.startswith(marks) or any(mark in text and mark not in code for mark in marks):
                at = min((text.find(mark) for mark in marks if mark in text), default=0)
                words += text[at:].split()
    return words


def _scoped(found: list[list[Change]], old: Sequence[str], new: Sequence[str]) -> list[list[Change]]:
    """Name the function around each change, by the last line before it that starts one at the left margin."""
    for change in (each for changes in found for each in changes):
        lines, at = (new, change.clone_line) if change.clone_line else (old, change.stock_line or 1)
        for line in reversed(lines[max(0, at - 400) : at]):
            match = FUNCTION.match(line)
            if match:
                change.scope = match[1]
                break
    return found
