"""Objects that wrap others of their kind: is the factor taken from what they hand on, and does everybody look there?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..exactly_once.program import Class, Function, last_name
from .conditions import Judge, Setting, tested_classes
from .sites import Site, applications, arguments, carries
from .survey import Place, Survey, Suspect


def look(survey: Survey) -> Iterator[Suspect]:
    """Compare what wrappers hand on with who applies the factor for them."""
    yield from _handed_on_unchanged(survey)
    yield from _other_object_read(survey)


def _handed_on_unchanged(survey: Survey) -> Iterator[Suspect]:
    """The caller applies the factor itself for a wrapper's class, which hands the factor on to what it wraps."""
    for name, site in _special(survey).items():
        owner = survey.class_named(name)
        for function, call, parameter in _delegations(survey, owner) if owner else ():
            survey.note(function)
            if _renewed(function, parameter, survey.factor, call):
                continue
            yield Suspect(
                "twice",
                "handed on unchanged",
                survey.place(function, call),
                f"{function.qualname} hands `{parameter}` on as it is, {survey.factor} included, while "
                f"{site.function.qualname} multiplies by it for {name}",
                "what is wrapped applies the factor",
                (survey.place(site.function, site.node, "applies it for this class"),),
            )


def _special(survey: Survey) -> dict[str, Site]:
    """Classes for which somebody applies the factor who wouldn't for another, with the place."""
    found: dict[str, Site] = {}
    for function in survey.functions:
        for site in applications(survey, function):
            judge = Judge(survey, function)
            for name in sorted(tested_classes(test for test, _ in site.tests)):
                setting = Setting(classes=frozenset({name}))
                if site.applies(judge, setting) and site.applies(judge, Setting()) is False:
                    for owner in _classes(survey, name):
                        found.setdefault(owner, site)
    return found


def _classes(survey: Survey, tested: str) -> list[str]:
    """The class of a test; for a test by another name, the classes that go by that name."""
    _, colon, label = tested.partition(":")
    if not colon:
        return [tested]
    mark = re.compile(rf"[\"']{re.escape(label)}[\"']")
    return [c.name for c in survey.classes if any(mark.search(ast.unparse(d)) for d in c.node.decorator_list)]


def _delegations(survey: Survey, owner: Class) -> Iterator[tuple[Function, ast.Call, str]]:
    """Methods that call the same method of an object they hold, with a configuration that they were handed."""
    for function in owner.functions.values():
        parameters = {a.arg for a in function.node.args.args} & survey.holders
        for node in ast.walk(function.node):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            held = isinstance(node.func.value, ast.Attribute) and last_name(node.func.value.value) == "self"
            if held and node.func.attr == function.name and parameters:
                for parameter in sorted(parameters):
                    yield function, node, parameter


def _renewed(function: Function, parameter: str, factor: str, call: ast.Call) -> bool:
    """Whether what is handed on isn't the parameter as it came, or its factor was taken out."""
    if not any(isinstance(a, ast.Name) and a.id == parameter for a in arguments(call)):
        return True
    for node in ast.walk(function.node):
        if isinstance(node, ast.Call) and any(k.arg == factor for k in node.keywords):
            return True
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(t, ast.Attribute) and t.attr == factor for t in targets):
            return True
    return False


def _other_object_read(survey: Survey) -> Iterator[Suspect]:
    """A wrapper hands its object a configuration without the factor; this object asks somebody else's for it."""
    blanked = [(f, node, taken) for f in survey.functions for node, taken in _blanked(f, survey.factor)]
    if not blanked:
        return
    wrapper, taken_out, method = blanked[0]
    keepers = [(c, kept) for c in survey.classes if (kept := _keeps(survey, c, method))]
    for owner, kept in keepers:
        for function in owner.functions.values():
            for read, site in _reads_elsewhere(survey, function, kept):
                yield Suspect(
                    "twice",
                    "asks another's configuration",
                    survey.place(function, read),
                    f"{function.qualname} multiplies by the {survey.factor} of `{ast.unparse(read.value)}`; its own is "
                    f"`self.{kept}`, from which {wrapper.qualname} takes the factor out",
                    f"it is wrapped by {wrapper.qualname.partition('.')[0]}",
                    (survey.place(wrapper, taken_out, "takes it out"), site),
                )
            if survey.factor in function.text:
                survey.note(function)


def _blanked(function: Function, factor: str) -> Iterator[tuple[ast.Call, str]]:
    """Calls that make a copy of a configuration without the factor for a method of an object that is held."""
    calls = [node for node in ast.walk(function.node) if isinstance(node, ast.Call)]
    if not any(_is_delegation(call, function) for call in calls):
        return
    for call in calls:
        for keyword in call.keywords:
            if keyword.arg == factor and isinstance(keyword.value, ast.Constant) and keyword.value.value in (None, 1):
                yield call, function.name


def _is_delegation(node: ast.AST, function: Function) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == function.name
        and isinstance(node.func.value, ast.Attribute)
        and last_name(node.func.value.value) == "self"
    )


def _keeps(survey: Survey, owner: Class, method: str) -> str:
    """The attribute in which a class keeps the configuration that a method is handed."""
    function = owner.functions.get(method)
    parameters = {a.arg for a in function.node.args.args} & survey.holders if function else set()
    for node in ast.walk(function.node) if function else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in parameters:
            target = node.targets[0]
            if isinstance(target, ast.Attribute) and last_name(target.value) == "self":
                return target.attr
    return ""


def _reads_elsewhere(survey: Survey, function: Function, kept: str) -> Iterator[tuple[ast.Attribute, Place]]:
    """Reads of the factor from that attribute of a parameter, by which the function itself multiplies."""
    parameters = {a.arg for a in function.node.args.args} - {"self"}
    for name, read in _named_reads(survey, function):
        where = read.value
        other = isinstance(where, ast.Attribute) and where.attr == kept and last_name(where.value) in parameters
        if not other:
            continue
        for site in applications(survey, function):
            if _after(site.node, read) and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(site.node)):
                yield read, survey.place(function, site.node, "multiplies")
                break


def _named_reads(survey: Survey, function: Function) -> Iterator[tuple[str, ast.Attribute]]:
    for node in ast.walk(function.node):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            for read in ast.walk(node.value):
                if isinstance(read, ast.Attribute) and carries(read, set(), survey.factor):
                    yield node.targets[0].id, read


def _after(node: ast.AST, read: ast.AST) -> bool:
    return getattr(node, "lineno", 0) >= getattr(read, "lineno", 0)
