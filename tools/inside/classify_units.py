"""Cut a Python syntax tree into units: simple statements and headers of compound ones, with their surroundings."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from .hunks import words

Range = tuple[int, int]
"""Changed lines, 1-based and half open; start == end is a place between two lines."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
CUT = "__cut__"
"""Name in the block headers that stand for those a fragment lost; never a guard."""
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
SILENT = frozenset({"ctx", "kind", "type_comment"})
KERNEL_DECORATORS = (
    "triton.jit",
    "jit",
    "gluon.jit",
    "tilelang.jit",
    "prim_func",
    "T.prim_func",
    "cute.jit",
    "cute.kernel",
)


BINDING = re.compile(
    r"\b([A-Za-z_]\w*+)[ \t]*+(?::[^=\n]*+)?=(?!=)|\b(?:def|class|as)[ \t]++(\w+)"
    r"|\bfor[ \t]++(\w++)(?:[ \t]*+,[ \t]*+(\w+))?"
)
"""Where text binds a name: an assignment (or keyword), a definition, an alias, a loop."""


@dataclass(eq=False)
class Unit:
    """One simple statement or compound header.

    Attributes:
        node: the statement, except handler or match case.
        start: first line, decorators included (1-based).
        end: last line of the header or simple statement.
        scope: names of the enclosing definitions, outermost first.
        parents: enclosing statements, outermost first, each with the name of the block the unit is in.
        text: its source lines.
    """

    node: ast.AST
    start: int
    end: int
    scope: tuple[str, ...] = ()
    parents: tuple[tuple[ast.AST, str], ...] = ()
    text: str = ""

    @cached_property
    def guards(self) -> tuple[str, ...]:
        """Conditions it runs under, outermost first, back to the enclosing function."""
        found: tuple[str, ...] = ()
        for parent, block in self.parents:
            found = () if isinstance(parent, Definition) else found + _guard(parent, block)
        return found

    @cached_property
    def above(self) -> tuple[ast.AST, ...]:
        """Enclosing statements, outermost first."""
        return tuple(parent for parent, _ in self.parents)

    @cached_property
    def words(self) -> list[str]:
        """Identifiers, numbers and operators of its source, for likeness."""
        return [word for word in words(self.text) if word.isalnum() or "_" in word or word in "+*/<>=@%&|"]

    @cached_property
    def key(self) -> str:
        """Equal for units that say the same, whatever their layout and place."""
        return header_dump(self.node)

    @cached_property
    def target(self) -> str:
        """What the statement is about: the assigned name, the called function, `return`, `raise`."""
        return target_of(self.node)

    @property
    def qualname(self) -> str:
        """Dotted name of the definition the unit belongs to; a definition's header belongs to itself."""
        own = (self.node.name,) if isinstance(self.node, Definition) else ()
        return ".".join((*self.scope, *own))

    @property
    def in_class(self) -> bool:
        """Directly in a class body."""
        return bool(self.parents) and isinstance(self.parents[-1][0], ast.ClassDef)

    @property
    def kernel(self) -> bool:
        """Inside (or the header of) a function that a GPU compiler takes."""
        return any(is_kernel(node) for node in (*self.above, self.node))


@dataclass(eq=False)
class Source:
    """One side of a file: its lines, its tree, and by how much the tree's line numbers exceed the file's."""

    lines: list[str]
    tree: ast.Module
    shift: int = 0
    known: dict[int, tuple[frozenset[str], frozenset[str]]] = field(default_factory=dict)

    @cached_property
    def names(self) -> tuple[frozenset[str], frozenset[str]]:
        """Every word of the file, and those it defines or assigns somewhere, as far as text tells."""
        text = "\n".join(self.lines)
        bound = {group for match in BINDING.finditer(text) for group in match.groups() if group}
        return frozenset(re.findall(r"\w+", text)), frozenset(bound)


