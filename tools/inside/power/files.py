"""Source files of the tree, split into top-level statements; read and parsed once, for all runs."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType

from ..chunks import BROKEN, explain, parse_text
from ..source import Tree, decode
from .context import MARK
from .oracle import StandInError
from .rewriting import rewritten

_GLOBAL = re.compile(r"^[ \t]+global[ \t]+([\w, \t]+)", re.MULTILINE)
_COMPILES = re.compile(r"\bload_(?:jit|inline|cuda)\(|\bcpp_extension\b|\bRawKernel\(|\bSourceModule\(")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
ANNOTATIONS_STAY_TEXT = 0x1000000
"""`CO_FUTURE_ANNOTATIONS`: annotations aren't run, so they need nothing to be loaded."""


@dataclass
class SourceFile:
    """One file of the tree.

    Attributes:
        path: relative to the tree's root.
        codes: compiled statements by number.
    """

    path: str
    text: str
    codes: dict[int, CodeType] = field(default_factory=dict)

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """The top-level statements."""
        try:
            return parse_text(self.text).body
        except BROKEN as error:
            raise StandInError(f"{self.path} isn't Python that can be parsed: {explain(error)[1]}") from error

    @cached_property
    def defines(self) -> dict[str, list[int]]:
        """Numbers of the statements that bind or change each name."""
        found: dict[str, list[int]] = {}
        for number, statement in enumerate(self.statements):
            for name in dict.fromkeys(bound_names(statement)):
                found.setdefault(name, []).append(number)
        return found

    @cached_property
    def changed(self) -> set[str]:
        """Names that some function assigns through `global`."""
        return {name.strip() for found in _GLOBAL.finditer(self.text) for name in found[1].split(",")}

    @cached_property
    def compiles(self) -> bool:
        """Whether it builds code of another language when it runs: its functions then lead out of Python."""
        return bool(_COMPILES.search(self.text))

    @cached_property
    def stars(self) -> list[ast.ImportFrom]:
        """The wildcard imports."""
        return [s for s in self.statements if isinstance(s, ast.ImportFrom) and s.names[0].name == "*"]

    @cached_property
    def type_imports(self) -> dict[str, tuple[str, int, str]]:
        """Every import of a name anywhere in the file, for annotations: module, level, name."""
        found: dict[str, tuple[str, int, str]] = {}
        for statement in self.statements:
            for node in ast.walk(statement):
                if isinstance(node, ast.ImportFrom):
                    for alias in node.names:
                        found.setdefault(alias.asname or alias.name, (node.module or "", node.level, alias.name))
        return found

    @cached_property
    def raising(self) -> set[int]:
        """Lines of the tests of `if` statements that do nothing but raise."""
        found: set[int] = set()
        for statement in self.statements:
            for node in ast.walk(statement):
                if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):
                    found.update(range(node.test.lineno, (node.test.end_lineno or node.test.lineno) + 1))
        return found

    @cached_property
    def asserted(self) -> set[int]:
        """Lines of assertions."""
        found: set[int] = set()
        for statement in self.statements:
            for node in ast.walk(statement):
                if isinstance(node, ast.Assert):
                    found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        return found

    @cached_property
    def assigned(self) -> dict[int, str]:
        """By line, the attribute that the statement there stores a call's value in."""
        found: dict[int, str] = {}
        for statement in self.statements:
            for node in ast.walk(statement):
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
                    found.update(dict.fromkeys(range(node.lineno, (node.end_lineno or 0) + 1), node.targets[0].attr))
        return found

    def class_node(self, name: str) -> ast.ClassDef | None:
        """A top-level class."""
        for number in self.defines.get(name, ()):
            for node in ast.walk(self.statements[number]):
                if isinstance(node, ast.ClassDef) and node.name == name:
                    return node
        return None

    @cached_property
    def annotations(self) -> dict[str, dict[str, str]]:
        """By class, how its attributes are annotated: in its body, at `self.x: T`, or as a constructor's parameter."""
        nodes = [node for statement in self.statements for node in _classes(statement)]
        return {node.name: _annotated(node) for node in nodes}

    def segment(self, node: ast.stmt) -> str:
        """The text of a statement."""
        return "\n".join(self.text.split("\n")[node.lineno - 1 : node.end_lineno])

    def code(self, number: int) -> CodeType:
        """A statement, compiled with its own line numbers."""
        if number not in self.codes:
            module = ast.Module(body=[rewritten(self.statements[number])], type_ignores=[])
            self.codes[number] = compile(module, MARK + self.path, "exec", ANNOTATIONS_STAY_TEXT, dont_inherit=True)
        return self.codes[number]

    def statement_at(self, line: int) -> str:
        """The text of a line."""
        lines = self.text.split("\n")
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""

    def symbol_at(self, line: int) -> str:
        """Dotted name of the innermost class or function around a line."""
        names: list[str] = []
        body: list[ast.stmt] = self.statements
        while True:
            inner = next((n for n in _nested(body) if n.lineno <= line <= (n.end_lineno or n.lineno)), None)
            if inner is None:
                return ".".join(names)
            names.append(inner.name)
            body = inner.body


