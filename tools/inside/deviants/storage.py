"""A scale that belongs to quantised storage: is it used only where the storage is quantised?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..exactly_once.program import Function, last_name
from .sites import Site, Test, left_after
from .survey import Survey, Suspect

_STORED = re.compile(r"_?(q|k|v|kv|input|weight|activation)_scales?(_\w+)?")
_DTYPE = re.compile(r"dtype|data_type|fp8|float8|int8|quantiz|quantis", re.IGNORECASE)


def look(survey: Survey) -> Iterator[Suspect]:
    """Compare the places of one file that take such a scale: some test the storage's type, others don't."""
    if not _STORED.fullmatch(survey.factor):
        return
    files: dict[str, list[tuple[Site, bool]]] = {}
    for function in survey.functions:
        for site in _uses(survey, function):
            survey.note(function)
            files.setdefault(function.module.path, []).append((site, _tested(site.tests)))
    for found in files.values():
        guarded = [site for site, tested in found if tested]
        for site, tested in found:
            if not tested and guarded:
                yield Suspect(
                    "wrong",
                    "storage not asked",
                    survey.place(site.function, site.node),
                    f"{site.function.qualname} scales by {survey.factor} whatever the type of what is stored; "
                    f"{guarded[0].function.qualname} does so only for a quantised one",
                    "what is stored isn't quantised",
                    (survey.place(guarded[0].function, guarded[0].node, "asks"),),
                )


def _uses(survey: Survey, function: Function) -> list[Site]:
    """Where a local of the factor's name gets a value other than one, in a function that multiplies by it."""
    name = survey.factor
    products = (n for n in ast.walk(function.node) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult))
    multiplied = any(_is_named(side, name) for n in products for side in (n.left, n.right))
    body = function.node.body
    return list(_bindings(function, body, name, ())) if multiplied and isinstance(body, list) else []


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _bindings(function: Function, body: list[ast.stmt], name: str, tests: tuple[Test, ...]) -> Iterator[Site]:
    for statement in body:
        if isinstance(statement, ast.If):
            yield from _bindings(function, statement.body, name, (*tests, (statement.test, True)))
            yield from _bindings(function, statement.orelse, name, (*tests, (statement.test, False)))
            tests += tuple(left_after(statement))
            continue
        for inner in ("body", "orelse", "finalbody"):
            block = getattr(statement, inner, None)
            if isinstance(block, list):
                yield from _bindings(function, block, name, tests)
        if isinstance(statement, ast.Assign) and not isinstance(statement.value, ast.Constant):
            targets = [t for target in statement.targets for t in ast.walk(target)]
            if any(isinstance(t, ast.Name) and t.id == name for t in targets):
                yield Site(function, statement, (*tests, *_inside(statement.value)))


def _inside(value: ast.expr) -> Iterator[Test]:
    for node in ast.walk(value):
        if isinstance(node, ast.IfExp):
            yield node.test, True


def _tested(tests: tuple[Test, ...]) -> bool:
    """Whether a test asks for the type of what is stored."""
    for test, _ in tests:
        for node in ast.walk(test):
            word = last_name(node) if isinstance(node, ast.Name | ast.Attribute) else ""
            word = str(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else word
            if _DTYPE.search(word):
                return True
    return False
