"""The case file: everything known so far, folded from the events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..playbooks.schema import State
from ..playbooks.suspect import Suspect
from ..tools.call import ToolResult
from .events import (
    AnyEvent,
    Call,
    CallFinished,
    CallStarted,
    CaseClosed,
    CaseOpened,
    Evidence,
    HypothesisOpened,
    OriginalsChecked,
    StepChosen,
    StepWeighed,
    SuspectsListed,
    Trouble,
    Verdict,
)
from .log import Record


@dataclass
class CaseFile:
    """State of an investigation.

    Attributes:
        opened: the first event; None before there is any.
        suspects: every patch, in the order they are looked at.
        examined: ids of the suspects that the playbook is for.
        hypotheses: by id, in the order they were raised.
        chosen: every question asked.
        weighed: every question answered, in order.
        started: calls that were begun, by key.
        results: calls that ended, by key.
        evidence: in order.
        verdicts: as the gate last gave them.
        troubles: what stopped or disturbed the work since it was last resumed.
        originals_changed: originals that changed under the investigation.
        closed: the last event of a finished case.
    """

    opened: CaseOpened | None = None
    suspects: list[Suspect] = field(default_factory=list)
    examined: list[str] = field(default_factory=list)
    order: str = ""
    hypotheses: dict[str, HypothesisOpened] = field(default_factory=dict)
    chosen: list[StepChosen] = field(default_factory=list)
    weighed: list[StepWeighed] = field(default_factory=list)
    started: dict[str, Call] = field(default_factory=dict)
    results: dict[str, ToolResult] = field(default_factory=dict)
    evidence: list[Evidence] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    originals_checked: bool = False
    originals_changed: list[str] = field(default_factory=list)
    closed: CaseClosed | None = None

    def add(self, event: AnyEvent) -> None:  # noqa: C901 - one flat case an event
        """Take one more event in."""
        match event:
            case CaseOpened():
                self.opened = event
            case SuspectsListed():
                self.suspects, self.examined, self.order = event.suspects, event.examined, event.order
            case HypothesisOpened():
                self.hypotheses[event.id] = event
            case StepChosen():
                self.chosen.append(event)
            case CallStarted():
                self.started[event.call.key] = event.call
            case CallFinished():
                self.results[event.key] = event.result
            case StepWeighed():
                self.weighed.append(event)
                self.evidence += event.evidence
            case OriginalsChecked():
                self.originals_checked, self.originals_changed = True, event.changed
            case Trouble():
                self.troubles.append(event)
            case CaseClosed():
                self.closed, self.verdicts = event, event.verdicts
            case _:  # resumed: what stopped the work before no longer does
                self.closed, self.troubles, self.originals_checked = None, [], False

    def pending(self) -> StepChosen | None:
        """The question that was asked and not yet answered."""
        done = {(w.suspect, w.step) for w in self.weighed}
        return next((c for c in self.chosen if (c.suspect, c.step) not in done), None)

    def last_step(self, suspect: str) -> StepWeighed | None:
        """The last step that was answered for a suspect."""
        return next((w for w in reversed(self.weighed) if w.suspect == suspect), None)

    def asked(self, suspect: str) -> list[StepWeighed]:
        """The questions about a suspect that were answered."""
        return [w for w in self.weighed if w.suspect == suspect]

    def of_suspect(self, suspect: str) -> list[HypothesisOpened]:
        """The hypotheses against one suspect."""
        return [h for h in self.hypotheses.values() if h.suspect == suspect]

    def about(self, hypothesis: str) -> list[Evidence]:
        """The evidence on one hypothesis."""
        return [e for e in self.evidence if e.hypothesis == hypothesis]

    def assumption(self, hypothesis: str, ident: str) -> State:
        """State of an assumption: falsified once anything admitted falsifies it, else verified once something does."""
        states = {e.assume[ident] for e in self.about(hypothesis) if e.counts and ident in e.assume}
        return next((s for s in (State.FALSIFIED, State.VERIFIED) if s in states), State.OPEN)


def fold(records: Iterable[Record]) -> CaseFile:
    """The case file after `records`."""
    case = CaseFile()
    for record in records:
        case.add(record.event)
    return case
