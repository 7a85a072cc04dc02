"""What a case leaves on disk, whom it belongs to, and what it survives the loss of."""

import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sleuth.agent.case import CaseFile
from sleuth.agent.events import CallFinished, StepWeighed
from sleuth.agent.exitcodes import ExitCode
from sleuth.agent.log import EventLog
from sleuth.agent.store import CaseError, cases
from sleuth.sandbox.clone import tree_digest
from sleuth.sandbox.errors import UsageError

from ..support.books import book, rule, step
from ..support.investigation import PATCH, Scene, case_in, command, interrupt, lay, listen, started
from ..support.investigation import verdicts_and_evidence as outcome


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_home_inside_the_source_is_refused_and_nothing_is_written(scene: Scene) -> None:
    before = tree_digest(scene.tree)
    scene.home = scene.tree / ".sleuth"
    with pytest.raises(UsageError, match=r"lies inside .*tree, which sleuth never writes to; choose another place"):
        scene.run()
    (scene.folder / "link").symlink_to(scene.tree)
    scene.home = scene.folder / "link" / "deep" / ".sleuth"
    with pytest.raises(UsageError, match="lies inside"):
        scene.run()
    assert tree_digest(scene.tree) == before


@pytest.mark.parametrize(
    ("description", "given"),
    [
        ({"name": "f", "tree": "none"}, {}),
        ({"name": "f"}, {}),
        ({"name": "f", "stock": "tree", "patches": ["bad.patch"]}, {}),
        ({"name": "f", "tree": "tree"}, {"nope": "1"}),
        ({"name": "f", "tree": "tree"}, {"token": "sk-abcdefghijklmnop1234"}),
    ],
)
def test_a_usage_error_leaves_no_case_behind(
    scene: Scene, description: dict[str, object], given: dict[str, str]
) -> None:
    lay(scene.folder, {"bad.patch": PATCH.replace("return weights", "return nothing")})
    scene.description = description
    scene.playbook = book(parameters={"token": {"default": "x"}})
    with pytest.raises(UsageError):
        scene.run(given=given)
    assert [p for p in scene.home.rglob("*") if p.is_file()] == []
    assert list((scene.home / "cases").glob("*")) == []


def test_a_case_belongs_to_one_process_at_a_time(scene: Scene) -> None:
    with pytest.raises(KeyboardInterrupt):
        scene.run(listen(StepWeighed, interrupt))
    log = EventLog(scene.only().events)
    (scene.only().path / "scratch").mkdir()
    with pytest.raises(CaseError, match="another sleuth is working on this case"):
        scene.resume()
    assert (scene.only().path / "scratch").exists()
    log.close()
    assert scene.resume().closed is not None


def test_what_a_run_left_that_was_killed_after_its_last_event_is_cleared(scene: Scene) -> None:
    folder = scene.run()
    before = folder.events.read_bytes()
    folder.scratch.mkdir()
    folder.layers.mkdir()
    (folder.artefacts / ".half.1").touch()
    scene.resume()
    assert not folder.scratch.exists()
    assert not folder.layers.exists()
    assert not list(folder.artefacts.glob(".*"))
    assert folder.events.read_bytes() == before


def test_a_running_case_can_not_be_resumed_beside_it(scene: Scene) -> None:
    child = subprocess.Popen(command(*scene.words()), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert child.stderr is not None
    child.stderr.readline()
    with pytest.raises(CaseError, match="another sleuth is working on this case"):
        scene.resume()
    child.communicate(timeout=60)
    assert child.returncode == ExitCode.CLEAN


def remove(path: Path) -> None:
    path.unlink()


def garble(path: Path) -> None:
    path.write_bytes(b"not a database, not at all" * 200)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def another_schema(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("create table checkpoints (x text)")
    connection.close()


def another_content(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("update checkpoints set checkpoint = x'00ff00ff'")
    connection.close()


def a_folder(path: Path) -> None:
    path.with_name("checkpoint.sqlite-wal").write_bytes(b"\0" * 5000)


@pytest.mark.parametrize("damage", [remove, garble, cut, empty, another_schema, another_content, a_folder])
def test_the_checkpoint_may_be_lost(scene: Scene, damage: Callable[[Path], None]) -> None:
    reference = case_in(scene.run())
    shutil.rmtree(scene.home)
    with pytest.raises(KeyboardInterrupt):
        scene.run(listen(CallFinished, interrupt, 2))
    folder = scene.only()
    damage(folder.checkpoint)
    assert outcome(scene.resume()) == outcome(reference)
    assert len(started(folder)) == len(set(started(folder))) == 3


@pytest.mark.parametrize("damage", ["changed", "gone"])
def test_evidence_that_was_changed_is_not_used(scene: Scene, damage: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        scene.run(listen(CallFinished, interrupt, 2))
    folder = scene.only()
    for path in folder.artefacts.iterdir():
        path.write_bytes(b"{}") if damage == "changed" else path.unlink()
    with pytest.raises(CaseError, match="isn't what was kept" if damage == "changed" else "can't be read"):
        scene.resume()


def test_a_checkpoint_does_not_grow_with_the_case(scene: Scene) -> None:
    scene.playbook = book(*[step(f"q{n}", args={"pattern": "def "}) for n in range(60)])
    folder = scene.run()
    total = sum(p.stat().st_size for p in folder.path.glob("checkpoint.sqlite*"))
    assert total < 300_000
    with sqlite3.connect(folder.checkpoint) as connection:
        (count,) = connection.execute("select count(*) from checkpoints").fetchone()
    connection.close()
    assert count == 1


def test_no_secret_of_the_source_or_the_description_stays_in_the_case(scene: Scene) -> None:
    secrets = ["sk-abcdefghijklmnop1234", "hf_abcdefghijklmnopqrstuv", "hunter2hunter2"]
    lay(
        scene.tree,
        {"pkg/keys.py": f"KEY = '{secrets[0]}'\napi_key = '{secrets[2]}'\n" * 300, f"pkg/{secrets[1]}.py": "KEY = 1\n"},
    )
    scene.description["launch"] = {"env": {"HF_TOKEN": secrets[1]}, "args": ["serve", "--api-key", secrets[2]]}
    scene.playbook = book(
        step(
            "q1",
            rule(note="${join(' ', list(h.text for h in data.hits))}"),
            args={"pattern": "(?i)key", "max_hits": 20},
        ),
        step(
            "q2",
            rule(note="${data.lines[0]} ${steps.q1.data.hits[0].text}"),
            tool="read_file",
            args={"path": "pkg/keys.py"},
        ),
        step("q3", tool="env_probe", args={}),
        step("q4", args={"pattern": "${first(steps.q1.data.hits).text}", "fixed": True}),
    )
    folder = scene.run()
    assert len(case_in(folder).weighed) == 4
    for path in filter(Path.is_file, scene.home.rglob("*")):
        found = [secret for secret in secrets if secret.encode() in path.read_bytes() or secret in path.name]
        assert not found, path
    assert b"<redacted>" in folder.events.read_bytes()


def test_cases_are_all_there_is(scene: Scene) -> None:
    scene.run()
    assert [p.name for p in scene.home.iterdir()] == ["cases"]
    assert len(cases(scene.home)) == 1
    assert isinstance(case_in(scene.only()), CaseFile)
