"""Control groups: found from the kernel's own tables, in both versions, and never left behind."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from sleuth.sandbox import cgroup
from sleuth.sandbox.cgroup import candidates, find_parent, first_usable, join, process_group

V1 = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
INSIDE = "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup cgroup rw,pids\n"


@pytest.mark.parametrize(
    ("mounts", "own", "expected"),
    [
        (V1, "8:pids:/a/b\n4:memory:/x\n", ["/sys/fs/cgroup/pids/a/b"]),
        (V1, "8:pids:/\n0::/\n", ["/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified"]),
        (
            V2,
            "0::/user.slice/s.scope\n",
            ["/sys/fs/cgroup/user.slice/s.scope", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"],
        ),
        (INSIDE, "8:pids:/docker/abc/d\n", ["/sys/fs/cgroup/d"]),
        (INSIDE, "8:pids:/docker/other\n", []),
        ("", "0::/\n", []),
        (V2, "0::/../outside\n", []),
    ],
)
def test_candidates(mounts: str, own: str, expected: list[str]) -> None:
    assert [str(place) for place in candidates(mounts, own)] == expected


def fake(place: Path, controllers: str) -> Path:
    """A folder that looks like a version 2 group."""
    place.mkdir(parents=True)
    (place / "cgroup.subtree_control").write_text(controllers)
    (place / "cgroup.procs").touch()
    return place


def test_only_a_group_that_hands_the_controller_down_is_usable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "EMPTY_SECONDS", 0.01)  # in a plain folder rmdir can't succeed
    own, above = fake(tmp_path / "slice/scope", ""), tmp_path / "slice"
    (above / "cgroup.subtree_control").write_text("memory pids")
    assert first_usable([own, above]) is None  # no cgroup.procs to write to
    (above / "cgroup.procs").touch()
    assert first_usable([own, above]) == above
    assert first_usable([own]) is None
    assert first_usable([tmp_path / "missing", own]) is None


@pytest.fixture
def parent() -> Path:
    found = find_parent()
    if found is None:
        pytest.skip("no group can be made here")
    return found


def test_a_group_limits_root_too_and_is_gone_afterwards(parent: Path) -> None:
    spawn = "i=0; while [ $i -lt 20 ]; do sleep 30 & i=$((i+1)); done; wait"
    with subprocess.Popen(["sh", "-c", f"read go; {spawn}"], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        with process_group(parent, 5) as group:
            join(group, child.pid)
            assert child.stdin
            assert child.stderr
            child.stdin.write(b"\n")
            child.stdin.flush()
            assert b"fork" in child.stderr.readline().lower()
            members = (group / "cgroup.procs").read_text().split()
            assert len(members) <= 5
            for pid in members:
                os.kill(int(pid), 9)
            child.wait()
        assert not group.exists()


def test_groups_left_by_a_killed_sleuth_are_swept_once_they_are_old(
    parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = parent / "sleuth-999999999-0"
    left.mkdir()
    assert first_usable([parent]) == parent
    assert left.exists()
    time.sleep(0.02)
    monkeypatch.setattr(cgroup, "STALE_SECONDS", 0.01)
    assert first_usable([parent]) == parent
    assert not left.exists()
