"""Where a run of a playbook can go: steps nothing leads to, rules never reached, results used before they are there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..sandbox.yamlfile import Loc
from .expressions import Expression, ExpressionError, uses
from .schema import END, Playbook, Rule, Step
from .templates import expressions


def check_flow(playbook: Playbook) -> Iterator[tuple[Loc, str]]:
    """Every problem of the order of steps and rules."""
    reached = _reachable(playbook, without=None)
    ids = {step.id for step in playbook.steps}
    for n, step in enumerate(playbook.steps):
        if step.id not in reached:
            yield ("steps", n), f"no step leads to {step.id!r}"
        for m, rule in enumerate(step.outcomes[:-1]):
            if _always(rule):
                yield ("steps", n, "outcomes", m + 1), "never reached: the rule before it always holds"
        for earlier in sorted(_used(step) & ids):
            if step.id in _reachable(playbook, without=earlier):
                yield ("steps", n), f"uses the result of {earlier!r}, but can be reached without it"


def _always(rule: Rule) -> bool:
    return rule.when.strip() in ("true", "True")


def _reachable(playbook: Playbook, without: str | None) -> set[str]:
    """Ids of the steps that a run can come to when the step `without` is blocked."""
    pending, seen = [playbook.steps[0].id], set()
    while pending:
        ident = pending.pop()
        if ident in seen or ident in (END, without):
            continue
        seen.add(ident)
        step = playbook.step(ident)
        known = [s.id for s in playbook.steps]
        pending += [rule.goto for rule in step.outcomes if rule.goto in known]
        if not any(_always(rule) for rule in step.outcomes) or any(rule.goto is None for rule in step.outcomes):
            pending.append(playbook.after(ident))
    return seen


def _used(step: Step) -> set[str]:
    """Ids of the steps whose results the text, the calls or the rules of a step look at."""
    templates: list[Any] = [step.question, step.args, [rule.note for rule in step.outcomes]]
    conditions = [rule.when for rule in step.outcomes]
    if step.control:
        templates.append(step.control.args)
        conditions.append(step.control.must)
    return uses([*_parsed(templates), *_conditions(conditions)], "steps") - {step.id}


def _parsed(templates: Iterable[Any]) -> Iterator[Expression]:
    for template in templates:
        try:
            yield from expressions(template)
        except ExpressionError:
            continue  # reported where it stands


def _conditions(texts: Iterable[str]) -> Iterator[Expression]:
    for text in texts:
        try:
            yield Expression(text)
        except ExpressionError:
            continue  # reported where it stands
