"""A run that is stopped, killed at its root, or finds its source changed: how it ends, and how it goes on."""

import contextlib
import os
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sleuth.agent.events import CallFinished, CallStarted, StepChosen, StepWeighed, Trouble
from sleuth.agent.exitcodes import ExitCode
from sleuth.agent.session import Options
from sleuth.agent.store import CaseError, CaseFolder

from ..support.investigation import (
    PATCH,
    Scene,
    case_in,
    events_of,
    exit_code,
    held,
    interrupt,
    lay,
    listen,
    started,
)
from ..support.investigation import verdicts_and_evidence as outcome


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_spent_budget_ends_the_run_and_resuming_goes_on(scene: Scene) -> None:
    reference = case_in(scene.run())
    shutil.rmtree(scene.home)
    folder = scene.run(Options(max_calls=2))
    assert exit_code(folder) == ExitCode.BUDGET
    assert case_in(folder).troubles == [Trouble(what="budget", text="the budget of 2 tool calls is spent")]
    assert [w.step for w in case_in(folder).weighed] == ["q1"]
    again = scene.resume(Options(max_calls=2))
    assert again.closed is not None
    assert again.closed.exit_code == ExitCode.BUDGET
    assert len(again.weighed) == 1
    final = scene.resume()
    assert exit_code(folder) == ExitCode.CLEAN
    assert outcome(final) == outcome(reference)
    assert len(started(folder)) == len(set(started(folder))) == 3


def test_a_spent_time_budget(scene: Scene) -> None:
    folder = scene.run(Options(max_seconds=0.0001))
    assert (exit_code(folder), started(folder)) == (ExitCode.BUDGET, [])
    assert "the budget of 0.0001 s is spent" in case_in(folder).troubles[0].text


@pytest.mark.parametrize(
    ("kind", "at"),
    [(CallStarted, 1), (CallFinished, 1), (CallFinished, 2), (StepChosen, 1), (StepWeighed, 1), (StepWeighed, 2)],
)
def test_an_interrupted_run_goes_on_where_it_was(scene: Scene, kind: type, at: int) -> None:
    reference = case_in(scene.run())
    shutil.rmtree(scene.home)
    with pytest.raises(KeyboardInterrupt):
        scene.run(listen(kind, interrupt, at))
    folder = scene.only()
    case = case_in(folder)
    assert case.closed is None
    assert case.troubles[-1].what == "interrupted"
    finished = set(case.results)
    before = len(started(folder))
    assert outcome(scene.resume()) == outcome(reference)
    assert not finished & set(started(folder)[before:])


class Killer(threading.Thread):
    """Once armed, kills the first bwrap that this process has started."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.armed, self.killed = threading.Event(), False
        self.start()

    def run(self) -> None:
        self.armed.wait()
        while not self.killed:
            for children in Path("/proc/self/task").glob("*/children"):
                with contextlib.suppress(OSError):
                    for pid in map(int, children.read_text().split()):
                        if Path(f"/proc/{pid}/comm").read_text() == "bwrap\n":
                            os.kill(pid, signal.SIGKILL)
                            self.killed = True


def test_a_dead_sandbox_is_no_answer(scene: Scene) -> None:
    reference = case_in(scene.run())
    shutil.rmtree(scene.home)
    killer = Killer()
    folder = scene.run(listen(CallStarted, killer.armed.set, 2))
    assert killer.killed
    case = case_in(folder)
    assert exit_code(folder) == ExitCode.FAILED
    assert case.troubles[0].what == "sandbox"
    assert "bubblewrap" in case.troubles[0].text
    assert len(case.results) < len(reference.results)
    assert held(case) == {"source": "inconclusive"}
    assert outcome(scene.resume()) == outcome(reference)
    assert exit_code(folder) == ExitCode.CLEAN
    again = [event.again for event in events_of(folder) if isinstance(event, CallStarted)]
    assert again == [False, False, True, False]


# --- Sources that change


def test_a_source_that_changes_during_the_run_spoils_it(scene: Scene) -> None:
    folder = scene.run(listen(StepWeighed, lambda: lay(scene.tree, {"pkg/extra.py": "x = 1\n"})))
    assert exit_code(folder) == ExitCode.FAILED
    assert case_in(folder).originals_changed == [str(scene.tree)]


def test_a_source_that_goes_away_during_the_run_spoils_it(scene: Scene) -> None:
    folder = scene.run(listen(StepWeighed, lambda: scene.tree.rename(scene.folder / "moved"), 2))
    assert exit_code(folder) == ExitCode.FAILED
    assert case_in(folder).originals_changed == [str(scene.tree)]


def change_tree(scene: Scene, folder: CaseFolder) -> None:
    lay(scene.tree, {"pkg/router.py": "SCALE = 3\n"})


def change_patch(scene: Scene, folder: CaseFolder) -> None:
    lay(scene.folder, {"p.patch": PATCH.replace("+    return weights\n", "+    return  weights\n")})


def change_description(scene: Scene, folder: CaseFolder) -> None:
    scene.description["symptom"] = "another one"
    assert scene.yaml


def change_config(scene: Scene, folder: CaseFolder) -> None:
    lay(scene.folder, {"config.json": '{"hidden_size": 8}'})


def change_playbook(scene: Scene, folder: CaseFolder) -> None:
    path = folder.inputs / "p.yaml"
    path.write_text(path.read_text() + "# changed\n")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (change_tree, "the source or one of its patches changed since this case was opened"),
        (change_patch, "the source or one of its patches changed since this case was opened"),
        (change_description, "the description changed since this case was opened"),
        (change_config, "the description changed since this case was opened"),
        (change_playbook, "the playbook changed since this case was opened"),
    ],
)
def test_a_case_about_something_else_is_not_gone_on_with(
    scene: Scene, change: Callable[[Scene, CaseFolder], None], said: str
) -> None:
    lay(scene.folder, {"p.patch": PATCH, "config.json": '{"hidden_size": 4}'})
    scene.description = {"name": "f", "stock": "tree", "patches": ["p.patch"], "model": {"config": "config.json"}}
    with pytest.raises(KeyboardInterrupt):
        scene.run(listen(StepWeighed, interrupt))
    change(scene, scene.only())
    before = scene.only().events.read_bytes()
    with pytest.raises(CaseError, match=said):
        scene.resume()
    assert scene.only().events.read_bytes() == before
