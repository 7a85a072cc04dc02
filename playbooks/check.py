"""What the schema alone can't see: ids that don't exist, calls a tool would refuse, conditions that never hold."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import ValidationError

from ..sandbox.yamlfile import Loc, did_you_mean
from ..tools.base import Status, Tool
from ..tools.registry import UnknownTool, get_tool
from .expressions import Expression, ExpressionError
from .flow import check_flow
from .functions import FUNCTIONS
from .schema import END, ID, Assumption, Bearing, Grade, Playbook, Rule, Step
from .suspect import Suspect
from .templates import expressions

Found = Iterator[tuple[Loc, str]]
RESERVED = ("status", "data", "control", "suspect", "steps", "true", "false", "null", *FUNCTIONS)
"""Names that mean something in every condition."""


def check(playbook: Playbook) -> list[tuple[Loc, str]]:
    """Every problem of a playbook that matches the schema, each with the location of its key."""
    return [*_ids(playbook), *_parameters(playbook), *_texts(playbook), *_steps(playbook), *check_flow(playbook)]


def _ids(playbook: Playbook) -> Found:
    hypotheses = list(enumerate(playbook.hypotheses))
    yield from _twice((("hypotheses", n, "id"), h.id) for n, h in hypotheses)
    yield from _twice((("steps", n, "id"), s.id) for n, s in enumerate(playbook.steps))
    for n, hypothesis in hypotheses:
        yield from _twice(
            (("hypotheses", n, "assumptions", m, "id"), a.id) for m, a in enumerate(hypothesis.assumptions)
        )
    yield from _shared(playbook)
    for n, step in enumerate(playbook.steps):
        if step.id == END:
            yield ("steps", n, "id"), f"{END!r} is where every playbook stops; choose another name"
        elif keyword.iskeyword(step.id):
            yield ("steps", n, "id"), f"{step.id!r} can't be a name in conditions; choose another one"


def _twice(ids: Iterable[tuple[Loc, str]]) -> Found:
    seen: set[str] = set()
    for loc, ident in ids:
        if ident in seen:
            yield loc, f"the id {ident!r} stands twice"
        seen.add(ident)


def _parameters(playbook: Playbook) -> Found:
    for name in playbook.parameters:
        if name in RESERVED:
            yield ("parameters", name), f"{name!r} already means something in conditions; choose another name"
        elif not re.fullmatch(ID, name) or keyword.iskeyword(name):
            yield ("parameters", name), f"{name!r} can't be a name in conditions; use small letters, digits and _"


def _shared(playbook: Playbook) -> Found:
    """Hypotheses may share an assumption by its id, but then they must mean the same."""
    texts: dict[str, str] = {}
    for n, hypothesis in enumerate(playbook.hypotheses):
        for m, assumption in enumerate(hypothesis.assumptions):
            if texts.setdefault(assumption.id, assumption.text) != assumption.text:
                text = f"{assumption.id!r} has another text in an earlier hypothesis"
                yield ("hypotheses", n, "assumptions", m), text


def _scope(playbook: Playbook) -> dict[str, Any]:
    """Types of the names that every expression sees."""
    return {**dict.fromkeys(playbook.parameters, Any), "suspect": Suspect}


def _texts(playbook: Playbook) -> Found:
    scope = _scope(playbook)
    yield from _expression(("applies_to",), playbook.applies_to, scope)
    for n, hypothesis in enumerate(playbook.hypotheses):
        for key in ("claim", "refuted_by", "undecided"):
            yield from _template(("hypotheses", n, key), getattr(hypothesis, key), scope)
        for m, assumption in enumerate(hypothesis.assumptions):
            yield from _template(("hypotheses", n, "assumptions", m, "text"), assumption.text, scope)


def _steps(playbook: Playbook) -> Found:
    scope = _scope(playbook)
    scope["steps"] = {}
    for n, step in enumerate(playbook.steps):
        tool, problem = _tool(step.tool)
        if problem:
            yield ("steps", n, "tool"), problem
        found = {"status": Status, "data": tool.Data if tool else Any}
        yield from _step(playbook, ("steps", n), step, scope, found)
        scope["steps"] = {**scope["steps"], step.id: found}


def _step(playbook: Playbook, loc: Loc, step: Step, scope: dict[str, Any], found: dict[str, Any]) -> Found:
    yield from _template((*loc, "question"), step.question, scope)
    yield from _known((*loc, "hypotheses"), step.hypotheses or (), [h.id for h in playbook.hypotheses])
    yield from _arguments((*loc, "args"), step.tool, step.args, scope)
    result = {**scope, **found}
    if step.control is not None:
        tool, problem = _tool(step.control.tool)
        if problem:
            yield (*loc, "control", "tool"), problem
        result["control"] = {"status": Status, "data": tool.Data if tool else Any}
        yield from _arguments((*loc, "control", "args"), step.control.tool, step.control.args, scope)
        yield from _expression((*loc, "control", "must"), step.control.must, {**scope, **result["control"]})
    for m, rule in enumerate(step.outcomes):
        yield from _rule(playbook, step, (*loc, "outcomes", m), rule, result)


def _tool(name: str) -> tuple[Tool[Any, Any] | None, str]:
    try:
        return get_tool(name), ""
    except UnknownTool as error:
        return None, str(error)


def _rule(playbook: Playbook, step: Step, loc: Loc, rule: Rule, scope: dict[str, Any]) -> Found:
    yield from _expression((*loc, "when"), rule.when, scope)
    yield from _template((*loc, "note"), rule.note, scope)
    yield from _known((*loc, "hypotheses"), rule.hypotheses or (), [h.id for h in playbook.hypotheses])
    yield from _assumed(playbook, step, (*loc, "assume"), rule)
    if rule.proves and rule.bearing is not Bearing.SUPPORTS:
        yield (*loc, "proves"), "only an outcome that supports a hypothesis can prove it"
    elif rule.proves and rule.grade is Grade.READ:
        yield (*loc, "proves"), f"reading proves nothing: the grade must be {Grade.COMPUTED.value!r} or better"
    if rule.goto is not None:
        yield from _goto(playbook, step, (*loc, "goto"), rule.goto)


def _assumed(playbook: Playbook, step: Step, loc: Loc, rule: Rule) -> Found:
    """An assumption is settled only for the hypotheses that the outcome bears on."""
    about = rule.hypotheses or step.hypotheses or [h.id for h in playbook.hypotheses]
    known = {a.id: [h.id for h in playbook.hypotheses if a in h.assumptions] for a in _assumptions(playbook)}
    for name in rule.assume:
        yield from _known((*loc, name), [name], list(known))
        owners = known.get(name, [])
        if owners and not set(owners) & set(about):
            yield (*loc, name), f"belongs to {', '.join(map(repr, owners))}, which this outcome doesn't bear on"


def _assumptions(playbook: Playbook) -> list[Assumption]:
    return [assumption for hypothesis in playbook.hypotheses for assumption in hypothesis.assumptions]


def _goto(playbook: Playbook, step: Step, loc: Loc, goto: str) -> Found:
    ids = [s.id for s in playbook.steps]
    later = [*ids[ids.index(step.id) + 1 :], END]
    if goto not in later:
        backwards = " (only a later step: a playbook always comes to its end)" if goto in ids else ""
        yield loc, f"no later step {goto!r}{backwards}{did_you_mean(goto, later)}"


def _known(loc: Loc, names: Iterable[str], known: list[str]) -> Found:
    for name in names:
        if name not in known:
            yield loc, f"there is no {name!r}{did_you_mean(name, known)}"


def _expression(loc: Loc, text: str, scope: dict[str, Any]) -> Found:
    try:
        for problem in Expression(text).check(scope):
            yield loc, problem
    except ExpressionError as error:
        yield loc, str(error)


def _template(loc: Loc, value: Any, scope: dict[str, Any]) -> Found:
    try:
        for expression in expressions(value):
            for problem in expression.check(scope):
                yield loc, problem
    except ExpressionError as error:
        yield loc, str(error)


def _arguments(loc: Loc, name: str, args: dict[str, Any], scope: dict[str, Any]) -> Found:
    """Arguments that the tool would refuse whatever the `${…}` in them turn out to be."""
    for key, value in args.items():
        yield from _template((*loc, key), value, scope)
    tool, _ = _tool(name)
    if tool is None:
        return
    fields = tool.Args.model_fields
    for key in args:
        if key not in fields:
            yield (*loc, key), f"{tool.name} has no argument {key!r}{did_you_mean(key, fields)}"
    for key, spec in fields.items():
        if spec.is_required() and key not in args:
            yield loc, f"{tool.name} needs the argument {key!r}"
    yield from _values(loc, tool, args)


def _values(loc: Loc, tool: Tool[Any, Any], args: dict[str, Any]) -> Found:
    try:
        tool.Args.model_validate(args)
    except ValidationError as error:
        for item in error.errors(include_url=False):
            name = str(item["loc"][0]) if item["loc"] else ""
            written_out = name in args and "${" not in repr(args[name])
            if written_out and item["type"] != "extra_forbidden":
                yield (*loc, *item["loc"]), f"{item['msg']} (got {item['input']!r})"
