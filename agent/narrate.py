"""Progress for whoever waits: one line on stderr an event that matters."""

from __future__ import annotations

import contextlib
import sys
from typing import TextIO

from .events import (
    CallFinished,
    CallStarted,
    CaseClosed,
    CaseOpened,
    CaseResumed,
    HypothesisOpened,
    OriginalsChecked,
    StepChosen,
    StepWeighed,
    SuspectsListed,
    Trouble,
)
from .log import Record
from .plain import visible


class Narrator:
    """A listener that writes to a text stream."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """`stream` is stderr by default."""
        self.stream = stream or sys.stderr
        self.tools: dict[str, str] = {}

    def __call__(self, record: Record) -> None:
        """Tell one event."""
        line = self._line(record)
        if line:
            with contextlib.suppress(OSError, ValueError):  # progress that can't be told stops nothing
                self.stream.write(visible(line) + "\n")
                self.stream.flush()

    def _line(self, record: Record) -> str:  # noqa: C901 - one flat case an event
        match record.event:
            case CaseOpened(case=case, playbook=playbook, deployment=deployment):
                return f"case {case}: {playbook} on {deployment}"
            case CaseResumed():
                return "resumed"
            case SuspectsListed(suspects=suspects, examined=examined):
                return f"{len(suspects)} suspects, {len(examined)} examined"
            case HypothesisOpened(id=ident, claim=claim):
                return f"hypothesis {ident}: {claim}"
            case StepChosen(suspect=suspect, step=step, question=question):
                return f"{suspect} [{step}] {question}"
            case CallStarted(call=call, again=again):
                self.tools[call.key] = call.tool
                return f"    {call.tool} …{' (again: the last attempt left no result)' if again else ''}"
            case CallFinished(key=key, result=result):
                return f"    {self.tools.get(key, 'call')}: {result.status} in {result.seconds:.2f} s"
            case StepWeighed(evidence=evidence, next=onward):
                bearings = ", ".join(
                    dict.fromkeys(f"{e.bearing}{'' if e.counts else ' (not counted)'}" for e in evidence)
                )
                return f"    → {bearings}; next: {onward}"
            case OriginalsChecked(changed=changed):
                return f"originals CHANGED: {', '.join(changed)}" if changed else "originals unchanged"
            case Trouble(what=what, text=text):
                return f"{what}: {text}"
            case CaseClosed(summary=summary):
                return summary
