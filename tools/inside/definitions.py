"""Parsed source: modules, the definitions in them, and which name means what in which scope."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from .chunks import BROKEN, Chunk, Source, parse_text, split
from .source import Tree, Unreadable, decode

Function = (ast.FunctionDef, ast.AsyncFunctionDef)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
DefinitionNode = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Named = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
CLIP = 200
"""Characters of one source line that a reply quotes."""


class Unparsable(Exception):
    """A file that isn't valid Python; `line` says where, 0 when the whole file is at fault."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True)
class Binding:
    """One way a name gets its meaning in a scope.

    Attributes:
        kind: definition, import (`import a.b`), from (`from a import b`), value or parameter.
        source: the class, function, import or assignment statement, or the parameter.
        module: for imports the dotted module, without the leading dots.
        attribute: for `from` the imported name.
        level: for `from` the number of leading dots.
    """

    kind: str
    source: ast.AST | Chunk
    line: int
    module: str = ""
    attribute: str = ""
    level: int = 0
    aliased: bool = False

    @property
    def node(self) -> ast.AST:
        """The syntax tree, parsed now if it wasn't yet."""
        return self.source.node if isinstance(self.source, Chunk) else self.source


Bindings = dict[str, list[Binding]]


def bindings_of(body: Sequence[ast.stmt]) -> tuple[Bindings, list[Binding]]:
    """The names that statements bind in their own scope, and their star imports.

    Every branch counts: `if`, `try`, loops and `with` are entered, classes and functions aren't.
    """
    table: Bindings = {}
    stars: list[Binding] = []
    for statement in statements(body):
        for name, binding in _bound_by(statement):
            if name == "*":
                stars.append(binding)
            else:
                table.setdefault(name, []).append(binding)
    return table, stars


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements in source order, those inside compound statements included, nested scopes excluded."""
    stack = list(reversed(body))
    while stack:
        statement = stack.pop()
        yield statement
        if not isinstance(statement, Named):
            stack.extend(reversed(_blocks(statement)))


def _blocks(statement: ast.AST) -> list[ast.stmt]:
    inner: list[ast.stmt] = []
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for child in getattr(statement, name, ()):
            inner.extend([child] if isinstance(child, ast.stmt) else _blocks(child))
    return inner


def _bound_by(node: ast.stmt) -> Iterator[tuple[str, Binding]]:
    if isinstance(node, Named):
        yield node.name, Binding("definition", node, node.lineno)
    elif isinstance(node, ast.Import):
        for alias in node.names:
            name = alias.asname or alias.name.split(".")[0]
            yield name, Binding("import", node, node.lineno, alias.name, aliased=bool(alias.asname))
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield (
                alias.asname or alias.name,
                Binding("from", node, node.lineno, node.module or "", alias.name, node.level),
            )
    else:
        for target in _targets(node):
            for name in _target_names(target):
                yield name, Binding("value", node, node.lineno)


def _targets(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    if isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)):
        return [node.target]
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return [item.optional_vars for item in node.items if item.optional_vars]
    return []


def _target_names(target: ast.expr) -> list[str]:
    names: list[str] = []
    stack = [target]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name):
            names.append(node.id)
        elif isinstance(node, (ast.Tuple, ast.List)):
            stack.extend(node.elts)
        elif isinstance(node, ast.Starred):
            stack.append(node.value)
    return names


class Scope:
    """Where names are looked up: a module, class or function, inside another scope or none."""

    def __init__(self, module: Module, node: ast.AST, outer: Scope | None) -> None:
        self.module = module
        self.node = node
        self.outer = outer

    @cached_property
    def qualname(self) -> str:
        """Dotted name of the class or function; empty for a module."""
        if self.outer is None:
            return ""
        name = getattr(self.node, "name", "<lambda>")
        return f"{self.outer.qualname}.{name}" if self.outer.qualname else name

    @cached_property
    def bindings(self) -> Bindings:
        """Names bound in this scope itself."""
        if self.outer is None:
            return self.module.bindings
        if isinstance(self.node, ast.Lambda):
            return _parameters(self.node.args)
        table = bindings_of(getattr(self.node, "body", []))[0]
        if isinstance(self.node, Function):
            for name, found in _parameters(self.node.args).items():
                table.setdefault(name, []).extend(found)
        return table

    def lookup(self, name: str) -> tuple[Scope, list[Binding]] | None:
        """The innermost scope that binds the name, and its bindings; class scopes don't reach into methods."""
        scope: Scope | None = self
        while scope is not None:
            skipped = scope is not self and isinstance(scope.node, ast.ClassDef)
            if not skipped and name in scope.bindings:
                return scope, scope.bindings[name]
            scope = scope.outer
        return None

    def definition(self, source: ast.AST | Chunk) -> Definition:
        """The definition for a class or function that stands directly in this scope."""
        if isinstance(source, Chunk):
            kind, name = source.kind, source.name
        else:
            kind = "class" if isinstance(source, ast.ClassDef) else "function"
            name = getattr(source, "name", "")
        qualname = f"{self.qualname}.{name}" if self.qualname else name
        return Definition(kind, self.module, (source,), self, qualname)


