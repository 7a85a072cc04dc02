"""The gate: the only place that turns evidence into verdicts. Whoever proposes a bearing, these rules dispose."""

from __future__ import annotations

from ..playbooks.schema import END, Bearing, Grade, State
from ..tools.base import Status
from ..tools.call import ToolResult
from .case import CaseFile
from .events import Evidence, HypothesisOpened, Verdict
from .exitcodes import ExitCode

DECIDING = (Bearing.SUPPORTS, Bearing.REFUTES)


FAILED = (Status.ERROR, Status.TIMEOUT, Status.DENIED)


def admit(evidence: Evidence, case: CaseFile) -> Evidence:
    """The evidence with the gate's word on whether it counts.

    A bearing that decides something, or an assumption that is settled, needs a call that gave an answer; and where the
    call found nothing, a control that found something. The same holds for every earlier call that the rule looked at.
    """
    if evidence.bearing not in DECIDING and not evidence.assume:
        return evidence
    why = _objection(case.results.get(evidence.call), evidence.control)
    for key in evidence.rests_on:
        earlier = _objection(case.results.get(key), _control_of(case, key))
        why = why or (earlier and f"it rests on an earlier step of which this holds: {earlier}")
    return evidence.model_copy(update={"counts": not why, "why_not": why})


def _objection(result: ToolResult | None, control: str) -> str:
    if result is None:
        return "the call was never made"
    if result.status in FAILED:
        return f"the call gave no answer ({result.status})"
    if control == "nothing":
        return "the control found nothing either, so the instrument isn't shown to work"
    if result.status is Status.NO_DATA and control != "found":
        return "nothing was found, and no control shows that the instrument works"
    return ""


def _control_of(case: CaseFile, key: str) -> str:
    """What the control of an earlier call showed, as its own evidence says."""
    said = {e.control for e in case.evidence if e.call == key}
    return next((state for state in ("nothing", "found") if state in said), "none")


def verdict(case: CaseFile, suspect: str) -> Verdict:
    """What the admitted evidence allows to be held of one suspect.

    `convicted` needs grade toggled or better, or a proof by computation that rests on nothing open; `exonerated` needs
    every hypothesis against the suspect refuted, with no assumption left open; anything that speaks for a hypothesis
    makes it `suspected`.
    """
    findings = [_finding(case, h) for h in case.of_suspect(suspect)]
    states = {state for state, _, _ in findings}
    reasons = [reason for _, reason, _ in findings]
    cited = [ident for _, _, ids in findings for ident in ids]
    if not findings:
        reasons = ["this playbook isn't for this patch: nothing was asked about it"]
    if "proved" in states:
        return Verdict(suspect=suspect, verdict="convicted", reasons=reasons, evidence=cited)
    if "supported" in states:
        return Verdict(suspect=suspect, verdict="suspected", reasons=reasons, evidence=cited)
    if states == {"refuted"}:
        return Verdict(suspect=suspect, verdict="exonerated", reasons=reasons, evidence=cited)
    return Verdict(suspect=suspect, verdict="inconclusive", reasons=reasons, evidence=cited)


def _finding(case: CaseFile, hypothesis: HypothesisOpened) -> tuple[str, str, list[str]]:
    """(proved | supported | refuted | open, the reason, ids of the evidence it rests on) of one hypothesis."""
    counted = [e for e in case.about(hypothesis.id) if e.counts]
    for_it = [e for e in counted if e.bearing is Bearing.SUPPORTS]
    against = [e for e in counted if e.bearing is Bearing.REFUTES]
    claim = hypothesis.claim.rstrip(".")
    if for_it and against:
        ids = [e.id for e in for_it + against]
        return "supported", f"{claim}: the evidence contradicts itself ({', '.join(ids)})", ids
    unsettled = _unsettled(case, hypothesis)
    if for_it:
        return _supported(claim, for_it, unsettled)
    if against and not unsettled:
        return "refuted", f'refuted: "{claim}" ({_cite(against)})', [e.id for e in against]
    if against:
        return "open", f"{claim}: refuted only if {'; '.join(unsettled)}", [e.id for e in against]
    return "open", f"not decided: {claim}. {_why_open(case, hypothesis)}".strip(), [e.id for e in counted]


def _why_open(case: CaseFile, hypothesis: HypothesisOpened) -> str:
    """Why no evidence decides a hypothesis: questions not asked or not answered, else the playbook's own word."""
    tools = {c.call.key: c.call.tool for c in case.chosen if c.call}
    results = {e.call: case.results.get(e.call) for e in case.about(hypothesis.id) if e.call}
    unanswered = [(key, r.status) for key, r in results.items() if r and r.status in FAILED]
    failed = [f"{tools.get(key, 'a call')} gave no answer ({status})" for key, status in unanswered]
    last = case.last_step(hypothesis.suspect)
    if last is None or last.next != END:
        asked = f"Only {len(case.asked(hypothesis.suspect))} of its questions were asked"
        return "; ".join([asked if last else "None of its questions was asked", *failed]) + "."
    return "; ".join(failed) + "." if failed else hypothesis.undecided


def _supported(claim: str, for_it: list[Evidence], unsettled: list[str]) -> tuple[str, str, list[str]]:
    """A toggled change speaks for itself; a computation proves as much as what it assumes."""
    toggled = [e for e in for_it if e.grade.rank >= Grade.TOGGLED.rank]
    computed = [e for e in for_it if e.proves and e.grade is not Grade.READ]
    if proof := toggled or (computed if not unsettled else []):
        return "proved", f"proved: {claim} ({_cite(proof)})", [e.id for e in for_it]
    if computed:
        return (
            "supported",
            f"{claim}: proved ({_cite(computed)}) only if {'; '.join(unsettled)}",
            [e.id for e in for_it],
        )
    best = max((e.grade for e in for_it), key=lambda grade: grade.rank)
    text = f"{claim}: speaks for it, but no more than {best} ({_cite(for_it)}); a conviction needs the change toggled"
    return "supported", text, [e.id for e in for_it]


def _cite(evidence: list[Evidence]) -> str:
    return ", ".join(f"{e.id} {e.grade}" for e in evidence)


def _unsettled(case: CaseFile, hypothesis: HypothesisOpened) -> list[str]:
    """What a refutation of the hypothesis still rests on."""
    states = [(a, case.assumption(hypothesis.id, a.id)) for a in hypothesis.assumptions]
    words = {State.OPEN: "which is open", State.FALSIFIED: "which is false"}
    return [f"{a.text.rstrip('.')} ({words[state]})" for a, state in states if state in words]


def exit_code(case: CaseFile, verdicts: list[Verdict]) -> ExitCode:
    """The exit status of a case that has come to its end."""
    examined = [v.verdict for v in verdicts if v.suspect in case.examined]
    troubles = {t.what for t in case.troubles}
    failed = any(r.status in FAILED for r in case.results.values())
    if {"sandbox", "suspects"} & troubles or case.originals_changed:
        return ExitCode.FAILED
    if "convicted" in examined:
        return ExitCode.GUILTY
    if "budget" in troubles:
        return ExitCode.BUDGET
    if examined and set(examined) == {"exonerated"}:
        return ExitCode.CLEAN
    return ExitCode.FAILED if failed else ExitCode.INCONCLUSIVE
