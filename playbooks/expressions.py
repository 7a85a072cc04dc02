"""The small expression language of playbooks: Python's spelling, no side effects, checked before anything runs."""

from __future__ import annotations

import ast
import functools
import math
import re
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from ..sandbox.yamlfile import did_you_mean
from .evaluate import CONSTANTS, Evaluator
from .functions import FUNCTIONS, misuse
from .functions import ExpressionError as ExpressionError
from .types_of import Types

MAX_TEXT = 10_000
"""Characters of one expression."""
MAX_DEPTH = 100
"""Levels of nesting; evaluation and checks go down them recursively."""

_COMPARE = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn)
_ALLOWED = (
    *(ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.Compare, *_COMPARE),
    *(ast.Name, ast.Load, ast.Store, ast.Attribute, ast.Subscript, ast.Constant, ast.List, ast.Tuple, ast.IfExp),
    *(ast.Call, ast.GeneratorExp, ast.ListComp, ast.comprehension, ast.BinOp, ast.Add),
)


class Expression:
    """One parsed expression over named values.

    A field of nothing (`data.control.total` where `control` is null) is null, so are an item, a sum, a loop and a
    function of it, and null is neither more nor less than anything; so a condition about what isn't there is false
    instead of an error. `not` turns that around: say `status == 'ok' and not …` where it matters.
    """

    def __init__(self, text: str) -> None:
        """Parse `text`.

        Raises:
            ExpressionError: not an expression, or one that uses what the language doesn't have.
        """
        self.text = text
        self._tree = self._parse(text.strip())
        self._refuse_depth()
        for node in ast.walk(self._tree):
            problem = _objection(node)
            if problem:
                raise ExpressionError(f"{self.text!r}: {problem}")

    def _parse(self, text: str) -> ast.Expression:
        if len(text) > MAX_TEXT:
            raise ExpressionError(f"an expression of {len(text):,} characters; the most is {MAX_TEXT:,}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # an invalid escape such as '\d' is only warned of
                return ast.parse(text, mode="eval")
        except (SyntaxError, ValueError) as error:
            said = str(getattr(error, "msg", None) or error)
            said += "; write r'…' around a regular expression" if "escape" in said else ""
            raise ExpressionError(f"{self.text!r} is not an expression: {said}") from error
        except (RecursionError, MemoryError):
            raise ExpressionError(f"{self.text[:60]!r}… is nested too deep") from None

    def _refuse_depth(self) -> None:
        level: list[ast.AST] = [self._tree]
        for _ in range(MAX_DEPTH):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
            if not level:
                return
        raise ExpressionError(f"{self.text[:60]!r}… is nested more than {MAX_DEPTH} deep")

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """The outer names it uses, dotted as far as they are plain: `data`, `steps.q2b` (also as `steps['q2b']`)."""
        bound = {n.id for n in ast.walk(self._tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        found = set()
        for node in ast.walk(self._tree):
            match node:
                case ast.Attribute(value=ast.Name(id=name), attr=attr):
                    found.add(f"{name}.{attr}")
                case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))):
                    found.add(f"{name}.{key}")
                case ast.Name(id=name) if name not in FUNCTIONS and name not in CONSTANTS:
                    found.add(name)
        return frozenset(name for name in found if name.partition(".")[0] not in bound)

    def check(self, known: Mapping[str, Any]) -> list[str]:
        """Problems with names, fields and values, given the type of each outer name (`Any` = not known)."""
        problems: list[str] = []
        Types(dict(known), problems).of(self._tree.body)
        return [f"{self.text!r}: {p}" for p in dict.fromkeys(problems)]

    def evaluate(self, scope: Mapping[str, Any]) -> Any:
        """Its value.

        Raises:
            ExpressionError: a name or index that isn't there, an operation its operands don't have, or far too much
                to work through.
        """
        try:
            return Evaluator().value(self._tree.body, scope)
        except (TypeError, LookupError, ValueError, ArithmeticError, re.error, RecursionError) as error:
            raise ExpressionError(f"{self.text!r}: {error}") from error


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> Expression:
    """`Expression(text)`, remembered: a run looks at the same few over and over.

    Raises:
        ExpressionError: as `Expression`.
    """
    return Expression(text)


def _objection(node: ast.AST) -> str:
    """What speaks against a node of the syntax tree; empty when it belongs to the language."""
    if not isinstance(node, _ALLOWED):
        return f"{type(node).__name__} isn't part of the playbook language"
    match node:
        case ast.Call():
            return _call_objection(node)
        case ast.Attribute(attr=name) | ast.Name(id=name) if name.startswith("_"):
            return f"{name} is private"
        case ast.Name(ctx=ast.Store(), id=name) if name in FUNCTIONS or name in CONSTANTS:
            return f"a loop's variable can't be called {name!r}"
        case ast.comprehension() if node.is_async or not isinstance(node.target, ast.Name):
            return "a loop has one plain variable"
        case ast.Constant(value=str(text)) if "\b" in text:
            return f"{text!r} holds a backspace, not a word's edge; write r'…' around a regular expression"
        case ast.Constant() if not _is_plain(node.value):
            return f"{node.value!r} is no text, number, true, false or null"
    return ""


def _call_objection(node: ast.Call) -> str:
    name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
    if name not in FUNCTIONS:
        return f"there is no function {name!r}{did_you_mean(name, FUNCTIONS)}"
    if node.keywords:
        return f"{name} takes no named arguments"
    return misuse(name, len(node.args))


def _is_plain(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)


def uses(expressions: Iterable[Expression], prefix: str) -> set[str]:
    """The names behind `prefix.` in all the expressions: ids of steps for `steps`."""
    dotted = {name for expression in expressions for name in expression.names}
    return {name.partition(".")[2] for name in dotted if name.startswith(f"{prefix}.")}