def _parameters(arguments: ast.arguments) -> Bindings:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [a for a in (arguments.vararg, arguments.kwarg) if a]
    return {a.arg: [Binding("parameter", a, getattr(a, "lineno", 0))] for a in every}


@dataclass(frozen=True, eq=False)
class Definition:
    """A piece of source the trace can enter.

    Attributes:
        kind: module, body (a module's own statements), class, function or variable.
        sources: the syntax trees it consists of, some not parsed yet.
        scope: the scope its nodes stand in.
        qualname: dotted name inside the module; empty for a whole module.
    """

    kind: str
    module: Module
    sources: tuple[ast.AST | Chunk, ...]
    scope: Scope
    qualname: str = ""

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Its syntax trees, parsed now if they weren't yet."""
        return tuple(s.node if isinstance(s, Chunk) else s for s in self.sources)

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What makes two definitions the same."""
        return self.module.path, self.kind, self.qualname, self.line

    @property
    def owner(self) -> Definition | None:
        """The class that a method stands in."""
        outer = self.scope.outer
        inside = outer is not None and isinstance(self.scope.node, ast.ClassDef)
        return outer.definition(self.scope.node) if outer and inside else None

    @property
    def line(self) -> int:
        """First line, 1 for a whole module."""
        if not self.qualname or not self.sources:
            return 1
        first = self.sources[0]
        return first.line if isinstance(first, Chunk) else getattr(first, "lineno", 1)

    def body_scope(self) -> Scope:
        """The scope inside a class or function."""
        return self.module.scope_in(self.nodes[0], self.scope)


class Module:
    """One opened file: its top-level statements are parsed, its classes and functions when entered.

    Raises:
        Unparsable: not even the statements between the definitions can be parsed.
    """

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.source = Source(text)
        self.lines = text.split("\n")
        self._header, self._chunks = self._split()
        self.bindings, self.stars = bindings_of(self._header)
        for chunk in self._chunks:
            binding = Binding("definition", chunk, chunk.line)
            self.bindings.setdefault(chunk.name, []).append(binding)
        self.scope = Scope(self, ast.Module([], []), None)
        self._scopes: dict[ast.AST, Scope] = {}
        self._lines_with: dict[str, list[int]] = {}

    def _split(self) -> tuple[list[ast.stmt], list[Chunk]]:
        header, chunks = split(self.source)
        try:
            return parse_text(header).body, chunks
        except BROKEN:
            tree = self.source.tree
        if tree is None:
            line, reason = next(iter(self.source.failures.items()))
            raise Unparsable(reason, line)
        return tree.body, []

    def scope_in(self, node: ast.AST, outer: Scope) -> Scope:
        """The scope of a class, function or lambda that stands in another scope."""
        if node not in self._scopes:
            self._scopes[node] = Scope(self, node, outer)
        return self._scopes[node]

    @cached_property
    def whole(self) -> Definition:
        """Everything in the file."""
        pieces: list[ast.stmt | Chunk] = [*self._header, *self._chunks]
        pieces.sort(key=lambda piece: piece.line if isinstance(piece, Chunk) else piece.lineno)
        return Definition("module", self, tuple(pieces), self.scope)

    @cached_property
    def body(self) -> Definition:
        """What runs on import: every statement that doesn't define a class or function."""
        nodes = tuple(n for n in self._header if not isinstance(n, Named))
        return Definition("body", self, nodes, self.scope)

    def variable(self, name: str) -> Definition:
        """The statements that assign a module-level name."""
        nodes = tuple(b.node for b in self.bindings.get(name, []) if b.kind == "value")
        return Definition("variable", self, nodes, self.scope, name)

    def text(self, line: int) -> str:
        """One source line, stripped and clipped; empty when the number is out of range."""
        return self.lines[line - 1].strip()[:CLIP] if 0 < line <= len(self.lines) else ""

    def lines_with(self, word: str) -> list[int]:
        """Sorted numbers of the lines that hold an identifier."""
        if word not in self._lines_with:
            pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
            found = [n for n, line in enumerate(self.lines, 1) if word in line]
            self._lines_with[word] = [n for n in found if pattern.search(self.lines[n - 1])]
        return self._lines_with[word]

    def find(self, qualname: str) -> Definition | None:
        """The class or function with this dotted name, at any depth; the last one when there are several."""
        scope, found = self.scope, None
        for name in qualname.split("."):
            inner = [b.source for b in scope.bindings.get(name, []) if b.kind == "definition"]
            if not inner:
                return None
            found = scope.definition(inner[-1])
            scope = found.body_scope()
        return found


def covers(lines: list[int], node: ast.AST) -> bool:
    """Whether one of the sorted lines lies in a node; a node without a position counts as covering."""
    first: int | None = getattr(node, "lineno", None)
    if first is None:
        return True
    for decorator in getattr(node, "decorator_list", ()):
        first = min(first, decorator.lineno)
    last = getattr(node, "end_lineno", None) or first
    index = bisect_left(lines, first)
    return index < len(lines) and lines[index] <= last


def parse(tree: Tree, path: str) -> Module:
    """Open one file of the tree.

    Raises:
        Unparsable: it can't be read, or isn't Python even between its definitions.
    """
    try:
        text = decode(tree.read(path))
    except Unreadable as error:
        raise Unparsable(str(error)) from None
    return Module(path, text)
