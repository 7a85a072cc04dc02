"""What a patch changed, function by function."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field

from ..chunks import BROKEN, parse_text
from ..source import Tree, Unreadable, decode

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Changed:
    """The functions that differ between two states of some files.

    Attributes:
        functions: (path, qualified name) of those whose code differs, on either side.
        loose: why code may behave otherwise that isn't in them; empty if none does.
        effects: of these functions, those whose parameters, or effects on anything but their result, changed.
        attributes: for (path, class), attributes of `self` that only the later state sets.
    """

    functions: set[tuple[str, str]] = field(default_factory=set)
    loose: list[str] = field(default_factory=list)
    effects: set[tuple[str, str]] = field(default_factory=set)
    attributes: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    @property
    def classes(self) -> dict[tuple[str, str], list[str]]:
        """For each class with such methods, (path, name), their names."""
        found: dict[tuple[str, str], list[str]] = {}
        for path, name in sorted(self.functions):
            owner, _, method = name.partition(".")
            if method:
                found.setdefault((path, owner), []).append(method)
        return found

    @property
    def plain(self) -> list[tuple[str, str]]:
        """Those that are no methods."""
        return sorted((path, name) for path, name in self.functions if "." not in name)


@dataclass
class _File:
    """One state of a file: the code of its functions, and what else it holds."""

    functions: dict[str, Definition] = field(default_factory=dict)
    rests: dict[str, str] = field(default_factory=dict)


def changed(before: Tree, after: Tree, paths: list[str]) -> Changed:
    """Compare two states of Python files; a file may be missing on either side."""
    found = Changed()
    for path in paths:
        if not path.endswith(".py"):
            found.loose.append(f"{path} isn't Python")
            continue
        try:
            old, new = _read(before, path), _read(after, path)
        except BROKEN as error:
            found.loose.append(f"{path} can't be parsed ({type(error).__name__})")
            continue
        _compare(path, old, new, found)
    return found


def _read(tree: Tree, path: str) -> _File:
    try:
        parsed = parse_text(decode(tree.read(path)))
    except Unreadable:
        return _File()
    found = _File(rests={"": _rest(parsed.body)})
    for statement in parsed.body:
        if isinstance(statement, ast.ClassDef):
            head = [ast.dump(n) for n in [*statement.bases, *statement.keywords, *statement.decorator_list]]
            found.rests[statement.name] = " ".join([*head, _rest(statement.body)])
            methods = [s for s in statement.body if isinstance(s, Definition)]
            found.functions |= {f"{statement.name}.{s.name}": s for s in methods}
        elif isinstance(statement, Definition):
            found.functions[statement.name] = statement
    return found


def _rest(body: list[ast.stmt]) -> str:
    """What a body holds besides definitions, imports and texts."""
    kept = [s for s in body if not isinstance(s, (*_DEFINITIONS, ast.Import, ast.ImportFrom))]
    kept = [s for s in kept if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return " ".join(map(ast.dump, kept))


def _compare(path: str, old: _File, new: _File, found: Changed) -> None:
    for name in old.functions.keys() | new.functions.keys():
        before, after = old.functions.get(name), new.functions.get(name)
        if before is not None and after is not None and ast.dump(before) == ast.dump(after):
            continue
        found.functions.add((path, name))
        owner, _, method = name.partition(".")
        same_effects = _effects(before, method == "__init__") == _effects(after, method == "__init__")
        if not same_effects or _signature(before) != _signature(after):
            found.effects.add((path, name))
        new_names = _own(after) - _own(before)
        if method and new_names:
            found.attributes.setdefault((path, owner), set()).update(new_names)
    for name in old.rests.keys() | new.rests.keys():
        if old.rests.get(name, "") != new.rests.get(name, ""):
            where = f"the body of class {name}" if name else "the top level"
            found.loose.append(f"{where} of {path} differs")


def _signature(node: Definition | None) -> str:
    """What a function takes, defaults and decorators included: its callers may fit it no longer."""
    return "" if node is None else " ".join(map(ast.dump, [node.args, *node.decorator_list]))


def _own(node: Definition | None) -> set[str]:
    """Attributes of `self` that a method sets."""
    if node is None:
        return set()
    stored = (n for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    return {n.attr for n in stored if isinstance(n.value, ast.Name) and n.value.id == "self"}


def _effects(node: Definition | None, constructor: bool) -> Counter[str]:
    """What a function does besides its result: stores to what isn't local, calls for their own sake."""
    found: Counter[str] = Counter()
    for at in ast.walk(node) if node is not None else ():
        if isinstance(at, ast.Attribute | ast.Subscript) and isinstance(at.ctx, ast.Store | ast.Del):
            root = _root(at)
            if not (constructor and root == "self"):
                found["store " + ast.unparse(at)] += 1
        elif isinstance(at, ast.Expr) and isinstance(at.value, ast.Call):
            found["call " + ast.unparse(at.value)] += 1
        elif isinstance(at, ast.AugAssign):
            found["change " + ast.unparse(at)] += 1
        elif isinstance(at, ast.Global | ast.Nonlocal):
            found["global " + " ".join(at.names)] += 1
        elif isinstance(at, ast.Call) and _may_change(at, node):
            found["change " + ast.unparse(at)] += 1
    return found


def _may_change(call: ast.Call, function: Definition | None) -> bool:
    """Whether a call can change what the function was handed: in place, by `out=`, or by a function of the tree."""
    if any(keyword.arg == "out" for keyword in call.keywords):
        return True
    if isinstance(call.func, ast.Attribute):
        in_place = call.func.attr.endswith("_") and not call.func.attr.endswith("__")
        return in_place or (_root(call.func) == "self" and _hands_on(call, function))
    return _hands_on(call, function)


def _hands_on(call: ast.Call, function: Definition | None) -> bool:
    spec = function.args if function is not None else None
    names = {a.arg for a in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]} if spec else set()
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(isinstance(a, ast.Name) and a.id in names for a in given)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
