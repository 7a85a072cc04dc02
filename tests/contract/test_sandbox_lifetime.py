"""What every backend leaves behind: nothing, after many calls, calls at once, and a sleuth that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sleuth.sandbox.bubblewrap import Bubblewrap
from sleuth.sandbox.cgroup import find_parent

from ..support.inside import eventually, out, processes, sh
from ..support.trees import BACKENDS, clone_of, open_backend, write


@pytest.fixture
def lower(tmp_path: Path) -> Path:
    return write(tmp_path / "lower", {"a.py": "x = 1\n"})


@pytest.fixture(params=BACKENDS)
def box(request: pytest.FixtureRequest, tmp_path: Path, lower: Path) -> Bubblewrap:
    layer = write(tmp_path / "layer", {"b.py": "y = 1\n"})
    return open_backend(request.param, clone_of(lower, layer), tmp_path / "scratch")


def test_two_hundred_calls_leave_nothing_open(box: Bubblewrap) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    sh(box, "true")
    before = descriptors()
    for number in range(200):
        assert out(sh(box, f"echo {number}")) == f"{number}\n"
    assert descriptors() == before
    assert len(list(box.scratch.glob("std*"))) == 2 * 201
    assert not list(box.scratch.glob("tmp*"))


def test_eight_threads_do_not_mix(box: Bubblewrap) -> None:
    start = threading.Barrier(8)

    def work(thread: int) -> list[str]:
        start.wait()
        return [out(sh(box, f"cat; echo {thread}.{n}", stdin=b"in ")) for n in range(5)]

    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(work, range(8)))
    assert said == [[f"in {thread}.{n}\n" for n in range(5)] for thread in range(8)]


def test_scoped_outputs_lie_in_their_own_folder(box: Bubblewrap, tmp_path: Path) -> None:
    place = tmp_path / "call"
    place.mkdir()
    done = sh(box.scoped(place), "echo x")
    assert (done.stdout.parent, done.stderr.parent) == (place, place)


# --- When sleuth itself ends


@pytest.fixture
def caller(tmp_path: Path, lower: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A sleuth in another process, in the middle of a call."""
    mark = f"780.{uuid.uuid4().int % 10**9}"
    (tmp_path / "scratch").mkdir()
    script = f"setsid sleep {mark} & sleep {mark}"
    source = f"""if True:
        from pathlib import Path
        from sleuth.sandbox.base import Command
        from sleuth.sandbox.bubblewrap import Bubblewrap
        from sleuth.sandbox.clone import Clone, View
        clone = Clone(View(Path({str(lower)!r})), None, [], [])
        Bubblewrap(clone, Path({str(tmp_path / "scratch")!r})).exec(Command(["sh", "-c", {script!r}]))
    """
    child = subprocess.Popen([sys.executable, "-c", source], stderr=subprocess.PIPE, env=dict(os.environ))
    try:
        assert eventually(lambda: len(processes(mark)) >= 4), child.stderr and child.poll()
        yield child, mark
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_outlives_sleuth(caller: tuple[subprocess.Popen[bytes], str], sent: signal.Signals) -> None:
    child, mark = caller
    child.send_signal(sent)
    child.wait(10)
    assert eventually(lambda: not [pid for pid in processes(mark) if pid != child.pid], 5)
    if sent == signal.SIGINT and (parent := find_parent()):
        assert not list(parent.glob(f"sleuth-{child.pid}-*"))
