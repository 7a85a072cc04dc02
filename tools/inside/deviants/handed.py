"""A factor that is handed to an object which applies it, and by which what the object answers is multiplied again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..exactly_once.program import Class, Function, last_name
from .conditions import Judge
from .sites import Site, applications, carries
from .survey import Survey, Suspect


def look(survey: Survey) -> Iterator[Suspect]:
    """Look at every class that builds a part with the factor and multiplies the part's answer, no flag being asked."""
    for owner in survey.classes:
        for attribute, function, call in _built(survey, owner):
            applied = _applied(survey, last_name(call.func))
            if applied is None:
                continue
            for site in _again(survey, owner, attribute):
                survey.note(site.function)
                yield Suspect(
                    "twice",
                    "handed on and applied again",
                    survey.place(site.function, site.node),
                    f"{site.function.qualname} multiplies what `self.{attribute}` answers by {survey.factor}, which "
                    f"{last_name(call.func)} was built with",
                    "what was built applies it",
                    (
                        survey.place(function, call, "handed on"),
                        survey.place(applied.function, applied.node, "applies"),
                    ),
                )


def _built(survey: Survey, owner: Class) -> Iterator[tuple[str, Function, ast.Call]]:
    """Attributes that a class makes of an object which is handed the factor."""
    for function in owner.functions.values():
        for node in ast.walk(function.node):
            call = node.value if isinstance(node, ast.Assign) else None
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name | ast.Attribute)):
                continue
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            given = [k.value for k in call.keywords if k.arg == survey.factor]
            if isinstance(target, ast.Attribute) and any(carries(v, {survey.factor}, survey.factor) for v in given):
                yield target.attr, function, call


def _applied(survey: Survey, name: str) -> Site | None:
    """Where somebody applies a factor of this name that he is handed, if the class is one of the tree and keeps it."""
    kept = survey.class_named(name)
    if kept is None or not any(survey.factor in f.text for n, f in kept.functions.items() if n != "__init__"):
        return None
    for function in survey.functions:
        names = {a.arg for a in [*function.node.args.args, *function.node.args.kwonlyargs]}
        sites = applications(survey, function) if survey.factor in names else []
        if sites:
            return sites[0]
    return None


def _again(survey: Survey, owner: Class, attribute: str) -> Iterator[Site]:
    """Applications to what an attribute answers, whatever flags and platforms say."""
    for function in owner.functions.values():
        for site in applications(survey, function):
            judge = Judge(survey, function)
            if not any(judge.speaks(test) for test, _ in site.tests) and _answers(judge, site.node, attribute):
                yield site


def _answers(judge: Judge, node: ast.AST, attribute: str) -> bool:
    """Whether what is multiplied is what a call of the attribute answered."""
    made = [judge.made(p.id) if isinstance(p, ast.Name) else p for p in _multiplied(node)]
    return any(isinstance(m, ast.Call) and last_name(m.func) == attribute for m in made)


def _multiplied(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.AugAssign):
        return [node.target]
    return [node.func.value] if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else []
