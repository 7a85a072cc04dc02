"""A source file of which only the top-level statements that matter are parsed."""

from __future__ import annotations

import ast
import bisect
import re
from functools import cached_property

ARGS_SUFFIX = ("Args", "Arguments")
CONFIG_SUFFIX = ("Config", "Options", "Settings", "Params", "Parameters")
RECORD_BASES = {"BaseModel", "BaseSettings", "Struct", "NamedTuple"}
MAX_TEXT = 200
TOP_LEVEL = re.compile(rb"^[^\s#)\]}]", re.MULTILINE)
_SUFFIXES = "|".join(ARGS_SUFFIX + CONFIG_SUFFIX)
RECORD_HEAD = re.compile(rf"class \w*(?:{_SUFFIXES})\b|class [^#]*\b(?:{'|'.join(RECORD_BASES)})\b".encode())


class Source:
    """A file's text, parsed one top-level statement at a time: most of it is never asked for."""

    def __init__(self, data: bytes) -> None:
        self.data = _utf8(data).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._trees: dict[int, ast.Module] = {}
        self._definitions: dict[str, ast.ClassDef | ast.FunctionDef | None] = {}

    @cached_property
    def lines(self) -> list[bytes]:
        """Its lines, without their ends."""
        return self.data.split(b"\n")

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(m.end() for m in re.finditer(rb"\n", self.data))]

    @cached_property
    def _tops(self) -> list[int]:
        return [self.line(m.start()) for m in TOP_LEVEL.finditer(self.data)]

    def line(self, offset: int) -> int:
        """Line, from 1, of a byte offset."""
        return bisect.bisect_right(self._starts, offset)

    def tree(self, line: int) -> ast.Module:
        """The top-level statement that holds a line, with the file's own line numbers.

        Raises:
            SyntaxError, ValueError, RecursionError, MemoryError: this interpreter can't parse it.
        """
        first, last = self._block(line)
        if first not in self._trees:
            text = b"\n".join(self.lines[first - 1 : last])
            try:
                # An odd number of quotes above means that the block may begin inside a string.
                above = b"\n".join(self.lines[: first - 1])
                if above.count(b'"""') % 2 or above.count(b"'''") % 2:
                    raise SyntaxError
                self._trees[first] = ast.parse(b"\n" * (first - 1) + text)
            except SyntaxError:
                self._trees[first] = self._trees.get(0) or ast.parse(self.data)
                self._trees[0] = self._trees[first]
        return self._trees[first]

    def _block(self, line: int) -> tuple[int, int]:
        at = bisect.bisect_right(self._tops, line)
        first = self._tops[at - 1] if at else 1
        last = self._tops[at] - 1 if at < len(self._tops) else len(self.lines)
        while first > 1 and self.lines[first - 2].startswith(b"@"):
            first -= 1
        return first, last

    def may_declare(self, line: int) -> bool:
        """The line stands in a class that looks, by its head alone, like a record with fields."""
        first, last = self._block(line)
        lines = self.lines[first - 1 : last]
        head = next((n for n, text in enumerate(lines) if text.startswith(b"class ")), None)
        return head is not None and (head > 0 or RECORD_HEAD.match(lines[head]) is not None)

    def definition(self, name: str) -> ast.ClassDef | ast.FunctionDef | None:
        """The top-level class or function of that name."""
        if name not in self._definitions:
            self._definitions[name] = self._define(name)
        return self._definitions[name]

    def _define(self, name: str) -> ast.ClassDef | ast.FunctionDef | None:
        heads = (f"\n{kind} {name}{end}".encode() for kind in ("class", "def") for end in "(:")
        at = next((n for head in heads if (n := (b"\n" + self.data).find(head)) >= 0), -1)
        if at < 0:
            return None
        body = self.tree(self.line(at)).body
        kinds = (ast.ClassDef, ast.FunctionDef)
        return next((n for n in body if isinstance(n, kinds) and n.name == name), None)

    def text(self, node: ast.expr) -> str:
        """The source of one expression on one line, at most `MAX_TEXT` characters."""
        last = node.end_lineno or node.lineno
        part = self.lines[node.lineno - 1 : last]
        part[-1] = part[-1][: node.end_col_offset]
        part[0] = part[0][node.col_offset :]
        whole = " ".join(b" ".join(part).decode("utf-8", "replace").split())
        return whole if len(whole) <= MAX_TEXT else whole[: MAX_TEXT - 1] + "…"


def _utf8(data: bytes) -> bytes:
    """The same text in UTF-8; what the file's encoding can't hold is replaced, never a line."""
    cookie = re.match(rb"(?:[^\n]*\n)?[ \t\f]*#[^\n]*?coding[:=][ \t]*([-\w.]+)", data)
    try:
        return data.decode(cookie[1].decode() if cookie else "utf-8", "replace").encode()
    except (LookupError, UnicodeError):
        return data.decode("utf-8", "replace").encode()
