"""`sleuth` as a process of its own: signals, pipes that break, terminals that can't spell."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sleuth.agent.exitcodes import ExitCode

from ..support.books import bare_book, rule, step
from ..support.investigation import Scene, case_in, command, sleuth


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.fixture
def done(scene: Scene) -> Scene:
    """A scene with one finished case."""
    scene.run()
    return scene


def home(scene: Scene) -> list[str]:
    return ["--home", str(scene.home)]


def test_a_reader_that_goes_away_is_no_traceback(done: Scene) -> None:
    child = subprocess.Popen(command("show", "last", *home(done)), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout
    assert child.stderr
    child.stdout.close()
    assert child.wait(60) == ExitCode.FAILED
    assert child.stderr.read() == b""
    child.stderr.close()


def test_help_into_a_closed_pipe_is_no_traceback() -> None:
    done = subprocess.run(
        ["bash", "-c", '"$@" | true; exit ${PIPESTATUS[0]}', "-", *command("--help")],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode in (ExitCode.CLEAN, ExitCode.FAILED)
    assert done.stderr == b""


def test_output_that_the_terminal_can_not_spell_is_no_error(done: Scene) -> None:
    shown = sleuth("show", "last", *home(done), PYTHONIOENCODING="ascii")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert r"\u2192 REFUTES" in shown.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_interrupts_and_the_case_can_be_resumed(scene: Scene, number: signal.Signals) -> None:
    scene.playbook = bare_book(
        *[step(f"q{n}", rule(bearing="refutes"), args={"pattern": f"def |{n}"}) for n in range(40)]
    )
    child = subprocess.Popen(command(*scene.words()), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stderr
    for _ in range(8):
        child.stderr.readline()
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    assert child.returncode == ExitCode.INTERRUPTED
    assert out == ""
    assert err.endswith("interrupted: stopped by the user\nsleuth: interrupted\n")
    assert "Traceback" not in err
    case = case_in(scene.only())
    assert case.closed is None
    assert 0 < len(case.weighed) < 40
    assert not scene.only().scratch.exists()
    resumed = sleuth("resume", "last", *home(scene))
    assert (resumed.returncode, "resumed" in resumed.stderr) == (0, True)
    assert len(case_in(scene.only()).weighed) == 40


def test_progress_that_nobody_reads_stops_nothing(scene: Scene) -> None:
    read, pipe = os.pipe()
    os.close(read)
    child = subprocess.run(command(*scene.words()), stdout=subprocess.PIPE, stderr=pipe, check=False, timeout=60)
    os.close(pipe)
    assert child.returncode == ExitCode.CLEAN
    assert b"EXONERATED" in child.stdout
    assert case_in(scene.only()).closed


def test_the_entry_point_is_what_pyproject_names() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sleuth.agent.cli.main as m; m.run()", "--version"],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.startswith(b"sleuth ")


def shell(scene: Scene, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `sleuth` at the end of a shell script that first changes what it inherits."""
    argv = ["sh", "-c", script, "sh", *command(*words)]
    return subprocess.run(argv, cwd=scene.folder, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_change_nothing_but_what_is_said(scene: Scene, closed: str) -> None:
    ended = shell(scene, f'exec "$@" {closed}', *scene.words())
    assert ended.returncode == ExitCode.CLEAN
    assert case_in(scene.only()).closed
    assert "Traceback" not in ended.stderr


def test_a_case_that_could_not_be_written_further_is_resumed(scene: Scene) -> None:
    ended = shell(scene, 'ulimit -f 32; exec "$@"', *scene.words())
    assert ended.returncode == ExitCode.FAILED
    assert "checkpoint.sqlite" in ended.stderr
    assert "the case can be resumed" in ended.stderr
    assert sleuth("resume", "last", *home(scene)).returncode == ExitCode.CLEAN


def test_a_full_log_is_no_conviction(scene: Scene) -> None:
    assert shell(scene, 'exec "$@" 2>/dev/full', *scene.words()).returncode == ExitCode.CLEAN
    assert shell(scene, 'exec "$@" 2>/dev/full', "run", "no-such-playbook").returncode == ExitCode.USAGE
