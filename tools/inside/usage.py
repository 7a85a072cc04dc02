"""What one expression does with a value: multiplies by it, tests it, passes it on."""

from __future__ import annotations

import ast
from typing import NamedTuple

from .frames import Frame, show
from .imports import dotted_parts

Use = tuple[str, str]
"""A kind of occurrence and its detail."""

_MULTIPLY = frozenset("mul mul_ multiply multiply_ matmul".split())
_DIVIDE = frozenset("div div_ divide divide_ true_divide floor_divide reciprocal reciprocal_".split())
_SAME_VALUE = frozenset(
    "to float half double bfloat16 type type_as view view_as reshape expand expand_as item cuda cpu "
    "unsqueeze squeeze contiguous clone detach flatten astype".split()
)
_CASTS = frozenset("float int tensor as_tensor scalar_tensor full_like Parameter cast asarray array".split())
_VIEWS = frozenset(("data", "T", "mT"))


class Usage(NamedTuple):
    """What becomes of a value where it is read.

    Attributes:
        uses: kinds of occurrence with their details; `read` when nothing more is known.
        aliases: local names that now stand for the same value.
    """

    uses: list[Use]
    aliases: list[str]


def usage(frame: Frame) -> Usage:
    """Every use that the expression around a read makes of its value.

    The value is followed while it stays the same quantity: through casts, views, signs, ternaries and
    defaults (`x or 1.0`), until an operation consumes it.
    """
    found: list[Use] = []
    same, child = True, frame
    boolean: ast.AST | None = None
    for outer in frame.ancestors():
        parent = outer.node
        if isinstance(parent, (ast.stmt, ast.match_case, ast.Lambda, ast.excepthandler)):
            break
        tests = _test(parent, child)
        found += tests
        boolean = parent if _is_boolean(parent) else boolean
        use, goes_on = _consume(outer, child, child is frame) if same and not tests else ([], False)
        found += use
        same, child = goes_on, outer
    found += _by_statement(child, same)
    if not found and boolean is not None:
        found.append(("condition", show(boolean)))
    aliases = _aliases(child) if same else []
    return Usage(list(dict.fromkeys(found)) or [_plain(child)], aliases)


def _is_boolean(node: ast.AST) -> bool:
    negation = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return negation or isinstance(node, (ast.BoolOp, ast.Compare))


def _test(parent: ast.AST, child: Frame) -> list[Use]:
    if isinstance(parent, ast.IfExp) and child.field == "test":
        return [("condition", show(parent.test))]
    if isinstance(parent, ast.comprehension) and child.field == "ifs":
        return [("condition", show(child.node))]
    return []


def _by_statement(child: Frame, same: bool) -> list[Use]:
    """The use that the statement around the outermost expression makes."""
    statement = child.up.node if child.up else None
    if isinstance(statement, (ast.If, ast.While)) and child.field == "test":
        return [("condition", show(statement.test))]
    if isinstance(statement, ast.match_case) and child.field == "guard":
        return [("condition", show(statement.guard))]
    if isinstance(statement, ast.Assert) and child.field == "test":
        message = f", {show(statement.msg)}" if statement.msg else ""
        return [("assertion", show(statement.test) + message)]
    if isinstance(statement, ast.AugAssign) and child.field == "value" and same:
        return _in_place(statement)
    return []


def _assigned(child: Frame) -> list[ast.expr]:
    statement = child.up.node if child.up else None
    if isinstance(statement, ast.Assign):
        return statement.targets
    return [statement.target] if isinstance(statement, ast.AnnAssign) else []


def _aliases(child: Frame) -> list[str]:
    return [target.id for target in _assigned(child) if isinstance(target, ast.Name)]


def _plain(child: Frame) -> Use:
    """A read of which only the place is worth saying."""
    targets = _assigned(child)
    if targets:
        return "read", "assigned to " + ", ".join(show(target) for target in targets)
    return "read", "returned" if child.up and isinstance(child.up.node, ast.Return) else ""


def _in_place(statement: ast.AugAssign) -> list[Use]:
    if isinstance(statement.op, (ast.Mult, ast.MatMult)):
        return [("multiply", f"in place: {show(statement)}")]
    if isinstance(statement.op, (ast.Div, ast.FloorDiv)):
        return [("divide", f"in place: {show(statement)}")]
    return [("read", show(statement))]


def _consume(outer: Frame, child: Frame, first: bool) -> tuple[list[Use], bool]:
    """The use a parent makes, and whether its own value is still the same quantity."""
    parent = outer.node
    if isinstance(parent, ast.BinOp):
        return _arithmetic(parent, child)
    if isinstance(parent, ast.UnaryOp):
        return [], not isinstance(parent.op, ast.Not)
    if isinstance(parent, ast.Call):
        return _call(parent, child, first)
    if isinstance(parent, ast.Attribute):
        called = outer.field == "func" and outer.up is not None and isinstance(outer.up.node, ast.Call)
        return [], called or parent.attr in _VIEWS
    if isinstance(parent, ast.Subscript):
        return [], child.field == "value"
    kept = (ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.keyword, ast.Starred, ast.Await)
    return [], isinstance(parent, kept)


def _arithmetic(parent: ast.BinOp, child: Frame) -> tuple[list[Use], bool]:
    if isinstance(parent.op, (ast.Mult, ast.MatMult)):
        return [("multiply", show(parent))], False
    if isinstance(parent.op, (ast.Div, ast.FloorDiv)):
        role = "divided by it" if child.field == "right" else "it is divided"
        return [("divide", f"{role}: {show(parent)}")], False
    other = parent.left if child.field == "right" else parent.right
    power = isinstance(parent.op, ast.Pow) and child.field == "left"
    # `x * (1 + weight)` still scales by the weight; `(x + weight) * y` doesn't.
    shifted = isinstance(parent.op, (ast.Add, ast.Sub)) and isinstance(other, ast.Constant)
    return [], power or shifted


def _call(call: ast.Call, child: Frame, first: bool) -> tuple[list[Use], bool]:
    name = called_name(call)
    last = name.rpartition(".")[2]
    if child.field == "func":
        return ([("called", show(call))], False) if first else _method(call, last)
    keyword = child.node.arg if isinstance(child.node, ast.keyword) else None
    if keyword in ("alpha", "beta"):
        return [("multiply", f"{keyword}= of {show(call)}")], False
    if keyword is None and last in _MULTIPLY:
        return [("multiply", show(call))], False
    if keyword is None and last in _DIVIDE:
        return [("divide", f"divided by it: {show(call)}")], False
    if last in _CASTS:
        return [], True
    if last in ("getattr", "hasattr", "setattr"):
        return [], False
    return [("passed", f"{name}({keyword}=…)" if keyword else f"{name}(…)")], False


def _method(call: ast.Call, name: str) -> tuple[list[Use], bool]:
    """A method called on the value itself."""
    if name in _MULTIPLY:
        return [("multiply", show(call))], False
    if name in _DIVIDE:
        return [("divide", f"it is divided: {show(call)}")], False
    return [], name in _SAME_VALUE


def called_name(call: ast.Call) -> str:
    """The dotted name of what is called, or its source."""
    return ".".join(dotted_parts(call.func)) or show(call.func)
