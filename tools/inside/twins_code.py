"""The functions of one file, who calls whom among them, and the settings that a condition asks about."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from .chunks import BROKEN, explain, parse_text
from .definitions import Function, FunctionNode, bindings_of
from .frames import show
from .imports import dotted_parts
from .source import Tree, Unreadable, decode

SHAPES = frozenset("shape size numel ndim dim device len stride is_contiguous".split())
"""Attributes that speak of one call's data, never of how the deployment is set up."""


@dataclass(eq=False)
class Routine:
    """A function or method of the file.

    Attributes:
        qualname: dotted name inside the file.
        owner: name of its class; empty for a function.
    """

    qualname: str
    node: FunctionNode
    owner: str = ""

    @property
    def name(self) -> str:
        """Its own name."""
        return self.node.name

    @cached_property
    def parameters(self) -> list[str]:
        """Names it takes, in order, `self` included."""
        given = self.node.args
        return [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]

    @cached_property
    def body_text(self) -> str:
        """Its signature and body as the parser sees them: comments, spacing and its name don't count."""
        body = "\n".join(ast.dump(each) for each in without_docstring(self.node.body))
        return ast.dump(self.node.args) + "\n" + body

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """What stands in the function itself; see `own_nodes`."""
        return list(own_nodes(self.node))

    @cached_property
    def locals(self) -> dict[str, list[ast.expr]]:
        """What each local name is assigned, in this function itself."""
        found: dict[str, list[ast.expr]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, []).append(node.value)
            elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and isinstance(node.target, ast.Name) and node.value:
                found.setdefault(node.target.id, []).append(node.value)
        return found


@dataclass(eq=False)
class Code:
    """One parsed file.

    Attributes:
        routines: its functions and methods by dotted name; the last definition of a name wins.
        bases: the last part of each base of each class.
        globals: names bound at module level, imports included.
    """

    path: str
    lines: list[str]
    tree: ast.Module
    routines: dict[str, Routine] = field(default_factory=dict)
    bases: dict[str, list[str]] = field(default_factory=dict)

    @cached_property
    def globals(self) -> set[str]:
        """Names bound at module level."""
        return set(bindings_of(self.tree.body)[0])

    @cached_property
    def handed_on(self) -> dict[tuple[bool, str], int]:
        """Names that are mentioned without being called, each with whether it is an attribute, and a line."""
        called = {id(node.func) for node in ast.walk(self.tree) if isinstance(node, ast.Call)}
        found: dict[tuple[bool, str], int] = {}
        for node in ast.walk(self.tree):
            if isinstance(getattr(node, "ctx", None), ast.Load) and id(node) not in called:
                if isinstance(node, ast.Attribute) and not isinstance(node.value, ast.Call):
                    found.setdefault((True, node.attr), node.lineno)
                elif isinstance(node, ast.Name):
                    found.setdefault((False, node.id), node.lineno)
        return found

    @cached_property
    def made_with(self) -> dict[tuple[str, str], set[str]]:
        """For each class and attribute of self that it assigns, every name in what is assigned."""
        found: dict[tuple[str, str], set[str]] = {}
        for routine in self.routines.values():
            for node in routine.nodes if routine.owner else []:
                for target in node.targets if isinstance(node, ast.Assign) else []:
                    parts = dotted_parts(target)
                    if len(parts) == 2 and parts[0] == "self":
                        names = {getattr(n, "attr", "") or getattr(n, "id", "") for n in ast.walk(node)}
                        found.setdefault((routine.owner, parts[1]), set()).update(names - {"self", parts[1]})
        return found

    def scope(self, owner: str) -> dict[str, Routine]:
        """Functions (`owner` empty) or the methods of one class, by name."""
        return {r.name: r for r in self.routines.values() if r.owner == owner}

    def called(self, caller: Routine, call: ast.AST) -> Routine | None:
        """The routine of this file that `self.f`, `cls.f`, `Class.f` or `f` names for a caller."""
        parts = dotted_parts(call)
        if len(parts) == 1:
            return self.routines.get(parts[0])
        if len(parts) != 2:
            return None
        first = caller.parameters[:1]
        owner = caller.owner if parts[0] in (*first, "self", "cls") else parts[0]
        return self._method(owner, parts[1])

    def _method(self, owner: str, name: str) -> Routine | None:
        """A method, its own or of a base class in the same file."""
        seen: list[str] = [owner]
        for each in seen:
            if f"{each}.{name}" in self.routines:
                return self.routines[f"{each}.{name}"]
            seen += [base for base in self.bases.get(each, []) if base not in seen]
        return None


