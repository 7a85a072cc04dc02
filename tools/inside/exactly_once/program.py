"""The tree as the analysis sees it: modules, classes and functions, each parsed when it is first needed."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..chunks import BROKEN, Chunk, Source, parse_text, split
from ..packages import Packages
from ..source import Tree, Unreadable, decode
from .texts import Texts

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(eq=False)
class Module:
    """A source file; its top-level classes and functions are parsed one by one, when they are entered."""

    path: str
    text: str
    program: Program

    @cached_property
    def _split(self) -> tuple[list[ast.stmt], dict[str, list[Chunk]]]:
        header, chunks = split(Source(self.text))
        named: dict[str, list[Chunk]] = {}
        for chunk in chunks:
            named.setdefault(chunk.name, []).append(chunk)
        try:
            return parse_text(header).body, named
        except BROKEN:
            pass
        try:
            return parse_text(self.text).body, {}
        except BROKEN as error:
            self.program.broken[self.path] = str(error)
            return [], named

    @property
    def header(self) -> list[ast.stmt]:
        """Top-level statements, without the definitions that stand flush left."""
        return self._split[0]

    @property
    def chunks(self) -> dict[str, list[Chunk]]:
        """Top-level definitions by name, in order."""
        return self._split[1]

    @cached_property
    def binders(self) -> dict[str, list[ast.stmt]]:
        """For each name, the top-level statements outside definitions that may bind it."""
        found: dict[str, list[ast.stmt]] = {}
        for statement in self.header:
            for name in bound_names(statement):
                found.setdefault(name, []).append(statement)
        return found

    @cached_property
    def changing(self) -> set[str]:
        """Names that functions rebind by `global`."""
        return {
            name.strip()
            for line in re.findall(r"^\s+global ([\w, ]+)", self.text, re.MULTILINE)
            for name in line.split(",")
        }

    @cached_property
    def dotted(self) -> str:
        """The module's path with dots."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def __repr__(self) -> str:
        return f"<module {self.path}>"


@dataclass(eq=False)
class Class:
    """A class of the tree."""

    module: Module
    node: ast.ClassDef
    scope: object = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.node.name

    @cached_property
    def members(self) -> dict[str, list[ast.stmt]]:
        """Statements of the class body that bind each name, also inside `if` and `try`."""
        found: dict[str, list[ast.stmt]] = {}
        for statement in _flat(self.node.body):
            for name in bound_names(statement):
                found.setdefault(name, []).append(statement)
        return found

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Methods that the class itself defines; the last definition wins, a property's getter over its setter."""
        found: dict[str, Function] = {}
        for statement in _flat(self.node.body):
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_accessor(statement):
                found[statement.name] = Function(self.module, statement, self)
        return found

    @cached_property
    def fields(self) -> list[ast.AnnAssign]:
        """Annotated class attributes in order: the fields of a dataclass or NamedTuple."""
        return [s for s in self.node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]

    @cached_property
    def base_names(self) -> list[str]:
        """Last parts of the bases' names as they are written."""
        return [name for name in map(last_name, self.node.bases) if name]

    @property
    def is_record(self) -> bool:
        """Whether its constructor is made from its fields."""
        marks = [last_name(d.func if isinstance(d, ast.Call) else d) for d in self.node.decorator_list]
        records = ("NamedTuple", "BaseModel", "Struct")
        return any("dataclass" in m or m in ("define", "frozen") for m in marks) or any(
            b in records for b in self.base_names
        )

    def __repr__(self) -> str:
        return f"<class {self.module.path}:{self.name}>"


@dataclass(eq=False)
class Function:
    """A function, method or lambda of the tree."""

    module: Module
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    owner: Class | None = None

    @property
    def name(self) -> str:
        """Its name, `<lambda>` if it has none."""
        return getattr(self.node, "name", "<lambda>")

    @property
    def qualname(self) -> str:
        """Its name with its class's."""
        return f"{self.owner.name}.{self.name}" if self.owner else self.name

    @cached_property
    def marks(self) -> set[str]:
        """Last parts of its decorators' names."""
        found = getattr(self.node, "decorator_list", [])
        return {last_name(d.func if isinstance(d, ast.Call) else d) for d in found}

    @cached_property
    def text(self) -> str:
        """Its source lines."""
        lines = self.module.text.split("\n")
        return "\n".join(lines[self.node.lineno - 1 : self.node.end_lineno])

    @property
    def is_kernel(self) -> bool:
        """Whether a compiler for GPU kernels takes it: called as `name[grid](…)`."""
        return bool(self.marks & {"jit", "autotune", "heuristics", "kernel"})

    def __repr__(self) -> str:
        return f"<function {self.module.path}:{self.qualname}>"


