"""Everything that can happen in a case. The case file is a fold over these; nothing else is stored."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from ..playbooks.schema import Bearing, Grade, State
from ..playbooks.suspect import Suspect
from ..tools.call import ToolResult


class Event(BaseModel):
    """Base of every event."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class CaseOpened(Event):
    """What is investigated, with what, and on which bytes."""

    kind: Literal["case_opened"] = "case_opened"
    case: str
    sleuth: str
    """Sleuth's version."""
    deployment: str
    """The deployment's name."""
    symptom: str
    description: str
    """The sleuth.yaml that was read."""
    description_digest: str
    """SHA-256 over it and over the files it names that tools read: the model's config, the container's description."""
    overrides: dict[str, str]
    """Values of the command line that replaced the file's."""
    playbook: str
    playbook_digest: str
    params: dict[str, Any]
    clone: str
    """Digest over everything a call can see."""
    originals: dict[str, str]
    """Digest of every original folder, by path."""
    notes: list[str]
    max_calls: int | None = None
    max_seconds: float | None = None


class CaseResumed(Event):
    """Work went on after an interruption or a crash."""

    kind: Literal["case_resumed"] = "case_resumed"


class SuspectsListed(Event):
    """The patches, in the order they will be looked at."""

    kind: Literal["suspects_listed"] = "suspects_listed"
    suspects: list[Suspect]
    examined: list[str]
    """Ids of those that the playbook is for."""
    order: str
    """What decided the order."""


class Claim(Event):
    """An assumption, as stated."""

    id: str
    text: str


class HypothesisOpened(Event):
    """A claim against one suspect."""

    kind: Literal["hypothesis_opened"] = "hypothesis_opened"
    id: str
    suspect: str
    claim: str
    refuted_by: str
    assumptions: list[Claim]
    undecided: str


class Call(Event):
    """One tool call: the key is a digest of tool, arguments and clone."""

    key: str
    tool: str
    args: dict[str, Any]

    @classmethod
    def of(cls, tool: str, args: dict[str, Any], clone: str) -> Call:
        """The call of a tool on a clone, given by its digest, under its key."""
        body = json.dumps([tool, args, clone], sort_keys=True)
        return cls(key=hashlib.sha256(body.encode()).hexdigest(), tool=tool, args=args)


class StepChosen(Event):
    """A question is asked."""

    kind: Literal["step_chosen"] = "step_chosen"
    suspect: str
    step: str
    question: str
    call: Call | None
    """None when the call could not be put together; `problem` says why."""
    control: Call | None = None
    problem: str = ""


class CallStarted(Event):
    """A tool call begins; `again` when an earlier attempt ended without a recorded result."""

    kind: Literal["call_started"] = "call_started"
    call: Call
    again: bool = False


class CallFinished(Event):
    """A tool call's result."""

    kind: Literal["call_finished"] = "call_finished"
    key: str
    result: ToolResult


class Evidence(Event):
    """One observation and what it does to one hypothesis.

    Attributes:
        id: `e1`, `e2`, … in order.
        call: key of the call that produced it.
        rests_on: keys of calls of earlier steps that the rule looked at; empty for a step that was never asked.
        control: what the control showed: `found`, `nothing`, or `none` where there was none.
        assume: assumptions that it settles.
        proves: the claim follows by computation.
        counts: whether the gate admits it; if not, `why_not` says why.
    """

    id: str
    hypothesis: str
    call: str
    rests_on: list[str] = []
    control: Literal["found", "nothing", "none"]
    bearing: Bearing
    grade: Grade
    note: str
    assume: dict[str, State] = {}
    proves: bool = False
    counts: bool = True
    why_not: str = ""


class StepWeighed(Event):
    """What a step's outcome means, and where to go on."""

    kind: Literal["step_weighed"] = "step_weighed"
    suspect: str
    step: str
    evidence: list[Evidence]
    next: str


class OriginalsChecked(Event):
    """The original folders were digested again at the end."""

    kind: Literal["originals_checked"] = "originals_checked"
    changed: list[str]


class Verdict(Event):
    """What is held of one suspect, and why."""

    suspect: str
    verdict: Literal["convicted", "exonerated", "suspected", "inconclusive"]
    reasons: list[str]
    evidence: list[str]


class Trouble(Event):
    """Something outside the investigation stopped or disturbed it."""

    kind: Literal["trouble"] = "trouble"
    what: Literal["sandbox", "suspects", "budget", "interrupted"]
    text: str


class CaseClosed(Event):
    """The end."""

    kind: Literal["case_closed"] = "case_closed"
    verdicts: list[Verdict]
    exit_code: int
    summary: str


AnyEvent = Annotated[
    CaseOpened
    | CaseResumed
    | SuspectsListed
    | HypothesisOpened
    | StepChosen
    | CallStarted
    | CallFinished
    | StepWeighed
    | OriginalsChecked
    | Trouble
    | CaseClosed,
    Field(discriminator="kind"),
]
ADAPTER: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent)
"""Reads any event from its JSON form."""