def dump(node: object) -> str:
    """A text that is equal for equal syntax: no positions, no load or store marks; remembered on the node."""
    if isinstance(node, list):
        return "[" + ",".join(map(dump, node)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    inside = node.__dict__
    known = inside.get("_dump")
    if known is None:
        parts = [dump(inside.get(name)) for name in node._fields if name not in SILENT]
        known = inside["_dump"] = f"{type(node).__name__}({','.join(parts)})"
    return str(known)


def header_dump(node: ast.AST) -> str:
    """`dump` without the statements a compound statement holds."""
    inside = node.__dict__
    parts = [dump(inside.get(name)) for name in node._fields if name not in SILENT and name not in BLOCKS]
    return f"{type(node).__name__}({','.join(parts)})"


def is_kernel(node: ast.AST) -> bool:
    """Whether a definition carries the decorator of a GPU kernel language."""
    if not isinstance(node, ast.FunctionDef):
        return False
    names = (show(mark.func if isinstance(mark, ast.Call) else mark) for mark in node.decorator_list)
    return any(name in KERNEL_DECORATORS for name in names)


def show(node: object) -> str:
    """The node as source text on one line; a few of the headers that `ast.unparse` can't take alone are spelled out."""
    if node is None or isinstance(node, str):
        return node or ""
    if isinstance(node, list):
        return ", ".join(map(show, node))
    if isinstance(node, ast.keyword):
        return f"{node.arg}={ast.unparse(node.value)}" if node.arg else f"**{ast.unparse(node.value)}"
    if isinstance(node, Definition):
        return f"{'class' if isinstance(node, ast.ClassDef) else 'def'} {node.name}"
    return _flat(node) if isinstance(node, ast.AST) else str(node)


def _flat(node: ast.AST) -> str:
    known = node.__dict__.get("_show")
    if known is None:
        text = ast.unparse(node)
        compound = hasattr(node, "body") and isinstance(node, ast.stmt | ast.excepthandler)
        known = node.__dict__["_show"] = text.split("\n")[0] if compound else " ".join(text.split())
    return str(known)


def first_line(node: ast.AST) -> int:
    """Where a statement starts, its decorators included."""
    marks = getattr(node, "decorator_list", [])
    pattern = getattr(node, "pattern", None)
    start = getattr(node, "lineno", 0) or getattr(pattern, "lineno", 0)
    return min([int(start), *(int(mark.lineno) for mark in marks)])


def last_line(node: ast.AST) -> int:
    """Where a statement ends, its body included."""
    end = getattr(node, "end_lineno", None)
    return int(end) if end else max(map(last_line, getattr(node, "body", [])), default=0)


def _header_end(node: ast.AST) -> int:
    body = getattr(node, "body", None)
    if not isinstance(body, list) or not body:
        return last_line(node)
    start = getattr(node, "lineno", 0) or first_line(node)
    return max(start, first_line(body[0]) - 1)


def target_of(node: ast.AST) -> str:
    """What a statement is about: the assigned name, the called function, `return`, the raised type."""
    if isinstance(node, ast.Assign):
        return show(node.targets)
    if isinstance(node, ast.AnnAssign | ast.AugAssign):
        return show(node.target)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        func = node.value.func
        inplace = isinstance(func, ast.Attribute) and func.attr.endswith("_")
        return show(func.value) if inplace and isinstance(func, ast.Attribute) else show(func)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Subscript):
        return show(node.value.value)
    if isinstance(node, ast.Return):
        return "return"
    if isinstance(node, ast.Raise):
        return "raise"
    return show(node.target) if isinstance(node, ast.For) else ""


class Lines:
    """The changed ranges of every hunk, in order, and which hunks a run of lines meets."""

    def __init__(self, hunks: list[list[Range]], shift: int) -> None:
        """Take each hunk's ranges, `shift` lines below where they are in the file."""
        rows = [(a + shift, b + shift, n) for n, ranges in enumerate(hunks) for a, b in ranges]
        self.rows = sorted(rows)
        self.ends = [b for _, b, _ in self.rows]

    def met(self, start: int, end: int) -> list[int]:
        """Hunks with a change on the lines start..end, or strictly between two of them, in order."""
        found: list[int] = []
        for a, b, n in self.rows[bisect_left(self.ends, start) :]:
            if a > end:
                break
            if (b > start if a < b else start < a) and (not found or found[-1] != n):
                found.append(n)
        return found


def touched(source: Source, hunks: list[list[Range]]) -> list[list[Unit]]:
    """For each hunk the units with a changed line, or around a place where lines came or went, in file order."""
    found: list[list[Unit]] = [[] for _ in hunks]
    for unit, numbers in _walk(source.tree, Lines(hunks, source.shift), (), ()):
        unit.text = "\n".join(source.lines[max(0, unit.start - 1 - source.shift) : unit.end - source.shift])
        for n in numbers:
            found[n].append(unit)
    return found


def _walk(
    parent: ast.AST, lines: Lines, scope: tuple[str, ...], above: tuple[tuple[ast.AST, str], ...]
) -> Iterator[tuple[Unit, list[int]]]:
    for name in BLOCKS:
        children = getattr(parent, name, None)
        if not isinstance(children, list):
            continue
        inner = (*above, (parent, name)) if not isinstance(parent, ast.Module) else above
        for node in children:
            start = first_line(node)
            if not lines.met(start, last_line(node)):
                continue
            end = _header_end(node)
            met = lines.met(start, end)
            if met:
                yield Unit(node, start, end, scope, inner), met
            if hasattr(node, "body") or hasattr(node, "handlers") or hasattr(node, "cases"):
                yield from _walk(node, lines, (*scope, node.name) if isinstance(node, Definition) else scope, inner)


def _guard(parent: ast.AST, name: str) -> tuple[str, ...]:
    """The condition that a block of this statement runs under, as source text."""
    if isinstance(parent, ast.If):
        if isinstance(parent.test, ast.Name) and parent.test.id == CUT:
            return ()
        return (show(parent.test),) if name == "body" else (f"not ({show(parent.test)})",)
    if isinstance(parent, ast.While) and name == "body":
        return (show(parent.test),) if dump(parent.test) != "Constant(True)" else ()
    if isinstance(parent, ast.ExceptHandler):
        return (f"except {show(parent.type)}".strip(),)
    if isinstance(parent, ast.match_case):
        return (f"case {show(parent.pattern)}",)
    return ()
