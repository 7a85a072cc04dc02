"""Where a function multiplies by the factor, and under which tests."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..exactly_once.program import Function, last_name
from .conditions import DEEPEST, Judge, Setting
from .survey import Survey

Test = tuple[ast.expr, bool]
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_TAKES_FACTOR = ("mul", "mul_", "multiply")
_TAKES_ALPHA = ("add", "add_", "baddbmm", "addmm")


@dataclass(frozen=True, eq=False)
class Site:
    """An application.

    Attributes:
        tests: tests on the way to it, with the outcome that leads there.
        node: what multiplies, or the call of the helper that does.
    """

    function: Function
    node: ast.AST
    tests: tuple[Test, ...]

    def applies(self, judge: Judge, setting: Setting) -> bool | None:
        """Whether it is reached: tests that have to do with nothing that is assumed count as passed."""
        found: bool | None = True
        for test, outcome in self.tests:
            value = judge.decide(test, setting)
            if value is not None and value != outcome:
                return False
            if value is None and judge.speaks(test):
                found = None
        return found


def applications(survey: Survey, function: Function, inline: bool = False) -> list[Site]:
    """Where a function applies the factor, in order; `inline`: or hands it to a function of the tree that does."""
    key = (function.module.path, function.node.lineno, inline)
    if key not in survey.read:
        survey.read[key] = Reader(survey, function, inline).sites() if survey.factor in function.text else []
    found: list[Site] = survey.read[key]
    return found


class Reader:
    """Reads applications out of one function."""

    def __init__(self, survey: Survey, function: Function, inline: bool) -> None:
        self.survey, self.function, self.inline = survey, function, inline
        self.carriers: dict[str, tuple[Test, ...]] = {survey.factor: ()}
        self.carriers.update(self._locals())
        self.found: list[Site] = []

    def sites(self) -> list[Site]:
        """The applications in order."""
        body = self.function.node.body
        if isinstance(body, list):
            self._block(body, ())
        return self.found

    def _locals(self) -> Iterator[tuple[str, tuple[Test, ...]]]:
        for node in ast.walk(self.function.node):
            target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
            if not (isinstance(node, ast.Assign) and isinstance(target, ast.Name)):
                continue
            if carries(node.value, {self.survey.factor}, self.survey.factor):
                yield target.id, chosen(node.value, {self.survey.factor}, self.survey.factor)

    def _block(self, body: Sequence[ast.stmt], tests: tuple[Test, ...]) -> None:
        for statement in body:
            if isinstance(statement, ast.If):
                self._expression(statement.test, tests)
                self._block(statement.body, (*tests, (statement.test, True)))
                self._block(statement.orelse, (*tests, (statement.test, False)))
                tests += tuple(left_after(statement))
            elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self._block(statement.body, tests)
            else:
                self._statement(statement, tests)

    def _statement(self, statement: ast.stmt, tests: tuple[Test, ...]) -> None:
        multiplies = isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Mult)
        if multiplies and isinstance(statement, ast.AugAssign) and self._carries(statement.value):
            self._add(statement, statement.value, tests)
        for name in ("body", "orelse", "finalbody"):
            self._block(getattr(statement, name, []) or [], tests)
        for handler in getattr(statement, "handlers", []):
            self._block(handler.body, tests)
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                self._expression(child, tests)

    def _expression(self, node: ast.AST, tests: tuple[Test, ...]) -> None:
        if isinstance(node, ast.IfExp):
            self._expression(node.body, (*tests, (node.test, True)))
            self._expression(node.orelse, (*tests, (node.test, False)))
            return
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and self._multiplies(node):
            self._add(node, node.left if self._carries(node.left) else node.right, tests)
        elif isinstance(node, ast.Call):
            self._call(node, tests)
        for child in ast.iter_child_nodes(node):
            self._expression(child, tests)

    def _multiplies(self, node: ast.BinOp) -> bool:
        pair = [self._carries(node.left), self._carries(node.right)]
        other = node.right if pair[0] else node.left
        return any(pair) and not isinstance(other, ast.Constant)

    def _call(self, node: ast.Call, tests: tuple[Test, ...]) -> None:
        name = last_name(node.func)
        alpha = next((k.value for k in node.keywords if k.arg == "alpha"), None)
        if name in _TAKES_FACTOR and any(map(self._carries, node.args)):
            self._add(node, next(a for a in node.args if self._carries(a)), tests)
        elif name in _TAKES_ALPHA and alpha is not None and self._carries(alpha):
            self._add(node, alpha, tests)
        elif self.inline and isinstance(node.func, ast.Name) and any(map(self._carries, arguments(node))):
            self.found += [Site(self.function, node, (*tests, *inner)) for inner in self._inside(node)]

    def _inside(self, node: ast.Call) -> list[tuple[Test, ...]]:
        """Tests before the applications of a function of the tree that is handed the factor, in the caller's terms."""
        helper = self.survey.function_named(self.function.module, last_name(node.func))
        if helper is None or self.survey.factor not in helper.text or helper.is_kernel:
            return []
        spec = helper.node.args
        names = [a.arg for a in [*spec.posonlyargs, *spec.args]]
        given = dict(zip(names, node.args, strict=False)) | {k.arg: k.value for k in node.keywords if k.arg}
        inner = applications(self.survey, helper)
        spelled = _Spelled(given, Judge(self.survey, helper))
        return [tuple((spelled.visit(copy.deepcopy(t)), o) for t, o in site.tests) for site in inner]

    def _add(self, node: ast.AST, value: ast.expr, tests: tuple[Test, ...]) -> None:
        """An application by a value that is the factor under conditions of its own."""
        more = chosen(value, set(self.carriers), self.survey.factor)
        named = self.carriers.get(value.id, ()) if isinstance(value, ast.Name) else ()
        self.found.append(Site(self.function, node, (*tests, *more, *named)))

    def _carries(self, node: ast.expr) -> bool:
        return carries(node, set(self.carriers), self.survey.factor)