def without_docstring(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    """The statements after the docstring."""
    first = body[0] if body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return body[1:]
    return body


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Everything below a node except what stands in functions and classes of its own; lambdas are entered."""
    stack = list(ast.iter_child_nodes(node))[::-1]
    while stack:
        each = stack.pop()
        yield each
        if not isinstance(each, (*Function, ast.ClassDef)):
            stack.extend(list(ast.iter_child_nodes(each))[::-1])


def read_code(tree: Tree, path: str) -> tuple[Code | None, str]:
    """A parsed file, or why there is none."""
    if not path.endswith(".py"):
        return None, "not Python"
    try:
        text = decode(tree.load(path))
        parsed = parse_text(text)
    except Unreadable as error:
        return None, str(error)
    except BROKEN as error:
        return None, f"isn't valid Python: {explain(error)[1]}"
    code = Code(path, text.split("\n"), parsed)
    _collect(code, parsed.body, "")
    return code, ""


def _collect(code: Code, body: Sequence[ast.stmt], prefix: str) -> None:
    """Functions and classes, also those under `if` and `try`; functions inside functions aren't listed."""
    stack: list[tuple[ast.stmt, str]] = [(each, prefix) for each in reversed(body)]
    while stack:
        node, owner = stack.pop()
        if isinstance(node, Function):
            name = f"{owner}.{node.name}" if owner else node.name
            code.routines[name] = Routine(name, node, owner)
        elif isinstance(node, ast.ClassDef):
            name = f"{owner}.{node.name}" if owner else node.name
            code.bases[name] = [parts[-1] for base in node.bases if (parts := dotted_parts(base))]
            stack += [(each, name) for each in reversed(node.body)]
        else:
            inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]
            handlers = [h for h in getattr(node, "handlers", []) for h in h.body]
            stack += [(each, owner) for each in reversed([*inner, *handlers])]


Sign = tuple[str, str]
"""What a condition asks about, and how: `+` it holds, `-` it doesn't, `?` by a comparison."""


@lru_cache(maxsize=8192)
def parse_guard(text: str) -> ast.expr | None:
    """A condition as `frames.guards` spells it; None for what isn't an expression (`match …`, `except …`)."""
    try:
        return ast.parse(text, mode="eval").body
    except BROKEN:
        return None


class Signs:
    """Takes conditions of one routine apart into settings: attributes of self, module-level names, flags it is given.

    What only speaks of the data of one call – shapes, a tensor that is None – is left out.

    Args:
        bound: for a helper's parameters, what its caller hands it, as the caller spells it.
    """

    def __init__(self, code: Code, routine: Routine, bound: dict[str, ast.expr] | None = None) -> None:
        self.code, self.routine, self.bound = code, routine, bound or {}

    def of(self, guards: Sequence[str]) -> set[Sign]:
        """The settings that some conditions ask about."""
        found: set[Sign] = set()
        for guard in guards:
            test = parse_guard(guard)
            found |= self._test(test, "+", 3) if test is not None else set()
        return found

    def _test(self, node: ast.expr, sign: str, depth: int) -> set[Sign]:
        if isinstance(node, ast.BoolOp):
            return set().union(*(self._test(each, sign, depth) for each in node.values))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._test(node.operand, {"+": "-", "-": "+"}.get(sign, sign), depth)
        if isinstance(node, ast.NamedExpr):
            return self._test(node.value, sign, depth)
        if isinstance(node, ast.Compare):
            return self._compare(node, depth)
        if isinstance(node, ast.Call):
            return self._call(node, sign, depth)
        return self._chain(node, sign, depth)

    def _compare(self, node: ast.Compare, depth: int) -> set[Sign]:
        sides = [node.left, *node.comparators]
        bare = any(isinstance(side, ast.Constant) and side.value is None for side in sides)
        found: set[Sign] = set()
        for side in sides:
            found |= set() if bare and not self._is_setting(side) else self._test(side, "?", depth)
        return found

    def _is_setting(self, node: ast.expr) -> bool:
        """Rooted in self or at module level, through calls and a walrus."""
        inner = node.value if isinstance(node, ast.NamedExpr) else node
        parts = dotted_parts(inner.func if isinstance(inner, ast.Call) else inner)
        return bool(parts) and (parts[0] in ("self", "cls") or parts[0] in self.code.globals)

    def _call(self, node: ast.Call, sign: str, depth: int) -> set[Sign]:
        parts = dotted_parts(node.func)
        if parts in (["isinstance"], ["issubclass"]) and len(node.args) == 2:
            return {(f"isinstance of {show(node.args[1])}", sign)}
        if parts in (["getattr"], ["hasattr"]) and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            return {(f"{show(node.args[0])}.{node.args[1].value!s}", sign)}
        if parts in (["len"], ["max"], ["min"], ["int"], ["bool"], ["any"], ["all"]):
            return set().union(*(self._test(each, "?", depth) for each in node.args))
        if parts and parts[0] not in self.code.globals and parts[0] not in ("self", "cls"):
            return set() if SHAPES & set(parts) else self._named(parts, show(node.func) + "()", sign, depth)
        return {(show(node.func) + "()", sign)} if not SHAPES & set(parts) else set()

    def _chain(self, node: ast.expr, sign: str, depth: int) -> set[Sign]:
        parts = dotted_parts(node)
        if not parts or SHAPES & set(parts):
            return set()
        return self._named(parts, ".".join(parts), sign, depth)

    def _named(self, parts: list[str], text: str, sign: str, depth: int) -> set[Sign]:
        first = parts[0]
        if first in self.bound and depth:
            given = self.bound[first]
            return {(show(given), sign)} if dotted_parts(given) else self._test(given, sign, depth - 1)
        if first in self.routine.locals and first not in self.routine.parameters:
            values = self.routine.locals[first] if depth and len(parts) == 1 else []
            return set().union(*(self._test(value, sign, depth - 1) for value in values))
        known = first in ("self", "cls") or first in self.code.globals or first in self.routine.parameters
        return {(text, sign)} if known else set()
