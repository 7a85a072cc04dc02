"""The policy without a model: a playbook's rules, the same way every time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from ..playbooks.expressions import ExpressionError, parse, uses
from ..playbooks.schema import END, Bearing, Hypothesis, Playbook, Rule, Step
from ..playbooks.suspect import Suspect
from ..playbooks.templates import fill, fill_text
from ..tools.base import Status, ToolData
from ..tools.redact import redact_value
from ..tools.registry import get_tool
from .case import CaseFile
from .events import Call, Claim, Evidence, HypothesisOpened, StepChosen, StepWeighed
from .gate import FAILED

ReadData = Callable[[str], bytes]
"""Gives an artefact's content by its digest."""

ControlState = Literal["found", "nothing", "none"]


class PlaybookPolicy:
    """Works through one playbook for every suspect it is for."""

    def __init__(self, playbook: Playbook, params: dict[str, Any], clone: str, read: ReadData) -> None:
        """Bind a playbook to a case.

        Args:
            playbook: what to follow.
            params: its parameters' values.
            clone: the clone's digest, part of every call's key.
            read: how to get a result's data.
        """
        self.playbook, self.params, self.clone, self.read = playbook, params, clone, read

    def examined(self, suspects: list[Suspect]) -> list[str]:
        """Ids of the suspects that this playbook is for; the source as a whole always is."""
        return [s.id for s in suspects if s.is_source or self._applies(s)]

    def _applies(self, suspect: Suspect) -> bool:
        try:
            return bool(parse(self.playbook.applies_to).evaluate({**self.params, "suspect": suspect}))
        except ExpressionError:
            return True  # a condition that can't be worked out is no reason to leave a patch out

    def hypotheses(self, case: CaseFile) -> list[HypothesisOpened]:
        """See `Policy`."""
        chosen = [s for s in case.suspects if s.id in case.examined]
        return [self._open(template, suspect) for suspect in chosen for template in self.playbook.hypotheses]

    def _open(self, template: Hypothesis, suspect: Suspect) -> HypothesisOpened:
        scope = {**self.params, "suspect": suspect}
        return HypothesisOpened(
            id=f"{template.id}@{suspect.id}",
            suspect=suspect.id,
            claim=_said(template.claim, scope),
            refuted_by=_said(template.refuted_by, scope),
            assumptions=[Claim(id=a.id, text=_said(a.text, scope)) for a in template.assumptions],
            undecided=_said(template.undecided, scope),
        )

    def choose(self, case: CaseFile) -> StepChosen | None:
        """See `Policy`."""
        for ident in case.examined:
            last = case.last_step(ident)
            step = last.next if last else self.playbook.steps[0].id
            if step != END:
                return self._choice(case, ident, self.playbook.step(step))
        return None

    def _choice(self, case: CaseFile, suspect: str, step: Step) -> StepChosen:
        scope = self._scope(case, suspect)
        try:
            call = self._call(step.tool, fill(step.args, scope))
            control = self._call(step.control.tool, fill(step.control.args, scope)) if step.control else None
            question = fill_text(step.question, scope)
        except ExpressionError as error:
            return StepChosen(
                suspect=suspect, step=step.id, question=step.question, call=None, problem=f"can't be asked: {error}"
            )
        return StepChosen(suspect=suspect, step=step.id, question=question, call=call, control=control)

    def _call(self, tool: str, args: dict[str, Any]) -> Call:
        if redact_value(args) != args:
            raise ExpressionError("an argument looks like a secret, which can't be recorded")
        return Call.of(tool, args, self.clone)

    def weigh(self, case: CaseFile, chosen: StepChosen) -> StepWeighed:
        """See `Policy`."""
        step = self.playbook.step(chosen.step)
        if chosen.call is None:
            return self._weighed(case, step, chosen, _unanswered(chosen.problem), "none", [])
        data = self._data(case, chosen.call)
        try:
            control = self._control(case, step, chosen, data)
            scope = self._result_scope(case, chosen)
            tried, rule = self._rule(step, scope)
            rule = rule.model_copy(update={"note": fill_text(rule.note, scope)})
        except ExpressionError as error:
            tried, rule, control = [], _unanswered(f"the rules can't be applied: {error}"), "none"
        return self._weighed(case, step, chosen, rule, control, self._rests_on(case, step, chosen, tried))

    def _rule(self, step: Step, scope: dict[str, Any]) -> tuple[list[Rule], Rule]:
        """The rules that were looked at, and the one that is taken."""
        for n, rule in enumerate(step.outcomes):
            if parse(rule.when).evaluate(scope):
                return step.outcomes[: n + 1], rule
        return step.outcomes, _unanswered(f"no rule of this step covers the outcome ({scope['status']})")

    def _rests_on(self, case: CaseFile, step: Step, chosen: StepChosen, tried: list[Rule]) -> list[str]:
        """Keys of the earlier calls that decided which rule was taken."""
        conditions = [rule.when for rule in tried] + ([step.control.must] if step.control else [])
        keys = {c.step: c.call.key for c in case.chosen if c.suspect == chosen.suspect and c.call}
        return [keys.get(ident, "") for ident in sorted(uses(map(parse, conditions), "steps"))]

    def _weighed(
        self, case: CaseFile, step: Step, chosen: StepChosen, rule: Rule, control: ControlState, rests_on: list[str]
    ) -> StepWeighed:
        names = rule.hypotheses or step.hypotheses or [h.id for h in self.playbook.hypotheses]
        first = len(case.evidence) + 1
        evidence = [
            Evidence(
                id=f"e{first + n}",
                hypothesis=f"{name}@{chosen.suspect}",
                call=chosen.call.key if chosen.call else "",
                rests_on=rests_on,
                control=control,
                bearing=rule.bearing,
                grade=rule.grade,
                note=rule.note,
                assume=self._own_assumptions(name, rule),
                proves=rule.proves,
            )
            for n, name in enumerate(names)
        ]
        onward = rule.goto or self.playbook.after(step.id)
        return StepWeighed(suspect=chosen.suspect, step=step.id, evidence=evidence, next=onward)

    def _own_assumptions(self, hypothesis: str, rule: Rule) -> dict[str, Any]:
        own = next(h for h in self.playbook.hypotheses if h.id == hypothesis).assumptions
        return {a.id: rule.assume[a.id] for a in own if a.id in rule.assume}

    def _control(self, case: CaseFile, step: Step, chosen: StepChosen, data: ToolData | None) -> ControlState:
        """What the step's own control showed, or else the one that the tool made by itself."""
        if step.control and chosen.control:
            found = self._result(case, chosen.control)
            if found["status"] in FAILED:
                return "nothing"
            holds = parse(step.control.must).evaluate(self._scope(case, chosen.suspect) | found)
            return "found" if holds else "nothing"
        by_itself = data.control_found() if data else None
        return "none" if by_itself is None else "found" if by_itself else "nothing"

    def _scope(self, case: CaseFile, suspect: str) -> dict[str, Any]:
        """Names for a step's arguments: parameters, the suspect, the results of earlier steps."""
        asked = {c.step: c.call for c in case.chosen if c.suspect == suspect}
        return {
            **self.params,
            "suspect": next(s for s in case.suspects if s.id == suspect),
            "steps": _Results(asked, lambda call: self._result(case, call)),
        }

    def _result(self, case: CaseFile, call: Call | None) -> dict[str, Any]:
        """A call's `status` and `data` as conditions see them."""
        result = case.results.get(call.key) if call else None
        if call is None or result is None:
            return {"status": str(Status.ERROR), "data": None}
        return {"status": str(result.status), "data": self._data(case, call)}

    def _result_scope(self, case: CaseFile, chosen: StepChosen) -> dict[str, Any]:
        control = self._result(case, chosen.control) if chosen.control else None
        return {**self._scope(case, chosen.suspect), **self._result(case, chosen.call), "control": control}

    def _data(self, case: CaseFile, call: Call) -> ToolData | None:
        result = case.results.get(call.key)
        if result is None or not result.data:
            return None
        return get_tool(call.tool).Data.model_validate(json.loads(self.read(result.data)))


class _Results(Mapping[str, Any]):
    """The results of earlier steps by the step's id, each read only when a condition looks at it."""

    def __init__(self, asked: dict[str, Call | None], result: Callable[[Call | None], dict[str, Any]]) -> None:
        self.asked, self.result = asked, result

    def __getitem__(self, step: str) -> dict[str, Any]:
        return self.result(self.asked[step])

    def __iter__(self) -> Iterator[str]:
        return iter(self.asked)

    def __len__(self) -> int:
        return len(self.asked)


def _said(template: str, scope: dict[str, Any]) -> str:
    """A text for a reader, also where a part of it has no value for this suspect."""
    try:
        return fill_text(template, scope)
    except ExpressionError as error:
        return f"{template} (a part of this has no value here: {error})"


def _unanswered(note: str) -> Rule:
    return Rule(bearing=Bearing.NEUTRAL, note=note)
