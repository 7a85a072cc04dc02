"""Keys of a configuration that one branch of a factory passes on and its sibling drops."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ..exactly_once.program import Class, Function, last_name
from .survey import Survey, Suspect

FEWEST_SHARED = 2
"""Keys that two lists must share for them to be siblings."""


@dataclass(frozen=True, eq=False)
class Filter:
    """A dictionary made of those keys of a configuration that a list names, and who is handed it as `**keywords`."""

    node: ast.DictComp
    keys: frozenset[str]
    takers: tuple[str, ...]


def look(survey: Survey) -> Iterator[Suspect]:
    """Compare the filters of every function that has several."""
    for function in survey.functions:
        found = _filters(function)
        for one in found:
            keeping = [o for o in found if survey.factor in o.keys and len(o.keys & one.keys) >= FEWEST_SHARED]
            if not keeping or survey.factor in one.keys:
                continue
            survey.note(function)
            for name in one.takers:
                owner = survey.class_named(name)
                made = _makes_itself(survey, owner) if owner else None
                if made is not None:
                    yield _suspect(survey, function, one, keeping[0], *made)


def _suspect(survey: Survey, function: Function, one: Filter, other: Filter, init: Function, made: ast.AST) -> Suspect:
    return Suspect(
        "wrong",
        "key dropped",
        survey.place(init, made),
        f"{init.qualname} makes its {survey.factor} up: {function.qualname} drops the key on the way to it, and passes "
        f"it on to {', '.join(other.takers)}",
        f"the configuration has {survey.factor}",
        (survey.place(function, one.node, "drops it"), survey.place(function, other.node, "passes it on")),
    )


def _filters(function: Function) -> list[Filter]:
    """The filters of a function in order; a name that is bound again is a new one."""
    bound: dict[str, tuple[ast.DictComp, frozenset[str], list[str]]] = {}
    done: list[tuple[ast.DictComp, frozenset[str], list[str]]] = []
    nodes = [n for n in ast.walk(function.node) if isinstance(n, ast.Assign | ast.Call)]
    for node in sorted(nodes, key=lambda n: (n.lineno, n.col_offset)):
        if isinstance(node, ast.Assign):
            keys = _keys(node.value)
            if keys and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.DictComp):
                bound[node.targets[0].id] = (node.value, keys, [])
                done.append(bound[node.targets[0].id])
        else:
            for keyword in node.keywords:
                if keyword.arg is None and isinstance(keyword.value, ast.Name) and keyword.value.id in bound:
                    bound[keyword.value.id][2].append(last_name(node.func))
    return [Filter(node, keys, tuple(dict.fromkeys(takers))) for node, keys, takers in done]


def _keys(value: ast.expr) -> frozenset[str]:
    if not isinstance(value, ast.DictComp):
        return frozenset()
    for test in value.generators[0].ifs:
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In):
            listed = test.comparators[0]
            if isinstance(listed, ast.Tuple | ast.List | ast.Set):
                return frozenset(str(e.value) for e in listed.elts if isinstance(e, ast.Constant))
    return frozenset()


def _makes_itself(survey: Survey, owner: Class) -> tuple[Function, ast.AST] | None:
    """A constructor that sets an attribute of the factor's name without being handed it, and where."""
    init = owner.functions.get("__init__")
    if init is None or any(a.arg == survey.factor for a in [*init.node.args.args, *init.node.args.kwonlyargs]):
        return None
    for node in ast.walk(init.node):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(t, ast.Attribute) and t.attr == survey.factor for t in targets):
            return init, node
    return None
