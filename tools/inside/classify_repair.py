"""Make a piece of Python that was cut out of a file parse: lost openings, block headers and endings are put back."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .classify_tokens import Statement, statements
from .classify_units import CUT, Source

PAIRS = {")": "(", "]": "[", "}": "{"}
CLOSERS = {opening: closing for closing, opening in PAIRS.items()}
OPENINGS = {"(": "_(", "[": "_[", "{": "_ = {"}
CONTINUES = re.compile(r"^\s*(\.|[+*/%|&^<>=!]|-\s|and\b|or\b|if\b|for\b|in\b|is\b|not in\b)")
WRAPS = ((f"def {CUT}(", "): pass"), ("_(", ")"), ("_ = {", "}"), ("_ = [", "]"))
PROSE = re.compile(r"^\s*(- )?[`\w]+( ?\([^()]*\))?: \w|^\s*(Args|Returns|Raises|Note):$|[A-Za-z,.]+ [a-z]+ [a-z]+")
CODED = re.compile(
    r"\s=\s|[,(\[{)\]}]\s*$|^\s*(del|return|raise|import|from|def|class|assert|yield|async|await|for|while|if|elif|else|try)\b"
    r"|^\s*[\w.]+\s*[-+*/]?=|^\s*(@|self\.|\w+\.\w+\()|^\s*\w+: [\w\[\].]+$"
)
QUOTES = ('"""', "'''")
HEADER = f"if {CUT}:"
TRIES = 6
"""How often a line that does not parse is left out at the ends before the token rules take over."""


class Logical(NamedTuple):
    """One logical line: 0-based first line, indent, first word, last token."""

    line: int
    indent: int
    first: str
    last: str


def parse(text: str) -> ast.Module | None:
    """The tree of a whole file, or None when it isn't valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parse_fragments(
    old: Sequence[str], new: Sequence[str], gone: set[int], came: set[int]
) -> tuple[Source, Source] | None:
    """Trees for the two sides of a hunk; `gone` and `came` are the 0-based changed lines, which must be in them.

    Both sides are completed in the same way, or one would seem to have what was only put in front of it.

    Returns:
        The two sources, with the number of lines put in front as their shift; None when that can't be done.
    """
    sides = [[line.rstrip("\r").expandtabs(8) for line in lines] for lines in (old, new)]
    variants = list(dict.fromkeys([*_variants(sides[1]), *_variants(sides[0])]))
    # Leaving out context may hit the sides differently, so it comes last.
    for tries, variant in [*((1, v) for v in variants), *((TRIES, v) for v in variants[:2])]:
        a = _parse_trimmed(sides[0], variant, gone, tries)
        b = _parse_trimmed(sides[1], variant, came, tries) if a else None
        if a and b:
            return a, b
    return None


class Variant(NamedTuple):
    """One guess at what was cut: text before and after, and what the open bracket belonged to."""

    before: str = ""
    after: str = ""
    opener: str = "_("


def _variants(lines: Sequence[str]) -> Iterator[Variant]:
    """Guesses worth trying, most likely first: a piece may start in a parameter list, or end in a docstring."""
    text = "\n".join(lines)
    heads = [f"def {CUT}(", "if (", f"class {CUT}("] if re.search(r"[)\]\w]:\s*(#.*)?$", text, re.M) else []
    if re.search(r"^\s*(from|import)\s", text, re.M):
        yield Variant(opener=f"from {CUT} import (")
    for opener in ["_(", *heads]:
        yield Variant(opener=opener)
    for quote in QUOTES:
        parts = text.split(quote)
        if len(parts) % 2 == 0:
            if _is_prose(parts[0]):
                yield from (Variant(quote, "", opener) for opener in ["_(", *heads[:1]])
            if _is_prose(parts[-1]):
                yield Variant("", quote)
    if re.search(r",\s*(#.*)?$", text, re.M):
        yield from (Variant(opener, closer) for opener, closer in WRAPS)
    if _is_prose(text):
        yield Variant(QUOTES[0], QUOTES[0])


def _is_prose(text: str) -> bool:
    """Whether lines read like the inside of a docstring; code taken for text would hide its changes."""
    full = [line for line in text.split("\n") if line.strip()]
    coded = sum(bool(CODED.search(line)) for line in full)
    told = sum(bool(PROSE.search(line)) for line in full)
    return coded * 4 <= len(full) and (told * 2 >= len(full) or not coded)


def _parse_trimmed(lines: list[str], variant: Variant, changed: set[int], tries: int) -> Source | None:
    """The tree under one guess; with more than one try, context that doesn't parse is blanked."""
    if not any(map(str.strip, lines)):
        return Source(list(lines), ast.parse(""), 0)
    kept = list(lines)
    for _ in range(tries):
        body = [variant.before + kept[0], *kept[1:]]
        before, after = _frame(body, variant)
        text = "\n".join([*before, *body, *after]) + "\n"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return Source(list(lines), ast.parse(text), len(before))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            if not _drop(kept, (getattr(error, "lineno", 0) or 0) - len(before) - 1, changed):
                return None
    return None


