"""The last word of a case."""

from __future__ import annotations

from . import gate
from .case import CaseFile
from .events import CaseClosed


def close(case: CaseFile) -> CaseClosed:
    """The closing event: verdicts, exit code, and one sentence."""
    verdicts = [gate.verdict(case, s.id) for s in case.suspects]
    code = gate.exit_code(case, verdicts)
    groups: dict[str, list[str]] = {}
    for item in verdicts:
        groups.setdefault(item.verdict if item.suspect in case.examined else "not examined", []).append(item.suspect)
    said = [f"{kind}: {', '.join(names)}" for kind, names in groups.items()] or ["no suspects"]
    said += [t.text for t in case.troubles]
    return CaseClosed(verdicts=verdicts, exit_code=code, summary="; ".join(said))
