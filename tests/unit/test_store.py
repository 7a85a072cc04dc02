"""A case on disk: its folders, its artefacts, and finding it again."""

import hashlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from sleuth.agent.store import CaseError, CaseFolder, cases, find_case
from sleuth.sandbox.errors import UsageError


@pytest.fixture
def folder(tmp_path: Path) -> CaseFolder:
    return CaseFolder.create(tmp_path / "home", "p")


def kept(folder: CaseFolder, content: bytes) -> str:
    source = folder.path / "source"
    source.write_bytes(content)
    return folder.keep("name", source).digest


def test_a_new_case(folder: CaseFolder, tmp_path: Path) -> None:
    assert folder.path.parent == tmp_path / "home" / "cases"
    assert folder.id == folder.path.name
    assert folder.id[15:].startswith("-p-")
    assert sorted(p.name for p in folder.path.iterdir()) == ["artefacts", "inputs", "scratch"]


def test_two_cases_in_one_second_are_two(tmp_path: Path) -> None:
    assert len({CaseFolder.create(tmp_path, "p").id for _ in range(20)}) == 20


def test_a_home_that_is_a_file_is_the_users_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("x")
    with pytest.raises(
        UsageError, match=r"can't write cases to .*home: Not a directory; choose another place with --home"
    ):
        CaseFolder.create(tmp_path / "home", "p")


def test_an_artefact_is_kept_once_under_its_digest(folder: CaseFolder) -> None:
    digest = kept(folder, b"content")
    assert digest == hashlib.sha256(b"content").hexdigest()
    assert kept(folder, b"content") == digest
    assert [p.name for p in folder.artefacts.iterdir()] == [digest]
    assert folder.read(digest) == b"content"
    assert folder.artefact(digest[:6]) == folder.artefacts / digest


def test_what_is_kept_is_named_and_measured(folder: CaseFolder) -> None:
    source = folder.path / "source"
    source.write_bytes(b"12345")
    found = folder.keep("data.json", source)
    assert (found.name, found.size) == ("data.json", 5)


def test_an_artefact_that_was_changed_is_named(folder: CaseFolder) -> None:
    digest = kept(folder, b"content")
    (folder.artefacts / digest).write_bytes(b"contest")
    with pytest.raises(CaseError, match=f"the artefact {digest} isn't what was kept: it was changed"):
        folder.read(digest)


def test_an_artefact_that_is_gone_is_named(folder: CaseFolder) -> None:
    with pytest.raises(CaseError, match=f"the artefact {'0' * 64} can't be read: No such file or directory"):
        folder.read("0" * 64)


@pytest.mark.parametrize("start", ["0", "", "*", "../inputs", ".x"])
def test_an_artefact_that_is_not_there_is_not_found(folder: CaseFolder, start: str) -> None:
    with pytest.raises(UsageError, match="no artefacts start with"):
        folder.artefact(start)


def test_the_start_of_two_artefacts_is_not_enough(folder: CaseFolder) -> None:
    for name in ("aa1", "aa2"):
        (folder.artefacts / name).write_bytes(b"")
    with pytest.raises(UsageError, match="2 artefacts start with 'aa'"):
        folder.artefact("aa")


def test_the_workspace_is_fresh_and_leaves_nothing(folder: CaseFolder) -> None:
    (folder.scratch / "left by a killed run").write_text("x")
    (folder.artefacts / ".half.123").write_text("x")
    digest = kept(folder, b"whole")
    with folder.workspace():
        assert list(folder.scratch.iterdir()) == []
        assert list(folder.layers.iterdir()) == []
        assert [p.name for p in folder.artefacts.iterdir()] == [digest]
        (folder.scratch / "f").write_text("x")
        (folder.layers / "f").write_text("x")
    assert not folder.scratch.exists()
    assert not folder.layers.exists()
    assert folder.read(digest) == b"whole"


def test_a_sandbox_that_a_killed_run_left_hanging_is_ended(folder: CaseFolder, tmp_path: Path) -> None:
    """Made by hand: a process called bwrap that holds a file in the scratch folder, and two that are none of ours."""
    program = shutil.copyfile(shutil.which("sleep") or "", tmp_path / "bwrap")
    Path(program).chmod(0o755)
    with (folder.scratch / "stdout").open("w") as ours, (tmp_path / "elsewhere").open("w") as other:
        left = subprocess.Popen([program, "60"], stdout=ours)
        strangers = [subprocess.Popen([program, "60"], stdout=other), subprocess.Popen(["sleep", "60"], stdout=ours)]
    try:
        wait_for_names([left, *strangers])
        with folder.workspace():
            assert left.wait(10) == -signal.SIGKILL
            assert [p.poll() for p in strangers] == [None, None]
    finally:
        for process in (left, *strangers):
            process.kill()
            process.wait()


def wait_for_names(processes: list[subprocess.Popen[bytes]]) -> None:
    """Wait until each runs its own program."""
    for process in processes:
        while Path(f"/proc/{process.pid}/comm").read_text() not in ("bwrap\n", "sleep\n"):
            time.sleep(0.01)


def began(home: Path, ident: str, age: int = 0) -> None:
    folder = home / "cases" / ident
    (folder / "inputs").mkdir(parents=True)
    (folder / "events.jsonl").touch()
    os.utime(folder / "inputs", ns=(0, age))


def test_cases_are_listed_oldest_first(tmp_path: Path) -> None:
    began(tmp_path, "20260102-000000-b-0001", 2)
    began(tmp_path, "20260102-000000-a-0002", 3)
    began(tmp_path, "20260102-000000-c-0003", 1)
    began(tmp_path, "20260101-000000-z-0004", 9)
    (tmp_path / "cases" / "20260103-never-began").mkdir()
    assert [c.id[16:17] for c in cases(tmp_path)] == ["z", "c", "b", "a"]
    assert find_case(tmp_path, "last").id == "20260102-000000-a-0002"


def test_a_case_is_found_by_its_id_or_the_start_of_it(tmp_path: Path) -> None:
    began(tmp_path, "20260101-a-1")
    began(tmp_path, "20260101-a-11")
    began(tmp_path, "20260202-b-1")
    assert find_case(tmp_path, "20260101-a-1").id == "20260101-a-1"
    assert find_case(tmp_path, "202602").id == "20260202-b-1"
    with pytest.raises(UsageError, match="2 cases start with '20260101'; "):
        find_case(tmp_path, "20260101")
    with pytest.raises(UsageError, match=r"no case '20260202-b-2' in .*; did you mean '20260202-b-1'\?"):
        find_case(tmp_path, "20260202-b-2")


def test_there_is_no_last_case_of_none(tmp_path: Path) -> None:
    assert cases(tmp_path) == []
    with pytest.raises(UsageError, match="there are no cases in "):
        find_case(tmp_path, "last")
