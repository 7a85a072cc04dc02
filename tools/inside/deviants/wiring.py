"""Calls that hand a factor to whoever routes, together with a flag that says whether it is to be applied there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ..exactly_once.program import Class, Function, last_name
from .conditions import Judge, Setting
from .sites import carries
from .survey import Survey


@dataclass(frozen=True, eq=False)
class Wiring:
    """One such call.

    Attributes:
        router: name of the class or function that is called.
        flag: what it is told.
    """

    function: Function
    node: ast.Call
    router: str
    flag: ast.expr

    def folds(self, judge: Judge, setting: Setting) -> bool | None:
        """Whether the router is told to apply the factor."""
        return judge.decide(self.flag, setting)


def wirings(survey: Survey, owner: Class) -> list[Wiring]:
    """Those of a class's methods."""
    found: list[Wiring] = []
    for function in owner.functions.values():
        if survey.factor in function.text:
            found += _in_function(survey, function)
    return found


def _in_function(survey: Survey, function: Function) -> Iterator[Wiring]:
    collected = _spread(function)
    for node in ast.walk(function.node):
        if not isinstance(node, ast.Call):
            continue
        given = {k.arg: k.value for k in node.keywords if k.arg}
        flags = [value for name, value in given.items() if survey.is_flag(name)]
        holds = any(carries(value, {survey.factor}, survey.factor) for value in given.values())
        updates = last_name(node.func) == "update"
        if not flags or not (holds or updates) or (isinstance(flags[0], ast.Constant) and not flags[0].value):
            continue
        routers = collected.get(_target(function, node), []) if last_name(node.func) in ("dict", "update") else []
        for router in routers or [last_name(node.func)]:
            yield Wiring(function, node, router, flags[0])


def _target(function: Function, call: ast.Call) -> str:
    """The dictionary that a call makes or updates."""
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        return call.func.value.id
    for node in ast.walk(function.node):
        if isinstance(node, ast.Assign) and node.value is call and isinstance(node.targets[0], ast.Name):
            return node.targets[0].id
    return ""


def _spread(function: Function) -> dict[str, list[str]]:
    """For each name that is spread as `**name`, what it is handed to."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(function.node):
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            if keyword.arg is None and isinstance(keyword.value, ast.Name):
                found.setdefault(keyword.value.id, []).append(last_name(node.func))  # type: ignore[attr-defined]
    return found
