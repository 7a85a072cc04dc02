"""One made-up case that holds everything a report or an export has to deal with, the same bytes every time."""

from pathlib import Path

import pytest

from sleuth.agent import gate
from sleuth.agent import log as log_module
from sleuth.agent.case import CaseFile
from sleuth.agent.events import AnyEvent, CaseResumed, OriginalsChecked, Trouble
from sleuth.agent.log import EventLog
from sleuth.agent.store import CaseFolder
from sleuth.agent.verdicts import close
from sleuth.playbooks.suspect import Suspect

from .events import answered, asked, call, case_of, evidence, hypothesis, opened, suspects, weighed

NASTY = "\n".join(
    [
        "moe.py:7: x = `a` | **b** <script>alert(1)</script> [link](http://evil.example) &amp; $x^2$",
        "``` not the end of the block",
        "~~~~ nor this",
        "\x1b[31mred\x1b[0m, \u202egnikcatta\u202c, bell \x07, torn \udcff, return \rhidden",
        "# no heading",
        "- no list",
        "tab\there",
    ]
)
LONG = "\n".join(f"line {n}" for n in range(1, 61))


def events() -> list[AnyEvent]:
    """The case's events, up to its verdicts."""
    entry = call("1" * 64, pattern="routed_scaling_factor", paths=["deepseek_v4.py"])
    home = call("2" * 64, pattern="x = `a` | b\n```", paths=["a`b|c.py"])
    control = call("3" * 64, "read_file", path="moe.py")
    failed = call("4" * 64, pattern="(", paths=[])
    listed = suspects("scale", "other|patch", examined=["scale"])
    odd = Suspect(id="other|patch", title="`x` | <b>", files=[f"dir/f`{n}|.py" for n in range(8)])
    listed = listed.model_copy(update={"suspects": [listed.suspects[0], odd]})
    start: list[AnyEvent] = [
        opened(
            symptom="Long prompts lose facts that were planted early: " + "again and " * 12 + "again.",
            params={"factor": "routed_scaling_factor", "paths": ["a b", "c"], "limit": 3},
            notes=["patch scale.patch: hunk 1 found +2 lines from where it says"],
            deployment="fork <b>|`x`",
            max_calls=9,
        ),
        listed,
        hypothesis("scale", "twice", ["live", "intent"], undecided="Count it with a probe."),
        hypothesis("scale", "never", claim="It is never applied; see https://evil.example or mail a@b.example."),
        asked("q1", entry, "scale"),
        *answered(entry, "no_data", "no line matches", commands=[["rg", "--json", "-e", "routed scaling", "./"]]),
    ]
    first = evidence("e1", "twice@scale", entry.key, bearing="redirects", control="found", note="It lives elsewhere.")
    second = evidence(
        "e2",
        "twice@scale",
        home.key,
        bearing="refutes",
        grade="computed",
        note="Once `only`.\n",
        assume={"live": "verified"},
    )
    third = evidence("e3", "never@scale", failed.key, note="not counted", bearing="refutes")
    case = case_of(start)
    rest: list[AnyEvent] = [
        weighed("q1", first, suspect="scale", onward="q2"),
        Trouble(what="interrupted", text="stopped by the user"),
        CaseResumed(),
        asked("q2", home, "scale", control),
        *answered(home, "ok", NASTY, truncated="2 of 9 hits are listed", data="d" * 64),
        *answered(control, "ok", LONG, artefacts=[{"name": "text.txt", "digest": "e" * 64, "size": 12}]),
        weighed("q2", second, suspect="scale", onward="q3"),
        asked("q3", None, "scale", problem="can't be asked: 'data.x' is nothing here"),
        weighed("q3", evidence("e4", "twice@scale", "", bearing="neutral"), suspect="scale", onward="q4"),
        asked("q4", failed, "scale"),
        *answered(failed, "error", "grep: bad pattern '('"),
        weighed("q4", third, suspect="scale", onward="q5"),
        asked("q5", call("5" * 64, pattern="y"), "scale"),
        Trouble(what="budget", text="the budget of 9 tool calls is spent"),
        OriginalsChecked(changed=["/trees/st`ock"]),
    ]
    return [*start, *[_admitted(event, case) for event in rest]]


def _admitted(event: AnyEvent, case: CaseFile) -> AnyEvent:
    """The event as the graph would have written it: evidence comes with the gate's word."""
    if event.kind == "step_weighed":
        event = event.model_copy(update={"evidence": [gate.admit(e, case) for e in event.evidence]})
    case.add(event)
    return event


def golden_case(home: Path, patch: pytest.MonkeyPatch) -> CaseFolder:
    """The case on disk, closed, with one artefact; its times count up from 1,700,000,000 s."""
    folder = CaseFolder(home / "cases" / "20260102-030405-p-abcd")
    for path in (folder.artefacts, folder.inputs):
        path.mkdir(parents=True)
    (folder.artefacts / ("e" * 64)).write_bytes(b"kept content")
    (folder.artefacts / ".part").write_bytes(b"half a file")
    log = EventLog(folder.events)
    for n, event in enumerate(events()):
        patch.setattr(log_module.time, "time", lambda n=n: 1_700_000_000 + n / 8)
        log.append(event)
    log.append(close(case_of(record.event for record in log.records)))
    log.close()
    return folder
