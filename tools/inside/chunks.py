"""Split a source file at its top-level classes and functions, so that only what is entered gets parsed.

Parsing dominates a trace, and most files are opened for one helper out of a hundred. The split is
made on text; where it turns out wrong, the parser says so and the whole file is parsed instead.
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

_TOKEN = re.compile(
    r"""\#[^\n]*
    | \"{3}[^"\\]*(?:(?:\\.?|"(?!""))[^"\\]*)*(?:\"{3}|\Z)
    | '{3}[^'\\]*(?:(?:\\.?|'(?!''))[^'\\]*)*(?:'{3}|\Z)
    | "(?:[^"\\\n]|\\.)*"?
    | '(?:[^'\\\n]|\\.)*'?""",
    re.DOTALL | re.VERBOSE,
)
_FLUSH_LEFT = re.compile(r"(?<!\\)\n(?=[^\s#)\]}])")
_LONG = ('"""', "'''")
_HEAD = re.compile(r"(?:async[ \t]+)?(def|class)[ \t]+(\w+)")

BROKEN = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What the parser raises on source that isn't Python, or nests too deep."""


def parse_text(text: str) -> ast.Module:
    """`ast.parse` without its warnings; raises one of `BROKEN`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def without_texts(text: str) -> str:
    """The source with its strings and comments blanked, every other character where it was."""
    return _TOKEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def explain(error: BaseException) -> tuple[int, str]:
    """Line (0 if none) and reason of a parser's refusal."""
    if isinstance(error, SyntaxError):
        return error.lineno or 0, f"{error.msg} (line {error.lineno})"
    return 0, f"{type(error).__name__}: {error}"


@dataclass
class Source:
    """The text of one file, and the refusals met while parsing pieces of it."""

    text: str
    failures: dict[int, str] = field(default_factory=dict)

    @cached_property
    def tree(self) -> ast.Module | None:
        """The file parsed as a whole, None if it can't be."""
        try:
            return parse_text(self.text)
        except BROKEN as error:
            line, reason = explain(error)
            self.failures[line] = reason
            return None


@dataclass(eq=False)
class Chunk:
    """A top-level class or function that is parsed when it is first looked at.

    Attributes:
        start: number of its first line, decorators included.
        line: number of the line with `def` or `class`.
    """

    source: Source
    text: str
    kind: str
    name: str
    start: int
    line: int

    @cached_property
    def node(self) -> ast.stmt:
        """Its syntax tree; an empty definition when it isn't valid Python, noted in the source's failures."""
        try:
            found = parse_text("\n" * (self.start - 1) + self.text).body
            if len(found) == 1 and getattr(found[0], "name", "") == self.name:
                return found[0]
        except BROKEN:
            pass
        return self._rescued() or self._empty()

    def _rescued(self) -> ast.stmt | None:
        tree = self.source.tree
        for node in tree.body if tree else []:
            if getattr(node, "lineno", 0) == self.line and getattr(node, "name", "") == self.name:
                return node
        self.source.failures.setdefault(self.line, f"{self.name} isn't valid Python")
        return None

    def _empty(self) -> ast.stmt:
        head = f"class {self.name}" if self.kind == "class" else f"def {self.name}()"
        return ast.parse("\n" * (self.line - 1) + head + ": pass").body[0]


def split(source: Source) -> tuple[str, list[Chunk]]:
    """The file's text with every top-level class and function blanked out, and those as chunks."""
    text = source.text
    header: list[str] = []
    chunks: list[Chunk] = []
    done = 0
    line = 1
    for start, head, end in _pieces(text):
        match = _HEAD.match(text, head)
        if match is None:
            continue
        header.append(text[done:start])
        line += text.count("\n", done, start)
        kind = "class" if match[1] == "class" else "function"
        at = line + text.count("\n", start, head)
        chunks.append(Chunk(source, text[start:end], kind, match[2], line, at))
        header.append("\n" * text.count("\n", start, end))
        line += text.count("\n", start, end)
        done = end
    header.append(text[done:])
    return "".join(header), chunks


def _pieces(text: str) -> Iterator[tuple[int, int, int]]:
    """Offsets of each top-level definition: its first decorator, its `def` or `class`, its end."""
    start = head = -1
    for offset in _flush_left(text):
        if start >= 0 and head < 0:
            head = offset if _HEAD.match(text, offset) else -1
            continue
        if start >= 0:
            yield start, head, offset
            start = head = -1
        if text[offset] == "@":
            start = offset
        elif _HEAD.match(text, offset):
            start = head = offset
    if start >= 0 and head >= 0:
        yield start, head, len(text)


def _flush_left(text: str) -> Iterator[int]:
    """Offsets of lines that start at the left margin and outside any multi-line string."""
    spans = [m.span() for m in _TOKEN.finditer(text) if text.startswith(_LONG, m.start())]
    starts = [first for first, _ in spans]
    if text[:1].strip(" #"):
        yield 0
    for match in _FLUSH_LEFT.finditer(text):
        offset = match.end()
        index = bisect_right(starts, offset) - 1
        if index < 0 or offset >= spans[index][1] or offset == starts[index]:
            yield offset
