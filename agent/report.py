"""The case as plain text, for a terminal: suspects, hypotheses, questions, evidence with its commands, verdicts."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Iterator

from ..tools.call import ToolResult
from .case import CaseFile
from .events import Call, Evidence, HypothesisOpened, StepWeighed, Verdict
from .exitcodes import ExitCode
from .plain import visible

WIDTH = 100
RESULT_LINES = 14
"""Lines of a result that are shown; the rest is in its artefacts."""


def report(case: CaseFile) -> str:
    """The whole case, at most 100 columns wide except for paths, commands and source lines."""
    parts = [_head(case), _suspects(case)]
    for suspect in case.examined:
        parts += [_hypotheses(case, suspect), _questions(case, suspect)]
    parts += [_verdicts(case), _foot(case)]
    return visible("\n\n".join("\n".join(part) for part in map(list, parts) if part) + "\n")


def _head(case: CaseFile) -> Iterator[str]:
    opened = case.opened
    if opened is None:
        yield "a case that never began"
        return
    yield f"CASE {opened.case}"
    yield f"  playbook    {opened.playbook}"
    yield from (f"      {name} = {_param(value)}" for name, value in opened.params.items())
    yield f"  deployment  {opened.deployment}   ({opened.description})"
    if opened.symptom:
        yield from _wrap(opened.symptom, "  symptom     ")
    if case.closed:
        yield from _wrap(case.closed.summary, "  outcome     ")
    yield f"  clone       {opened.clone[:16]}   sleuth {opened.sleuth}"
    for note in opened.notes:
        yield from _wrap(note, "  note        ")


def _param(value: object) -> str:
    """A parameter's value as `--param` takes it."""
    return shlex.quote(",".join(map(str, value)) if isinstance(value, list) else str(value))


def _suspects(case: CaseFile) -> Iterator[str]:
    yield f"SUSPECTS ({case.order})"
    for suspect in case.suspects:
        note = "" if suspect.id in case.examined else "   (this playbook isn't for it)"
        yield from _wrap(f"{suspect.title}{note}", f"  {suspect.id}  ")
        for file in suspect.files[:6]:
            yield f"      {file}"
        if len(suspect.files) > 6:
            yield f"      … and {len(suspect.files) - 6} more files"


def _hypotheses(case: CaseFile, suspect: str) -> Iterator[str]:
    yield f"HYPOTHESES AGAINST {suspect}"
    for hypothesis in case.of_suspect(suspect):
        yield from _wrap(hypothesis.claim, f"  {_local(hypothesis.id)}: ")
        yield from _wrap(hypothesis.refuted_by, "      refuted by  ")
        yield from _assumptions(case, hypothesis)


def _assumptions(case: CaseFile, hypothesis: HypothesisOpened) -> Iterator[str]:
    for assumption in hypothesis.assumptions:
        state = case.assumption(hypothesis.id, assumption.id)
        yield from _wrap(assumption.text, f"      assumes {assumption.id} [{state}]: ")


def _questions(case: CaseFile, suspect: str) -> Iterator[str]:
    yield f"QUESTIONS ABOUT {suspect}"
    if case.opened:
        yield f"  (to make a call again: add -d {shlex.quote(case.opened.description)})"
    answers = {w.step: w for w in case.weighed if w.suspect == suspect}
    shown: set[str] = set()
    for chosen in (c for c in case.chosen if c.suspect == suspect):
        yield ""
        yield from _wrap(chosen.question, f"  {chosen.step}  ")
        for call in (chosen.call, chosen.control):
            if call is not None:
                label = "control" if call is chosen.control else ""
                yield from _call(call, case.results.get(call.key), label, again=call.key in shown)
                shown.add(call.key)
        if chosen.problem:
            yield from _wrap(chosen.problem, "      ! ")
        yield from _evidence(answers.get(chosen.step))


def _call(call: Call, result: ToolResult | None, label: str, *, again: bool) -> Iterator[str]:
    yield f"    $ sleuth tool {call.tool} {shlex.quote(json.dumps(call.args))}{'   # ' + label if label else ''}"
    if result is None:
        yield "      (no result recorded)"
        return
    if again:
        yield "      = the same call as above, made once"
        return
    for command in result.commands:
        if command[0] == "rg":
            yield f"      ran: {shlex.join(command)}"
    lines = visible(result.text).split("\n")
    yield from (f"      | {line}" for line in lines[:RESULT_LINES])
    if len(lines) > RESULT_LINES:
        yield f"      | … {len(lines) - RESULT_LINES} more lines"
    kept = ", ".join(f"{a.name} {a.digest[:12]}" for a in result.artefacts)
    facts = [str(result.status), f"{result.seconds:.2f} s", *([f"kept: {kept}"] if kept else [])]
    yield f"      = {'; '.join(facts)}"
    if result.truncated:
        yield from _wrap(result.truncated, "      = shortened: ")


def _evidence(weighed: StepWeighed | None) -> Iterator[str]:
    if weighed is None:
        yield "      (not weighed)"
        return
    groups: dict[tuple[str, str, str], list[Evidence]] = {}
    for item in weighed.evidence:
        groups.setdefault((item.bearing, item.note, item.why_not), []).append(item)
    for (bearing, note, why_not), items in groups.items():
        about = ", ".join(f"{e.id} on {_local(e.hypothesis)}" for e in items)
        yield from _wrap(f"{bearing.upper()} ({items[0].grade}; {about}) {note.strip()}", "    → ")
        settled = {ident: state for e in items for ident, state in e.assume.items()}
        if settled and not why_not:
            yield f"      assumptions: {', '.join(f'{ident} {state}' for ident, state in settled.items())}"
        if why_not:
            yield from _wrap(f"the gate doesn't count it: {why_not}", "      ")


def _verdicts(case: CaseFile) -> Iterator[str]:
    yield "VERDICT"
    if not case.verdicts:
        yield "  none yet"
    for verdict in case.verdicts:
        yield from _verdict(verdict, examined=verdict.suspect in case.examined)


def _verdict(verdict: Verdict, *, examined: bool) -> Iterator[str]:
    yield f"  {verdict.suspect}: {verdict.verdict.upper() if examined else 'NOT EXAMINED'}"
    for reason in verdict.reasons:
        yield from _wrap(reason, "      - ")


def _foot(case: CaseFile) -> Iterator[str]:
    for trouble in case.troubles:
        yield from _wrap(f"{trouble.what}: {trouble.text}", "! ")
    if case.originals_checked:
        changed = ", ".join(case.originals_changed)
        yield f"original source: CHANGED DURING THE CASE: {changed}" if changed else "original source: unchanged"
    if case.closed is None:
        yield "open: it can be resumed"
    else:
        code = ExitCode(case.closed.exit_code)
        yield f"exit {int(code)}: {code.name.lower()}"


def _local(hypothesis: str) -> str:
    return hypothesis.partition("@")[0]


def _wrap(text: str, lead: str) -> list[str]:
    """`text` folded at WIDTH behind `lead`, later lines indented under its start, or less where that is far right."""
    indent = " " * min(len(lead), 16)
    folder = textwrap.TextWrapper(
        WIDTH, initial_indent=lead, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    first, *rest = text.splitlines() or [""]
    lines = folder.wrap(first) or [lead.rstrip()]
    folder.initial_indent = indent
    return lines + [line for more in rest for line in folder.wrap(more) or [""]]