@dataclass
class Program:
    """The modules of a tree, loaded on demand.

    Attributes:
        opened: the files that were read, in order.
        broken: files that aren't Python, with the reason.
        shared: what was found out about the tree, for all analyses of it.
    """

    tree: Tree
    opened: dict[str, Module | None] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.packages = Packages(self.tree)
        self._places: dict[tuple[str, str, int], str | None] = {}
        self._definitions: dict[Chunk | ast.stmt, Class | Function | None] = {}

    @cached_property
    def texts(self) -> Texts:
        """The text of its Python files."""
        return Texts(self.tree)

    def module(self, path: str) -> Module | None:
        """The module in a file, None when it can't be read."""
        if path not in self.opened:
            try:
                self.opened[path] = Module(path, decode(self.tree.read(path)), self)
            except Unreadable as error:
                self.opened[path] = None
                self.broken[path] = str(error)
        return self.opened[path]

    def place(self, importer: str, dotted: str, level: int = 0) -> str | None:
        """The file or package folder that an import's module part means, None when it lies outside the tree."""
        key = (posixpath.dirname(importer), dotted, level)
        if key not in self._places:
            parts = dotted.split(".") if dotted else []
            found = self.packages.places(importer, parts, level) if parts or level else []
            self._places[key] = found[0] if found else None
        return self._places[key]

    def at_place(self, place: str) -> Module | None:
        """The module of a file, or of a package's `__init__.py`."""
        path = place if place.endswith(".py") else self.packages.init(place)
        return self.module(path) if path else None

    def top_level(self, path: str, name: str) -> Class | Function | None:
        """The class or function of that name at the top level of a file, the last one; None if there is none."""
        module = self.module(path)
        chunks = module.chunks.get(name) if module else None
        return self.definition(module, chunks[-1]) if module and chunks else None

    def definition(self, module: Module, source: Chunk | ast.stmt) -> Class | Function | None:
        """The class or function of a chunk or a statement."""
        if source not in self._definitions:
            node = source.node if isinstance(source, Chunk) else source
            made: Class | Function | None = None
            if isinstance(node, ast.ClassDef):
                made = Class(module, node)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                made = Function(module, node)
            self._definitions[source] = made
        return self._definitions[source]


def bound_names(statement: ast.stmt) -> Iterator[str]:  # noqa: C901 - one branch a kind
    """Names that a statement binds in its own scope, nested blocks included."""
    if isinstance(statement, _DEFINITIONS):
        yield statement.name
    elif isinstance(statement, ast.Import):
        for alias in statement.names:
            yield alias.asname or alias.name.split(".")[0]
    elif isinstance(statement, ast.ImportFrom):
        for alias in statement.names:
            yield alias.asname or alias.name
    else:
        for node in ast.iter_child_nodes(statement):
            if isinstance(node, ast.stmt):
                yield from bound_names(node)
            elif isinstance(node, ast.ExceptHandler):
                for inner in node.body:
                    yield from bound_names(inner)
            elif isinstance(node, ast.expr):
                for inner_expr in ast.walk(node):
                    if isinstance(inner_expr, ast.Name) and isinstance(inner_expr.ctx, ast.Store):
                        yield inner_expr.id


def last_name(node: ast.expr | None) -> str:
    """The last identifier of a dotted name; empty for anything else. `Base[T]` is `Base`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Call):
        return last_name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.If):
            yield from _flat(statement.body)
            yield from _flat(statement.orelse)
        elif isinstance(statement, ast.Try):
            yield from _flat(statement.body)
        else:
            yield statement


def _is_accessor(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(d, ast.Attribute) and d.attr in ("setter", "deleter") for d in node.decorator_list)
