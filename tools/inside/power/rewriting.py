"""Tests that Python answers by itself, without asking a stand-in: they are compiled as calls that do ask."""

from __future__ import annotations

import ast

SAME, AMONG, TYPE, GET, SUBJECT = "_power_is_", "_power_in_", "_power_type_", "_power_get_", "_power_subject_"
"""Names of the built-ins that answer `is`, `in`, `type(…)`, `table.get(…)`, and what `match` looks into."""

_CALLS = {ast.Is: (SAME, False), ast.IsNot: (SAME, True), ast.In: (AMONG, False), ast.NotIn: (AMONG, True)}
"""By operator: the built-in, and whether its answer is turned round."""


class _Rewriter(ast.NodeTransformer):
    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """`a is b`, `a in b` and their negations, unless they are part of a chain."""
        self.generic_visit(node)
        found = _CALLS.get(type(node.ops[0])) if len(node.ops) == 1 else None
        if found is None:
            return node
        name, negated = found
        return _call(node, name, [node.left, node.comparators[0], ast.copy_location(ast.Constant(negated), node)])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """`type(x)` and `table.get(key, default)`."""
        self.generic_visit(node)
        function, args = node.func, node.args
        if node.keywords or any(isinstance(one, ast.Starred) for one in args):
            return node
        if isinstance(function, ast.Name) and function.id == "type" and len(args) == 1:
            return _call(node, TYPE, [function, *args])
        if isinstance(function, ast.Attribute) and function.attr == "get" and len(args) in (1, 2):
            return _call(node, GET, [function.value, *args])
        return node

    def visit_Match(self, node: ast.Match) -> ast.stmt:
        """A pattern that asks for a class or for None would take a stand-in for what it is."""
        self.generic_visit(node)
        if any(isinstance(one, ast.MatchClass | ast.MatchSingleton) for one in ast.walk(node)):
            node.subject = _call(node.subject, SUBJECT, [node.subject])
        return node


def _call(node: ast.expr, name: str, args: list[ast.expr]) -> ast.Call:
    function = ast.copy_location(ast.Name(id=name, ctx=ast.Load()), node)
    return ast.copy_location(ast.Call(func=function, args=args, keywords=[]), node)


def rewritten(statement: ast.stmt) -> ast.stmt:
    """A statement with its tests as calls; it is changed in place, and every line stays where it was."""
    made: ast.stmt = _Rewriter().visit(statement)
    return made
