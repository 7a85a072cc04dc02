"""A factor that depends on a flag about normalisation, where nothing is normalised."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from ..exactly_once.program import Function, last_name
from .sites import Site, Test, applications, arguments, carries
from .survey import Survey, Suspect

_NORMALISES = re.compile(r"(re)?norm(alize|alise)?(_topk)?(_prob)?")


def look(survey: Survey) -> Iterator[Suspect]:
    """Look at every place where the factor counts only if a normalisation is off.

    `if norm: w = w / w.sum() else: w = w * factor` is how DeepSeek-V2 was published. A factor that is left out because
    of a flag, with nothing in its place, is left out by mistake.
    """
    for function in survey.functions:
        applied, handed = list(_sites(survey, function)), list(_handed(survey, function))
        if applied or handed:
            survey.note(function)
        # Where another line applies it whatever the flag says, that line may be meant for the other case.
        whole = all(test is not None for _, test in applied)
        for node, test in [*(applied if whole else []), *handed]:
            if test is not None and not _normalised(function, node, flag_of(test)):
                yield _suspect(survey, function, node, test)


def _suspect(survey: Survey, function: Function, node: ast.AST, test: ast.expr) -> Suspect:
    return Suspect(
        "never",
        "unrelated flag",
        survey.place(function, node),
        f"{function.qualname} leaves {survey.factor} out because of `{flag_of(test)}`, which says whether weights are "
        "normalised; nothing is normalised here instead",
        f"{flag_of(test)} is true",
    )


def _sites(survey: Survey, function: Function) -> Iterator[tuple[ast.AST, ast.expr | None]]:
    """Applications, each with the test that makes it depend on a normalisation flag alone."""
    for site in applications(survey, function):
        yield site.node, _deciding(site)


def _deciding(site: Site) -> ast.expr | None:
    return next((test for test, outcome in site.tests if _is_off(test, outcome)), None)


def _handed(survey: Survey, function: Function) -> Iterator[tuple[ast.AST, ast.expr | None]]:
    """Arguments that are the factor or one, by a normalisation flag alone."""
    for node in ast.walk(function.node):
        for value in arguments(node) if isinstance(node, ast.Call) else ():
            if isinstance(value, ast.IfExp) and (test := _chosen(survey, value)):
                yield value, test[0] if _is_off(*test) else None


def _chosen(survey: Survey, value: ast.IfExp) -> Test | None:
    """The test of an argument that is the factor or one."""
    for side, other, outcome in ((value.body, value.orelse, True), (value.orelse, value.body, False)):
        is_one = isinstance(other, ast.Constant) and other.value == 1
        if is_one and carries(side, {survey.factor}, survey.factor):
            return value.test, outcome
    return None


def _is_off(test: ast.expr, outcome: bool) -> bool:
    """Whether a test with this outcome says that a normalisation is off, and nothing else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_off(test.operand, not outcome)
    return not outcome and isinstance(test, ast.Name | ast.Attribute) and _is_flag(last_name(test))


def _is_flag(name: str) -> bool:
    return bool(_NORMALISES.fullmatch(name.strip("_")))


def flag_of(test: ast.expr) -> str:
    """The flag of a test."""
    return next((last_name(n) for n in ast.walk(test) if isinstance(n, ast.Name | ast.Attribute)), "")


def _normalised(function: Function, node: ast.AST, flag: str) -> bool:
    """Whether something is divided under the flag in a block through which the node is reached."""
    body = function.node.body
    return isinstance(body, list) and _beside(body, node, flag)


def _beside(body: Sequence[ast.stmt], node: ast.AST, flag: str) -> bool:
    for statement in body:
        here = _holds([statement], node)
        if isinstance(statement, ast.If) and _mentions(statement.test, flag) and _divides(statement):
            return True
        blocks = [getattr(statement, name, []) or [] for name in ("body", "orelse", "finalbody")] if here else []
        if any(_beside(block, node, flag) for block in blocks if _holds(block, node)):
            return True
        if isinstance(statement, ast.Assign | ast.AnnAssign) and not here and _conditional(statement, flag):
            return True
    return False


def _holds(body: Sequence[ast.stmt], node: ast.AST) -> bool:
    return any(n is node for statement in body for n in ast.walk(statement))


def _conditional(statement: ast.stmt, flag: str) -> bool:
    return any(isinstance(n, ast.IfExp) and _mentions(n.test, flag) and _divides(n) for n in ast.walk(statement))


def _mentions(test: ast.AST, flag: str) -> bool:
    return any(isinstance(n, ast.Name | ast.Attribute) and last_name(n) == flag for n in ast.walk(test))


def _divides(node: ast.AST) -> bool:
    for one in ast.walk(node):
        if isinstance(one, ast.BinOp | ast.AugAssign) and isinstance(one.op, ast.Div):
            return True
        if isinstance(one, ast.Call) and re.search(r"norm|div", last_name(one.func)):
            return True
    return False