def _drop(kept: list[str], at: int, changed: set[int]) -> bool:
    """Blank the context at the end that the error is nearer to; False when a changed line would be lost."""
    at = max(0, min(at, len(kept) - 1))
    first, last = (min(changed), max(changed)) if changed else (len(kept), -1)
    if at < first:
        lines = range(at + 1)
    elif at > last:
        lines = range(at, len(kept))
    else:
        return False
    if not any(kept[n].strip() for n in lines):
        return False
    for n in lines:
        kept[n] = ""
    return True


def _logical(lines: Sequence[str], found: list[Statement]) -> list[Logical]:
    rows = []
    for each in found:
        line = lines[each.start] if each.start < len(lines) else ""
        rows.append(Logical(each.start, len(line) - len(line.lstrip()), each.tokens[0], each.tokens[-1]))
    return rows


def _unmatched(found: list[Statement]) -> tuple[list[str], list[str], int]:
    """Brackets closed but not opened, opened but not closed, and the 0-based line of the last one that was closed."""
    closed: list[str] = []
    opened: list[str] = []
    at = -1
    for each in found:
        for token, line in zip(each.tokens, each.lines, strict=True):
            if token in CLOSERS:
                opened.append(token)
            elif token in PAIRS and opened:
                opened.pop()
            elif token in PAIRS:
                closed.append(token)
                at = line
    return closed, opened, at


def _frame(lines: Sequence[str], variant: Variant) -> tuple[list[str], list[str]]:
    """Lines to put before and after so that indents, brackets and blocks fit."""
    found = statements("\n".join(lines), "python")
    closed, opened, at = _unmatched(found)
    logical = _logical(lines, found)
    before: list[str] = []
    if closed:
        below = [each for each in logical if each.line > at]
        indent = _opener_indent(lines[at] if at < len(lines) else "", below, variant.opener)
        before = [" " * indent + _openings(closed, lines, variant.opener)]
        logical = [Logical(-1, indent, "_", ""), *below]
    if variant.after:
        return _headers(logical) + before, [variant.after]
    if closed and not opened and len(logical) == 1 and found[-1].tokens[-1] == ":":
        return _headers(logical) + before, [" " * (logical[0].indent + 1) + "pass"]
    return _headers(logical) + before, [_tail(found[-1], opened)] if opened else _endings(logical)


def _opener_indent(closing: str, below: list[Logical], opener: str) -> int:
    """A call stands where the next statement does; a header stands further left than its body."""
    own = len(closing) - len(closing.lstrip())
    if opener == "_(":
        return below[0].indent if below else own
    if closing.lstrip()[:1] in PAIRS or not below:
        return own
    return max(0, below[0].indent - 4)


def _tail(last: Statement, opened: list[str]) -> str:
    """What closes the brackets still open at the end, and the header they belong to."""
    empty = "_" if last.tokens[-1] == "[" else ""
    text = empty + "".join(CLOSERS[token] for token in reversed(opened))
    header = last.tokens[0] in ("def", "async", "class", "if", "elif", "for", "while", "with", "except")
    return text + (": pass" if header else "")


def _openings(closed: list[str], lines: Sequence[str], opener: str) -> str:
    outer, *inner = reversed(closed)
    start = opener if outer == ")" else OPENINGS[PAIRS[outer]]
    first = next((line for line in lines if line.strip()), "")
    return start + "".join(PAIRS[token] for token in inner) + ("_ " if CONTINUES.match(first) else "")


def _headers(logical: list[Logical]) -> list[str]:
    """Block headers for a piece that starts inside blocks which end within it."""
    levels: list[Logical] = []
    for each in logical:
        if not levels or each.indent < levels[-1].indent:
            levels.append(each)
    lines = []
    if levels and levels[-1].indent > 0:
        lines.append(HEADER)
    for each in reversed(levels[1:] if levels else []):
        word = "try:" if each.first in ("except", "finally") else HEADER
        lines.append(" " * each.indent + word)
    if levels and levels[0].first in ("else", "elif", "except", "finally"):
        word = "try" if levels[0].first in ("except", "finally") else HEADER[:-1]
        lines.append(" " * levels[0].indent + word + ": pass")
    return lines


def _endings(logical: list[Logical]) -> list[str]:
    """What a piece that stops inside a block needs: a body, a decorated function, an end for each open try."""
    if not logical:
        return []
    lines = []
    last = logical[-1]
    if last.first == "@":
        lines.append(" " * last.indent + "def _(): pass")
    elif last.last == ":":
        lines.append(" " * (last.indent + 1) + "pass")
    for n, each in reversed(list(enumerate(logical))):
        if each.first == "try" and each.last == ":":
            rest = [other for other in logical[n + 1 :] if other.indent <= each.indent]
            if not rest:
                lines.append(" " * each.indent + "finally: pass")
    return lines