def _classes(statement: ast.stmt) -> Iterator[ast.ClassDef]:
    if isinstance(statement, ast.ClassDef):
        yield statement
    elif isinstance(statement, ast.If | ast.Try | ast.With):
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.stmt):
                yield from _classes(child)


def _annotated(cls: ast.ClassDef) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in ast.walk(cls):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name | ast.Attribute):
            target = node.target
            name = target.id if isinstance(target, ast.Name) else target.attr
            found.setdefault(name, ast.unparse(node.annotation))
    for one in cls.body:
        if isinstance(one, ast.FunctionDef) and one.name == "__init__":
            for argument in (*one.args.args, *one.args.kwonlyargs):
                if argument.annotation is not None:
                    found.setdefault(argument.arg, ast.unparse(argument.annotation))
    return found


def _nested(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for statement in body:
        if isinstance(statement, _DEFINITIONS):
            yield statement
        else:
            yield from _nested([one for one in ast.iter_child_nodes(statement) if isinstance(one, ast.stmt)])
            for handler in getattr(statement, "handlers", ()):
                yield from _nested(handler.body)


def bound_names(node: ast.AST) -> Iterator[str]:
    """Names that a statement binds in its own scope, and those of lists and tables that it changes."""
    if isinstance(node, _DEFINITIONS):
        yield node.name
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0]
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield from _receiver(node.value.func)
    if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
        yield from _receiver(node)
    if not isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        for child in ast.iter_child_nodes(node):
            yield from bound_names(child)


def _receiver(node: ast.expr) -> Iterator[str]:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
        if isinstance(node, ast.Name):
            yield node.id


class Files:
    """All source files that were asked for.

    Attributes:
        found: by dotted name, a module's file and, for a package, its folder; None where the tree has no such module.
    """

    def __init__(self, root: str) -> None:
        self.tree = Tree(root)
        self.loaded: dict[str, SourceFile] = {}
        self.found: dict[str, tuple[str, str] | None] = {}

    def get(self, path: str) -> SourceFile:
        """A file by its path; parsed when its statements are first asked for.

        Raises:
            Unreadable: it can't be read.
        """
        if path not in self.loaded:
            self.loaded[path] = SourceFile(path, decode(self.tree.read(path)))
        return self.loaded[path]

    def python_files(self) -> Iterator[str]:
        """Every Python file of the tree."""
        for folder, names, files in os.walk(self.tree.root):
            names[:] = sorted(n for n in names if not n.startswith(".") and n != "__pycache__")
            for name in sorted(files):
                if name.endswith(".py"):
                    yield os.path.relpath(os.path.join(folder, name), self.tree.root)
