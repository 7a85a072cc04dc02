"""Events of made-up cases, with everything that a test doesn't care about filled in."""

from collections.abc import Iterable
from typing import Any

from sleuth.agent.case import CaseFile, fold
from sleuth.agent.events import (
    AnyEvent,
    Call,
    CallFinished,
    CallStarted,
    CaseOpened,
    Claim,
    Evidence,
    HypothesisOpened,
    StepChosen,
    StepWeighed,
    SuspectsListed,
)
from sleuth.agent.log import Record
from sleuth.playbooks.suspect import Suspect
from sleuth.tools.call import ToolResult

CLONE = "c" * 64


def case_of(events: Iterable[AnyEvent]) -> CaseFile:
    """The case file after `events`."""
    return fold(Record(n, 0.0, event) for n, event in enumerate(events, 1))


def opened(**more: Any) -> CaseOpened:
    """The first event of a case."""
    values: dict[str, Any] = {
        "case": "20260102-030405-p-abcd",
        "sleuth": "0.1.0",
        "deployment": "fork",
        "symptom": "",
        "description": "/deployments/fork/sleuth.yaml",
        "description_digest": "d" * 64,
        "overrides": {},
        "playbook": "p",
        "playbook_digest": "b" * 64,
        "params": {},
        "clone": CLONE,
        "originals": {"/trees/stock": "a" * 64},
        "notes": [],
    }
    return CaseOpened(**{**values, **more})


def suspects(*idents: str, examined: list[str] | None = None) -> SuspectsListed:
    """Suspects by their ids, all examined unless told otherwise."""
    listed = [Suspect(id=ident, title=f"what {ident} does", files=[f"{ident}.py"]) for ident in idents]
    chosen = list(idents) if examined is None else examined
    return SuspectsListed(suspects=listed, examined=chosen, order="as listed; not ranked")


def hypothesis(suspect: str = "s", ident: str = "h", assumptions: Iterable[str] = (), **more: Any) -> HypothesisOpened:
    """A hypothesis against a suspect; `undecided` is empty."""
    claims = [Claim(id=a, text=f"Assumption {a}.") for a in assumptions]
    values = {"claim": f"Claim {ident}.", "refuted_by": "A count.", "undecided": "", **more}
    return HypothesisOpened(id=f"{ident}@{suspect}", suspect=suspect, assumptions=claims, **values)


def call(name: str, tool: str = "grep", **args: Any) -> Call:
    """A call whose key is `name`."""
    return Call(key=name, tool=tool, args=args)


def answered(made: Call, status: str = "ok", text: str = "found", **more: Any) -> list[AnyEvent]:
    """A call's beginning and its end."""
    result = ToolResult(status=status, text=text, seconds=0.25, **more)
    return [CallStarted(call=made), CallFinished(key=made.key, result=result)]


def evidence(ident: str = "e1", about: str = "h@s", made: str = "k1", **more: Any) -> Evidence:
    """Evidence that refutes `h` against `s`, as the policy proposes it."""
    values: dict[str, Any] = {"control": "none", "bearing": "refutes", "grade": "read", "note": f"note of {ident}"}
    return Evidence(id=ident, hypothesis=about, call=made, **{**values, **more})


def asked(step: str, made: Call | None, suspect: str = "s", control: Call | None = None, **more: Any) -> StepChosen:
    """A question."""
    return StepChosen(suspect=suspect, step=step, question=f"Question {step}?", call=made, control=control, **more)


def weighed(step: str, *items: Evidence, suspect: str = "s", onward: str = "end") -> StepWeighed:
    """A question's answer."""
    return StepWeighed(suspect=suspect, step=step, evidence=list(items), next=onward)
