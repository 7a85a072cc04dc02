"""A Markdown report that reads like an incident note."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from ..case import CaseFile, fold
from ..events import Call, StepChosen
from ..exitcodes import ExitCode
from ..log import read_log
from ..plain import cell, code, fenced, prose, visible
from ..store import CaseFolder

RESULT_LINES = 40


def export(folder: CaseFolder) -> bytes:
    """Symptom, verdicts, suspects, hypotheses, then every question with its command, result and bearing."""
    case = fold(read_log(folder.events))
    return ("\n".join(_document(case)) + "\n").encode()


def _document(case: CaseFile) -> Iterator[str]:
    opened = case.opened
    if opened is None:
        yield "# A case that never began"
        return
    yield f"# {prose(opened.playbook)} on {prose(opened.deployment)}\n"
    if opened.symptom:
        yield f"**Symptom.** {prose(opened.symptom)}\n"
    yield f"Case {code(opened.case)}, sleuth {prose(opened.sleuth)}, clone {code(opened.clone)}."
    yield from (f"- {prose(note)}" for note in opened.notes)
    yield from _verdicts(case)
    yield from _suspects(case)
    for suspect in case.examined:
        yield from _hypotheses(case, suspect)
        yield f"\n## Questions about {prose(suspect)}"
        for chosen in (c for c in case.chosen if c.suspect == suspect):
            yield from _question(case, chosen)


def _verdicts(case: CaseFile) -> Iterator[str]:
    yield "\n## Verdict\n"
    for verdict in case.verdicts:
        yield f"- **{prose(verdict.suspect)}: {verdict.verdict}**"
        yield from (f"  - {prose(reason)}" for reason in verdict.reasons)
    if not case.verdicts:
        yield "None yet: the case is open."
    for trouble in case.troubles:
        yield f"\n> {trouble.what}: {prose(trouble.text)}"
    if case.originals_checked:
        changed = ", ".join(map(code, case.originals_changed))
        yield f"\nOriginal source: {'**changed during the case**: ' + changed if changed else 'unchanged'}."
    if case.closed:
        yield f"Exit status {case.closed.exit_code} ({ExitCode(case.closed.exit_code).name.lower()})."


def _suspects(case: CaseFile) -> Iterator[str]:
    yield f"\n## Suspects ({case.order})\n"
    yield "| suspect | title | files | examined |\n|---|---|---|---|"
    for suspect in case.suspects:
        files = "<br>".join(code(f) for f in suspect.files[:6])
        examined = "yes" if suspect.id in case.examined else "no"
        yield f"| {' | '.join(map(cell, (prose(suspect.id), prose(suspect.title), files, examined)))} |"


def _hypotheses(case: CaseFile, suspect: str) -> Iterator[str]:
    yield f"\n## Hypotheses against {prose(suspect)}\n"
    for hypothesis in case.of_suspect(suspect):
        yield f"- **{prose(hypothesis.id)}**: {prose(hypothesis.claim)}"
        yield f"  - Refuted by: {prose(hypothesis.refuted_by)}"
        for assumption in hypothesis.assumptions:
            yield f"  - Assumes ({case.assumption(hypothesis.id, assumption.id)}): {prose(assumption.text)}"


def _question(case: CaseFile, chosen: StepChosen) -> Iterator[str]:
    yield f"\n### {chosen.step}: {prose(chosen.question)}\n"
    for call in (chosen.call, chosen.control):
        if call is not None:
            yield from _call(case, call, "Control: " if call is chosen.control else "")
    if chosen.problem:
        yield f"{prose(chosen.problem)}\n"
    for weighed in (w for w in case.weighed if (w.suspect, w.step) == (chosen.suspect, chosen.step)):
        for item in weighed.evidence:
            refused = "" if item.counts else f" *(not counted: {prose(item.why_not)})*"
            where = f"{item.id} on {prose(item.hypothesis)}"
            yield f"- **{item.bearing}** ({item.grade}, {where}): {prose(item.note.strip())}{refused}"


def _call(case: CaseFile, call: Call, label: str) -> Iterator[str]:
    yield f"{label}{code(f'sleuth tool {call.tool} {shlex.quote(json.dumps(call.args))}')}\n"
    result = case.results.get(call.key)
    if result is None:
        yield "No result recorded.\n"
        return
    lines = visible(result.text).split("\n")
    if len(lines) > RESULT_LINES:
        lines = [*lines[:RESULT_LINES], f"… {len(lines) - RESULT_LINES} more lines"]
    ran = [f"$ {shlex.join(command)}" for command in result.commands]
    yield from (*fenced([*ran, *lines]), "")
    kept = ", ".join(f"{a.name} `{a.digest}`" for a in result.artefacts)
    yield f"Status {result.status}, {result.seconds:.2f} s{'; kept: ' + kept if kept else ''}.\n"
    if result.truncated:
        yield f"Shortened: {prose(result.truncated)}.\n"
