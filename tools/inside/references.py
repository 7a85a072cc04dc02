"""What a definition refers to, and what in it no reader of names can follow."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .definitions import Definition, Function, FunctionNode, Scope
from .imports import dotted_parts

_NO_NODES = frozenset("ctx op ops id attr arg name names type_comment kind kwd_attrs n s".split())
"""Fields of syntax trees in which no expression or statement lies."""
_COMPUTED = {"getattr": "getattr", "setattr": "setattr"}
_CALLS = {
    "eval": "exec",
    "exec": "exec",
    "globals": "namespace",
    "vars": "namespace",
    "__import__": "dynamic_import",
    "import_module": "dynamic_import",
}


@dataclass(frozen=True)
class Reference:
    """A dotted name used in a definition; `usage` is inherits, calls, refers or imports."""

    parts: tuple[str, ...]
    usage: str
    line: int
    scope: Scope


@dataclass(frozen=True)
class Mark:
    """A line whose effect can't be read off names; `scope` is the scope it stands in.

    `kind` is one of getattr, setattr (with a computed name), kwargs (`**` in a call), dynamic_import,
    exec, namespace (`globals()`, `vars()`, `__dict__`) and monkey_patch.
    """

    kind: str
    line: int
    scope: Scope


class _Walker:
    """One pass over a definition, without recursion."""

    def __init__(self) -> None:
        self.references: dict[tuple[int, tuple[str, ...], str], Reference] = {}
        self.marks: list[Mark] = []
        self._stack: list[tuple[ast.AST, Scope, str]] = []
        self._fields: dict[type[ast.AST], list[str]] = {}
        self._visit: dict[type[ast.AST], Callable[..., None]] = {
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Call: self._call,
            ast.ClassDef: self._class,
            ast.FunctionDef: self._function,
            ast.AsyncFunctionDef: self._function,
            ast.Lambda: self._lambda,
            ast.Import: self._import,
            ast.ImportFrom: self._import,
            ast.AnnAssign: self._annotated,
            ast.arg: self._annotated,
            ast.Constant: self._constant,
        }

    def walk(self, nodes: Iterable[ast.AST], scope: Scope) -> None:
        self._push(nodes, scope)
        stack, handlers, children = self._stack, self._visit, self._children
        while stack:
            node, scope, usage = stack.pop()
            handlers.get(node.__class__, children)(node, scope, usage)

    def _push(self, nodes: Iterable[ast.AST | None], scope: Scope, usage: str = "refers") -> None:
        self._stack.extend([(n, scope, usage) for n in nodes if n is not None][::-1])

    def _children(self, node: ast.AST, scope: Scope, usage: str) -> None:
        usage = usage if usage == "annotation" else "refers"
        kind = node.__class__
        if kind not in self._fields:
            self._fields[kind] = [f for f in kind._fields[::-1] if f not in _NO_NODES]
        for name in self._fields[kind]:
            value = getattr(node, name, None)
            if value.__class__ is list:
                self._stack += [(n, scope, usage) for n in value[::-1] if n is not None]
            elif isinstance(value, ast.AST):
                self._stack.append((value, scope, usage))

    def _refer(self, parts: Iterable[str], usage: str, line: int, scope: Scope) -> None:
        usage = "refers" if usage == "annotation" else usage
        parts = tuple(parts)
        key = (id(scope), parts, usage)
        if key not in self.references:
            self.references[key] = Reference(parts, usage, line, scope)

    def _mark(self, kind: str, node: ast.AST, scope: Scope) -> None:
        self.marks.append(Mark(kind, getattr(node, "lineno", 0), scope))

    def _name(self, node: ast.Name, scope: Scope, usage: str) -> None:
        if isinstance(node.ctx, ast.Load):
            self._refer([node.id], usage, node.lineno, scope)

    def _attribute(self, node: ast.Attribute, scope: Scope, usage: str) -> None:
        parts = dotted_parts(node)
        if node.attr == "__dict__":
            self._mark("namespace", node, scope)
        if not parts and _is_super(node.value):
            self._refer(["super", node.attr], usage, node.lineno, scope)
        if not parts:
            self._push([node.value], scope, "annotation" if usage == "annotation" else "refers")
            return
        if isinstance(node.ctx, ast.Store) and _is_imported(scope, parts[0]):
            self._mark("monkey_patch", node, scope)
        self._refer(parts, usage, node.lineno, scope)

    def _call(self, node: ast.Call, scope: Scope, usage: str) -> None:
        name = dotted_parts(node.func)
        self._judge_call(node, name[-1] if name else "", len(name) == 1, scope)
        for keyword in node.keywords:
            if keyword.arg is None:
                self._mark("kwargs", keyword.value, scope)
        self._push([node.func], scope, "calls")
        partial = bool(name) and name[-1] == "partial"
        self._push(node.args[:1], scope, "calls" if partial else "refers")
        self._push([*node.args[1:], *(k.value for k in node.keywords)], scope)

    def _judge_call(self, node: ast.Call, name: str, bare: bool, scope: Scope) -> None:
        known = bare and len(node.args) > 1 and _is_text(node.args[1])
        if bare and name in _COMPUTED and len(node.args) > 1 and not known:
            self._mark(_COMPUTED[name], node, scope)
        elif name in _CALLS and (bare or name == "import_module"):
            self._mark(_CALLS[name], node, scope)
        elif name == "setattr" and known and _is_imported(scope, *dotted_parts(node.args[0])[:1]):
            self._mark("monkey_patch", node, scope)

    def _class(self, node: ast.ClassDef, scope: Scope, _: str) -> None:
        self._push(node.decorator_list, scope, "calls")
        self._push(node.bases, scope, "inherits")
        self._push([k.value for k in node.keywords], scope)
        inner = scope.module.scope_in(node, scope)
        self._push(node.body, inner)

    def _function(self, node: FunctionNode, scope: Scope, _: str) -> None:
        self._push(node.decorator_list, scope, "calls")
        self._push([node.args], scope)
        self._push([node.returns], scope, "annotation")
        inner = scope.module.scope_in(node, scope)
        self._push(node.body, inner)

    def _lambda(self, node: ast.Lambda, scope: Scope, _: str) -> None:
        self._push([node.args], scope)
        inner = scope.module.scope_in(node, scope)
        self._push([node.body], inner)

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope, _: str) -> None:
        for alias in node.names:
            if alias.name != "*":
                name = alias.asname or alias.name
                parts = [name] if isinstance(node, ast.ImportFrom) else name.split(".")
                self._refer(parts, "imports", node.lineno, scope)

    def _annotated(self, node: ast.AnnAssign | ast.arg, scope: Scope, _: str) -> None:
        self._push([node.annotation], scope, "annotation")
        if isinstance(node, ast.AnnAssign):
            self._push([node.target, node.value], scope)

    def _constant(self, node: ast.Constant, scope: Scope, usage: str) -> None:
        """A quoted annotation is code too."""
        if usage == "annotation" and isinstance(node.value, str) and len(node.value) < 500:
            try:
                expression = ast.parse(node.value, mode="eval").body
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return
            for name in ast.walk(expression):
                if isinstance(name, (ast.Name, ast.Attribute)) and dotted_parts(name):
                    self._refer(dotted_parts(name), "refers", node.lineno, scope)


def read(definition: Definition) -> tuple[list[Reference], list[Mark]]:
    """The dotted names in a definition that may lead on, each once per scope and usage, and its marks."""
    walker = _Walker()
    walker.walk(definition.nodes, definition.scope)
    methods = definition.kind == "function"
    used = {r.parts[0] for r in walker.references.values() if r.usage != "imports"}
    found = [
        r
        for r in walker.references.values()
        # An import is a reason of its own only for a name that isn't used.
        if (r.usage != "imports" or r.parts[0] not in used) and _may_lead(r, methods)
    ]
    return found, walker.marks


def _may_lead(reference: Reference, methods: bool) -> bool:
    """Whether a name can stand for a definition at all: not if it is a builtin, a local or an argument."""
    first = reference.parts[0]
    found = reference.scope.lookup(first)
    if found is None:
        return bool(reference.scope.module.stars) or (methods and first == "super")
    where, bindings = found
    if where.outer is None:
        return True
    kinds = {binding.kind for binding in bindings}
    attribute = methods and "parameter" in kinds and len(reference.parts) > 1
    return attribute or not kinds <= {"value", "parameter"}


def _is_imported(scope: Scope, *name: str) -> bool:
    found = scope.lookup(name[0]) if name else None
    return found is not None and any(b.kind in ("import", "from") for b in found[1])


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_super(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and dotted_parts(node.func) == ["super"]


def receiver(scope: Scope, name: str) -> Definition | None:
    """The class whose method this scope is in, when `name` is that method's `self`, `cls` or `super`."""
    inner: Scope | None = scope
    while inner is not None and inner.outer is not None:
        owner, where = inner.outer, inner.outer.outer
        if isinstance(inner.node, Function) and isinstance(owner.node, ast.ClassDef) and where:
            arguments = [*inner.node.args.posonlyargs, *inner.node.args.args][:1]
            if name not in ("super", *(a.arg for a in arguments)):
                return None
            return where.definition(owner.node)
        inner = inner.outer
    return None
