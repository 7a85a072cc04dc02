"""Branches of a method that runs kernels: which of them use the factor, and for which classes somebody else does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..exactly_once.program import Class, Function, last_name
from .conditions import class_names
from .sites import Test, arguments, ends, left_after
from .survey import Place, Survey

RUNS = re.compile(r"_*(apply|forward|run)(_|$)")
"""Methods that run kernels."""
_ASKS = re.compile(r"_*is_(\w+)$")


@dataclass(frozen=True, eq=False)
class Branch:
    """A way through a method that ends in a `return` of its own.

    Attributes:
        statements: what is run on the way, the tests included.
        backend: the backend that a test on the way asks for (`x.is_marlin()`), empty for none.
        test: the last test that was passed on the way, as it is written.
        node: where it begins.
    """

    statements: tuple[ast.AST, ...]
    backend: str
    test: str
    node: ast.stmt
    answer: ast.expr


def branches(function: Function) -> list[Branch]:
    """The branches of a method, in order."""
    body = function.node.body
    return list(_branches(body, (), ())) if isinstance(body, list) else []


def _branches(body: Sequence[ast.stmt], before: tuple[ast.AST, ...], tests: tuple[Test, ...]) -> Iterator[Branch]:
    for statement in body:
        if isinstance(statement, ast.If):
            yield from _branches(statement.body, (*before, statement.test), (*tests, (statement.test, True)))
            yield from _branches(statement.orelse, before, (*tests, (statement.test, False)))
            if not ends(statement.body):
                before = (*before, statement)
            tests += tuple(left_after(statement))
        elif isinstance(statement, ast.With):
            yield from _branches(statement.body, before, tests)
            before = (*before, statement)
        elif isinstance(statement, ast.Return) and statement.value is not None:
            backend = next((b for test, outcome in reversed(tests) if outcome and (b := asked(test))), "")
            first = body[0]
            passed = next((ast.unparse(test) for test, outcome in reversed(tests) if outcome), "")
            yield Branch((*before, statement), backend, passed, first, statement.value)
        else:
            before = (*before, statement)


def asked(test: ast.expr) -> str:
    """The backend that a test asks for: `marlin` in `backend.is_marlin()`."""
    for node in ast.walk(test):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
            name = _ASKS.match(node.func.attr)
            if name:
                return name[1]
    return ""


class Consumers:
    """Who uses the factor below a method: the method itself, or whoever it hands a configuration or its weights to."""

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self._takers: dict[str, Place | None] = {}
        self._heads = [(function, ast.unparse(function.node.args)) for function in survey.functions]

    def of(self, owner: Class, branch: Branch) -> Place | None:
        """Where a branch uses the factor; None where it does nowhere."""
        for statement in branch.statements:
            for node in ast.walk(statement):
                found = self._by(owner, node)
                if found is not None:
                    return found
        return None

    def _by(self, owner: Class, node: ast.AST) -> Place | None:
        if isinstance(node, ast.Attribute) and node.attr.strip("_") == self.survey.factor:
            return Place(owner.module.path, node.lineno, owner.name, "uses it")
        if not isinstance(node, ast.Call):
            return None
        if any(last_name(a) in self.survey.holders for a in arguments(node)):
            return Place(owner.module.path, node.lineno, owner.name, "hands its configuration on")
        name = last_name(node.func)
        if name[:1].isupper():
            return self.taker(name)
        made = owner.functions.get(name) if isinstance(node.func, ast.Attribute) else None
        if made is not None and _is_own(node.func):
            return next((p for p in map(self.taker, _returned(made)) if p), None)
        return None

    def taker(self, name: str) -> Place | None:
        """The function that takes objects of a class and uses the factor."""
        if name not in self._takers:
            self._takers[name] = None
            hint = re.compile(rf":\s*[\"']?{re.escape(name)}\b")
            for function, head in self._heads:
                if hint.search(head) and any(self._reads(n) for n in ast.walk(function.node)):
                    self._takers[name] = self.survey.place(function, function.node, "applies it")
                    break
        return self._takers[name]

    def _reads(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Attribute) and node.attr == self.survey.factor and isinstance(node.ctx, ast.Load)


def _is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _returned(function: Function) -> list[str]:
    """Classes that a function makes what it returns of."""
    values = [n.value for n in ast.walk(function.node) if isinstance(n, ast.Return) and n.value is not None]
    return [last_name(v.func) for v in values if isinstance(v, ast.Call)]


@dataclass(frozen=True, eq=False)
class Term:
    """One alternative of a flag's definition: these classes, if all of the rest holds."""

    function: Function
    node: ast.AST
    classes: frozenset[str]
    rest: tuple[ast.expr, ...]

    def backends(self) -> set[str]:
        """The backends that the rest asks for, in either sense."""
        return {match for part in self.rest for match in re.findall(r"\bis_(\w+)\(\)", ast.unparse(part))}


def terms(survey: Survey) -> list[Term]:
    """The alternatives of every flag that is defined by classes."""
    found: list[Term] = []
    for function in survey.functions:
        for node in ast.walk(function.node):
            if (value := _defined(survey, function, node)) is not None:
                found += _terms(survey, function, value)
    return found


def _defined(survey: Survey, function: Function, node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.Assign) and survey.is_flag(last_name(node.targets[0])):
        return node.value
    return node.value if isinstance(node, ast.Return) and survey.is_flag(function.name) else None


def _terms(survey: Survey, function: Function, value: ast.expr) -> Iterator[Term]:
    for part in value.values if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or) else [value]:
        both = part.values if isinstance(part, ast.BoolOp) and isinstance(part.op, ast.And) else [part]
        tests = [p for p in both if isinstance(p, ast.Call) and last_name(p.func) in ("isinstance", "getattr")]
        if not tests:
            continue
        classes = _meant(survey, tests[0])
        if classes:
            yield Term(function, tests[0], frozenset(classes), tuple(p for p in both if p is not tests[0]))


def _meant(survey: Survey, test: ast.Call) -> set[str]:
    """The classes that `isinstance` names, or those that set the attribute which `getattr` asks for."""
    if last_name(test.func) == "isinstance":
        return class_names(test.args[1]) if len(test.args) == 2 else set()
    name = getattr(test.args[1], "value", "") if len(test.args) > 1 else ""
    mark = re.compile(rf"^    {re.escape(str(name))}(: *bool)? *= *True\b", re.MULTILINE)
    texts = {c.name: c.module.chunks[c.name][-1].text for c in survey.classes if c.name in c.module.chunks}
    return {c for c, text in texts.items() if name and mark.search(text)}
