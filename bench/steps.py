"""A long investigation with its tools stubbed out: what is left is the graph, the policy, the log, the checkpoint."""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from timing import Row

from sleuth.agent.approval import AllowAll
from sleuth.agent.budget import Budget
from sleuth.agent.case import CaseFile, fold
from sleuth.agent.checkpoint import checkpoints
from sleuth.agent.events import AnyEvent, CaseOpened, SuspectsListed
from sleuth.agent.graph import Nodes, build, run
from sleuth.agent.log import EventLog
from sleuth.agent.playbook_policy import PlaybookPolicy
from sleuth.agent.store import CaseFolder
from sleuth.agent.suspects import MakeCall
from sleuth.agent.verdicts import close
from sleuth.playbooks.schema import Playbook
from sleuth.playbooks.suspect import Suspect
from sleuth.tools.call import Artefact, Caller, ToolResult

QUESTIONS = 200
NODES = 4
"""Nodes that a question goes through: choose, approve, act, weigh."""
DATA = {"hits": [{"file": "a.py", "line": n, "text": "x" * 40} for n in range(10)], "total": 10, "files": []}


class ScriptedCaller:
    """Answers every call at once with the same ten hits."""

    def __init__(self, folder: CaseFolder) -> None:
        content = json.dumps({**DATA, "control": None, "problems": []}).encode()
        self.digest = hashlib.sha256(content).hexdigest()
        (folder.artefacts / self.digest).write_bytes(content)

    def call(self, tool: object, args: dict[str, Any]) -> ToolResult:
        kept = [Artefact(name="data.json", digest=self.digest, size=1)]
        return ToolResult(status="ok", text="a.py:1: x\n" * 50, artefacts=kept, data=self.digest)


class Whole:
    """The ends of a case about no source at all."""

    def __init__(self, case: CaseFile) -> None:
        self.case = case
        self.emit: Any = None

    def suspects(self, call: MakeCall) -> SuspectsListed:
        return SuspectsListed(suspects=[Suspect(id="s")], examined=["s"], order="-")

    def finish(self) -> None:
        self.emit(close(self.case))


def playbook() -> Playbook:
    steps = [
        {
            "id": f"s{n}",
            "question": f"Question {n}?",
            "tool": "grep",
            "args": {"pattern": f"x{n}"},
            "outcomes": [
                {"when": "data.total > 100 or steps.s0.data.total > 100", "bearing": "supports", "note": "many"},
                {"bearing": "neutral", "note": "${data.total} in ${data.hits[0].file}"},
            ],
        }
        for n in range(QUESTIONS)
    ]
    head = {"playbook": 1, "name": "p", "title": "-", "about": "-"}
    hypotheses = [{"id": "h", "claim": "-", "refuted_by": "-"}]
    return Playbook.model_validate({**head, "hypotheses": hypotheses, "steps": steps})


def opened() -> CaseOpened:
    words = dict.fromkeys("case sleuth deployment symptom description description_digest playbook".split(), "-")
    return CaseOpened(**words, overrides={}, playbook_digest="-", params={}, clone="c", originals={}, notes=[])


def measure() -> Iterator[Row]:
    """Milliseconds and checkpoint bytes of one node of the graph."""
    with tempfile.TemporaryDirectory() as base:
        folder = CaseFolder.create(Path(base), "p")
        log = EventLog(folder.events)
        case = fold(log.records)

        def emit(event: AnyEvent) -> None:
            case.add(log.append(event).event)

        emit(opened())
        ends = Whole(case)
        ends.emit = emit
        policy = PlaybookPolicy(playbook(), {}, "c", folder.read)
        nodes = Nodes(case, emit, policy, cast(Caller, ScriptedCaller(folder)), AllowAll(), Budget(), ends)
        with checkpoints(folder.checkpoint, folder.id) as saver:
            start = time.perf_counter()
            run(build(nodes, saver), folder.id)
            seconds = time.perf_counter() - start
            size = sum(path.stat().st_size for path in folder.path.glob("checkpoint.sqlite*") if "shm" not in path.name)
        log.close()
        assert len(case.weighed) == QUESTIONS
        events = folder.events.stat().st_size
    steps = QUESTIONS * NODES + 3
    detail = f"{seconds:.2f} s for {QUESTIONS} questions of {NODES} steps, {events / QUESTIONS:,.0f} B of log each"
    yield Row("graph step: node, events, checkpoint", seconds / steps * 1000, "ms", 8, detail)
    detail = f"{size:,} B on disk after {steps} steps, write-ahead log included"
    yield Row("checkpoint, per graph step", size / steps / 1000, "kB", 5, detail)
