"""Killed at random moments and resumed, a case ends as if nothing had happened, and no call is made twice."""

import contextlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sleuth.agent.case import CaseFile
from sleuth.agent.events import CallFinished, CallStarted
from sleuth.agent.exitcodes import ExitCode
from sleuth.agent.log import read_log
from sleuth.agent.store import CaseFolder, cases
from sleuth.sandbox.clone import tree_digest

from ..support.books import book, rule, step
from ..support.investigation import Scene, case_in, events_of, kinds
from ..support.investigation import verdicts_and_evidence as outcome

KILLS = 20
SEED = 20260102

LAUNCHER = """
import os, sys
from sleuth.agent.cli.main import main
import sleuth.agent.cli.run, sleuth.agent.cli.resume, sleuth.agent.checkpoint, sleuth.agent.graph
import sleuth.sandbox.bubblewrap, sleuth.tools.grep, sleuth.tools.read_file
for line in sys.stdin:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.setsid()
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(0, 1)
        os._exit(int(main(eval(line))))
    os.close(write)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    os.close(read)
"""
"""Forks a `sleuth` for each command line on stdin; tells its process id, then its exit status. It saves each of them
the imports, so that a kill falls into the work, not into the start of Python."""


class Launcher:
    """Starts `sleuth` processes, each in a session of its own."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.said = b""

    def start(self, *words: str) -> int:
        """Start one; its process id."""
        assert self.process.stdin
        self.process.stdin.write(repr(words).encode() + b"\n")
        self.process.stdin.flush()
        self.status: int | None = None
        return int(self._line(60))

    def wait(self, seconds: float) -> int | None:
        """The exit status, -9 for one that was killed; None while it still runs after `seconds`."""
        if self.status is None and (line := self._line(seconds)):
            self.status = int(line)
        return self.status

    def ended(self) -> int:
        """The exit status, once there is one."""
        status = self.wait(60)
        assert status is not None
        return status

    def _line(self, seconds: float) -> str:
        """The next line it says; empty when none comes in time."""
        assert self.process.stdout
        file = self.process.stdout.fileno()
        while b"\n" not in self.said:
            if not select.select([file], [], [], seconds)[0]:
                return ""
            self.said += os.read(file, 4096)
        line, _, self.said = self.said.partition(b"\n")
        return line.decode()

    def run(self, *words: str) -> int:
        """Start one and wait for its end."""
        self.start(*words)
        return self.ended()

    def close(self) -> None:
        self.process.communicate(timeout=60)


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    launcher = Launcher()
    yield launcher
    launcher.close()


def scene_in(folder: Path) -> Scene:
    """Eight questions with controls, an empty search, a failing call, and a call that is asked for twice."""
    control = {"tool": "grep", "args": {"pattern": "def "}, "must": "data.total > 0"}
    read = {"path": "pkg/router.py"}
    steps = [
        step("q1", rule("data.total > 0"), args={"pattern": "import", "paths": ["pkg/model.py"]}),
        step(
            "q2",
            rule("data.total > 0", "supports"),
            rule(bearing="refutes"),
            args={"pattern": "x \\* x"},
            control=control,
        ),
        step("q3", rule(note="${data.total_lines} lines"), tool="read_file", args=read),
        step("q4", rule(bearing="redirects"), args={"pattern": "SCALE", "paths": ["pkg/model.py"]}),
        step("q5", rule(bearing="refutes"), tool="read_file", args={"path": "pkg/none.py"}),
        step("q6", rule("steps.q3.data.size > 0", note="${steps.q3.data.sha256}"), tool="read_file", args=read),
        step("q7", rule("data.total == 2", assume={"a": "verified"}), rule(), args={"pattern": "def "}),
        step("q8", rule("status == 'no_data'", "refutes"), args={"pattern": "y \\* y", "paths": ["pkg/router.py"]}),
    ]
    return Scene(folder, playbook=book(*steps))


def started_again(case: CaseFolder) -> list[str]:
    """Keys of calls that were started although their result was already recorded, or recorded twice."""
    wrong, finished = [], set[str]()
    for event in events_of(case):
        if isinstance(event, CallStarted) and event.call.key in finished:
            wrong.append(f"started: {event.call}")
        if isinstance(event, CallFinished):
            if event.key in finished:
                wrong.append(f"finished twice: {event.key}")
            finished.add(event.key)
    return wrong


def alive_below(folder: Path) -> list[str]:
    """Processes that have to do with a test's folder, by their command line or their mounts."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            seen = (process / "cmdline").read_bytes() + (process / "mountinfo").read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in seen:
            found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def left_behind(folder: Path) -> list[str]:
    """Processes that don't go away; the kernel takes a moment for those of a killed sandbox."""
    deadline = time.monotonic() + 10
    while (found := alive_below(folder)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def reference(launcher: Launcher, folder: Path) -> tuple[CaseFile, float]:
    """The same case without a kill, and how long it takes in seconds, the first time left out."""
    seconds = 60.0
    for name in ("first", "second"):
        scene = scene_in(folder / name)
        start = time.monotonic()
        assert launcher.run(*scene.words(), "-q") == ExitCode.CLEAN
        seconds = min(seconds, time.monotonic() - start)
    return case_in(scene.only()), seconds


def test_twenty_random_kills(launcher: Launcher, tmp_path: Path) -> None:
    whole, seconds = reference(launcher, tmp_path / "whole")
    length = len(kinds(scene_in(tmp_path / "whole" / "second").only()))
    chance = random.Random(SEED)
    kills, moments = 0, set[str]()
    for number in range(KILLS * 2):
        scene = scene_in(tmp_path / f"case{number}")
        before = tree_digest(scene.tree)
        plan = [moment(chance, seconds, length, n) for n in range(4)]
        kills += kill_and_resume(launcher, scene, plan, moments)
        check(scene, whole, before)
        if kills >= KILLS:
            break
    assert kills >= KILLS
    assert len(moments) >= 3, f"the kills fell only after {moments}"


Moment = tuple[float, int]
"""When to kill: that many seconds after the start, or after the log has grown by that many lines (0 = at once)."""


def moment(chance: random.Random, seconds: float, length: int, number: int) -> Moment:
    """By turns a moment of the clock, which mostly hits a call, and one right behind an event, which hits the rest:
    the moment between two events, or the checkpoint between two steps.
    """
    if number % 2:
        return chance.uniform(0, seconds / 2), 0
    return chance.uniform(0, 0.004), chance.randint(1, length // 2)


def kill_and_resume(launcher: Launcher, scene: Scene, plan: list[Moment], moments: set[str]) -> int:
    """Run a case to its end through the planned kills, of the run and of its resumptions; how many there were."""
    words, kills = [*scene.words(), "-q"], 0
    for delay, lines in plan:
        before = log_lines(scene)
        process = launcher.start(*words)
        while lines and log_lines(scene) < before + lines and launcher.wait(0.0005) is None:
            pass
        time.sleep(delay)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        killed = launcher.ended()
        kills += killed == -signal.SIGKILL
        if killed == ExitCode.CLEAN:
            return kills
        assert killed == -signal.SIGKILL
        if found := cases(scene.home):
            moments.add(last_kind(found[-1]))
            words = ["resume", found[-1].id, "--home", str(scene.home), "-q"]
    assert launcher.run(*words) == ExitCode.CLEAN
    return kills


def log_lines(scene: Scene) -> int:
    """Lines in the log of the scene's newest case."""
    found = cases(scene.home)
    return found[-1].events.read_bytes().count(b"\n") if found else 0


def last_kind(case: CaseFolder) -> str:
    """The kind of the last whole event that a kill left."""
    return ([record.event.kind for record in read_log(case.events)] or ["nothing"])[-1]


def check(scene: Scene, whole: CaseFile, before: str) -> None:
    """What must hold however often the case was killed."""
    folder = cases(scene.home)[-1]
    case = case_in(folder)
    assert case.closed is not None
    assert json.dumps(case.closed.model_dump(mode="json")) == json.dumps(
        whole.closed and whole.closed.model_dump(mode="json")
    )
    assert outcome(case) == outcome(whole)
    assert {k: (r.status, r.text, r.data) for k, r in case.results.items()} == {
        k: (r.status, r.text, r.data) for k, r in whole.results.items()
    }
    assert started_again(folder) == []
    assert set(case.started) == set(case.results) == set(whole.results)
    assert tree_digest(scene.tree) == before
    kept = {result.data for result in case.results.values()} - {""}
    assert {p.name for p in folder.artefacts.iterdir()} == kept
    assert not folder.scratch.exists()
    assert not folder.layers.exists()
    assert left_behind(scene.folder) == []


def test_the_checks_can_fail(launcher: Launcher, tmp_path: Path) -> None:
    scene = scene_in(tmp_path / "case")
    assert launcher.run(*scene.words(), "-q") == ExitCode.CLEAN
    folder = scene.only()
    whole = case_in(folder)
    check(scene, whole, tree_digest(scene.tree))
    (folder.artefacts / ".half").touch()
    with pytest.raises(AssertionError):
        check(scene, whole, tree_digest(scene.tree))
    sleeper = subprocess.Popen(["sh", "-c", "sleep 60; :", str(scene.folder)])
    try:
        assert alive_below(scene.folder)
    finally:
        sleeper.kill()
        sleeper.wait()