class _Spelled(ast.NodeTransformer):
    """A function's parameters as its caller spells them, and its locals as what they were made from."""

    def __init__(self, given: dict[str, ast.expr], judge: Judge) -> None:
        self.given, self.judge, self.depth = given, judge, 0

    def visit_Name(self, node: ast.Name) -> ast.expr:
        made = self.judge.made(node.id) if node.id not in self.given and self.depth < DEEPEST else None
        if made is None:
            return self.given.get(node.id, node)
        self.depth += 1
        spelled: ast.expr = self.visit(copy.deepcopy(made))
        self.depth -= 1
        return spelled


def arguments(node: ast.Call) -> list[ast.expr]:
    """What a call is handed."""
    return [*node.args, *(k.value for k in node.keywords)]


def carries(node: ast.expr, carriers: set[str], factor: str) -> bool:
    """Whether an expression is the factor, as such or with a fallback."""
    if isinstance(node, ast.Name):
        return node.id in carriers
    if isinstance(node, ast.Attribute):
        return node.attr.strip("_") == factor
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        if name in ("getattr", "get") and any(isinstance(a, ast.Constant) and a.value == factor for a in node.args):
            return True
        return name in ("float", "to", "item") and any(carries(a, carriers, factor) for a in _subjects(node))
    if isinstance(node, ast.IfExp):
        return carries(node.body, carriers, factor) or carries(node.orelse, carriers, factor)
    if isinstance(node, ast.BoolOp):
        return any(carries(value, carriers, factor) for value in node.values)
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == factor
    return False


def chosen(node: ast.expr, carriers: set[str], factor: str) -> tuple[Test, ...]:
    """Under which tests an expression that may be the factor is."""
    if not isinstance(node, ast.IfExp):
        return ()
    sides = [carries(node.body, carriers, factor), carries(node.orelse, carriers, factor)]
    if all(sides):
        return ()
    return ((node.test, sides[0]), *chosen(node.body if sides[0] else node.orelse, carriers, factor))


def _subjects(node: ast.Call) -> list[ast.expr]:
    return [node.func.value] if isinstance(node.func, ast.Attribute) else list(node.args[:1])


def left_after(statement: ast.If) -> Iterator[Test]:
    """What holds after an `if` one side of which leaves."""
    if ends(statement.body):
        yield statement.test, False
    elif statement.orelse and ends(statement.orelse):
        yield statement.test, True


def ends(body: Sequence[ast.stmt]) -> bool:
    """Whether a block never reaches its end."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return bool(last.orelse) and ends(last.body) and ends(last.orelse)
    return isinstance(last, _ENDS) or (isinstance(last, ast.With) and ends(last.body))
