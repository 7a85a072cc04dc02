"""The promises of `Sandbox.exec`, kept by every backend on this machine. Each test sees what it guards against fail."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sleuth.sandbox.base import Command, Limits, Mount
from sleuth.sandbox.bubblewrap import Bubblewrap
from sleuth.sandbox.clone import tree_digest
from sleuth.sandbox.errors import CommandError, SandboxDied

from ..support.inside import eventually, out, processes, python, sh
from ..support.trees import BACKENDS, ODD_NAMES, clone_of, open_backend, write

STOCK_FILES: dict[str, str | bytes] = {"kept.py": "x = 1\n", "changed.py": "y = 1\n", "deleted.py": "z = 1\n"}


@pytest.fixture
def lower(tmp_path: Path) -> Path:
    return write(tmp_path / "lower", STOCK_FILES)


@pytest.fixture(params=BACKENDS)
def box(request: pytest.FixtureRequest, tmp_path: Path, lower: Path) -> Bubblewrap:
    """A clone whose layer changes, adds and deletes a file of the stock tree."""
    layer = write(tmp_path / "layer", {"changed.py": "y = 2\n", "added/new.py": "new = 1\n"})
    os.mknod(layer / "deleted.py", 0o020000, os.makedev(0, 0))
    return open_backend(request.param, clone_of(lower, layer, stock=lower), tmp_path / "scratch")


# --- How a command ends


def test_exit_codes_and_both_streams(box: Bubblewrap) -> None:
    done = sh(box, "echo out; echo err >&2; exit 3")
    assert (done.exit_code, done.signal, done.timed_out, done.clipped) == (3, None, False, False)
    assert (out(done), done.error_text()) == ("out\n", "err")
    assert done.describe() == "exit 3"
    assert done.argv == ("sh", "-c", "echo out; echo err >&2; exit 3")


@pytest.mark.parametrize("sent", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_a_signal_is_not_an_exit_code(box: Bubblewrap, sent: signal.Signals) -> None:
    done = sh(box, f"kill -{sent.value} $$")
    assert (done.exit_code, done.signal, done.describe()) == (None, sent.value, f"killed by {sent.name}")


def test_a_missing_program_is_a_result_and_so_is_one_that_can_not_be_run(box: Bubblewrap) -> None:
    assert box.exec(Command(["no-such-program"])).exit_code == 127
    assert box.exec(Command(["/clone/kept.py"])).exit_code == 126


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["echo", "x" * 200_000], "200,000 bytes"),
        (["echo", "a\0b"], "a NUL or half a character: 'a\\x00b'"),
        (["echo", "\ud800"], "a NUL or half a character: '\\ud800'"),
    ],
)
def test_a_command_line_that_no_process_can_have_is_the_callers_mistake(
    box: Bubblewrap, argv: list[str], named: str
) -> None:
    with pytest.raises(CommandError, match="command line") as error:
        box.exec(Command(argv))
    assert named in str(error.value)


def test_standard_input_and_binary_output_pass_unchanged(box: Bubblewrap) -> None:
    raw = bytes(range(256)) * 1000
    assert box.exec(Command(["cat"], stdin=raw)).stdout.read_bytes() == raw
    assert out(box.exec(Command(["cat"]))) == ""


def test_unicode_and_odd_words_arrive_as_they_are(box: Bubblewrap) -> None:
    words = ["καλημέρα 🦥", "a\nb", "", "$HOME `id`", "--", "'\"\\", os.fsdecode(b"\xff\xfe")]
    done = box.exec(Command(["printf", "%s\\0", *words]))
    assert [os.fsdecode(word) for word in done.stdout.read_bytes().split(b"\0")[:-1]] == words


def test_a_sandbox_that_breaks_is_no_result(box: Bubblewrap) -> None:
    mark = f"777.{uuid.uuid4().int % 10**9}"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(sh, box, f"sleep {mark}; true")
        assert eventually(lambda: len(processes(mark)) >= 3)
        os.kill(min(processes(mark)), signal.SIGKILL)  # bubblewrap's own process, outside
        with pytest.raises(SandboxDied, match="no report"):
            running.result()
    assert eventually(lambda: not processes(mark))


# --- Limits


def test_the_time_limit_kills_grandchildren_in_sessions_of_their_own(box: Bubblewrap) -> None:
    mark = f"778.{uuid.uuid4().int % 10**9}"
    script = f"setsid sleep {mark} & (setsid setsid sleep {mark} &) ; trap '' TERM INT; sleep {mark}"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(sh, box, script, limits=Limits(seconds=1.0))
        assert eventually(lambda: len(processes(mark)) >= 5)
        done = running.result()
    assert (done.timed_out, done.exit_code, done.signal) == (True, None, None)
    assert 1.0 <= done.seconds < 3.0
    assert done.describe().startswith("stopped at the time limit, after 1.")
    assert processes(mark) == []


def test_a_background_process_does_not_outlive_its_command(box: Bubblewrap) -> None:
    mark = f"779.{uuid.uuid4().int % 10**9}"
    assert sh(box, f"setsid sleep {mark} >/dev/null 2>&1 & exit 0").exit_code == 0
    assert eventually(lambda: not processes(mark), 2)


def test_the_memory_limit(box: Bubblewrap) -> None:
    source = "x = bytearray(400 << 20); print(len(x))"
    assert out(python(box, source)) == f"{400 << 20}\n"
    done = python(box, source, limits=Limits(memory_bytes=256 << 20))
    assert done.exit_code == 1
    assert done.error_text().endswith("MemoryError")


def test_the_process_limit(box: Bubblewrap) -> None:
    promised = next(g for g in box.guarantees() if g.name == "process limit")
    if not promised.holds:
        pytest.skip(promised.why)
    source = """if True:
        import os, time
        children = 0
        while children < 100:
            try:
                if os.fork() == 0:
                    time.sleep(60)
            except BlockingIOError:
                break
            children += 1
        print(children)
    """
    assert out(python(box, source, limits=Limits(processes=20))) == "19\n"
    assert out(python(box, source, limits=Limits(processes=200))) == "100\n"


def test_the_output_limit(box: Bubblewrap) -> None:
    for stream in ("", ">&2"):
        done = sh(box, f"yes {stream}", limits=Limits(output_bytes=1 << 20))
        assert (done.clipped, done.timed_out) == (True, False)
        assert max(done.stdout.stat().st_size, done.stderr.stat().st_size) == 1 << 20
    assert done.describe().startswith("stopped at the output limit")
    assert not sh(box, "head -c 1000 /dev/zero", limits=Limits(output_bytes=1 << 20)).clipped


def test_memory_that_counts_as_no_process_is_bounded_too(box: Bubblewrap) -> None:
    for folder in ("/tmp", "/dev/shm"):
        script = f"for n in 1 2 3 4 5 6; do head -c 60000000 /dev/zero > {folder}/$n || exit 9; done"
        assert sh(box, script).exit_code == 9
    for folder in ("/", "/dev", "/sleuth", "/etc"):
        assert sh(box, f"echo x > {folder}/file").exit_code == 2


# --- What it can't reach


def test_no_network(box: Bubblewrap) -> None:
    name = f"\0sleuth-{uuid.uuid4()}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(name)
        unix.listen()
        port = tcp.getsockname()[1]
        source = f"""if True:
            import socket
            for kind, where in [(socket.AF_INET, ("127.0.0.1", {port})), (socket.AF_UNIX, {name!r})]:
                try:
                    socket.socket(kind).connect(where)
                    print("connected")
                except OSError as error:
                    print(error.strerror)
        """
        outside = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
        assert outside.stdout == "connected\nconnected\n"
        assert out(python(box, source)) == "Connection refused\nConnection refused\n"
    assert out(sh(box, "ls /sys/class/net /run /var 2>/dev/null")) == ""
    assert "eth" not in out(sh(box, "cat /proc/net/dev"))


def test_no_host_environment(box: Bubblewrap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLEUTH_TEST_SECRET", "abc")
    done = box.exec(Command(["env"], env={"WANTED": "a=b c\n"}))
    expected = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "PWD=/clone"}
    expected |= {"PYTHONHASHSEED=0"}
    assert set(out(done).splitlines()) - {""} == {*expected, "WANTED=a=b c"}
    assert "abc" not in out(sh(box, "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'"))


def test_no_host_files(box: Bubblewrap, tmp_path: Path) -> None:
    secret = write(tmp_path / "secret", {"key": "k"})
    for path in ("/etc/shadow", "/etc/passwd", "/var/log", "/run", "/sys", str(secret), str(box.scratch)):
        assert Path(path).exists()
        done = box.exec(Command(["ls", path]))
        assert (done.exit_code, "No such file" in done.error_text()) == (2, True), path
    prefix = os.path.realpath(sys.base_prefix)
    for entry in Path.home().iterdir():
        inside = box.exec(Command(["test", "-e", str(entry)])).exit_code == 0
        assert inside == prefix.startswith(str(entry)) or str(entry) == prefix, entry


def test_no_host_processes(box: Bubblewrap) -> None:
    assert out(sh(box, "echo $$; kill -0 $PPID && echo $PPID")) == "2\n1\n"
    assert out(sh(box, f"kill -9 {os.getpid()} 2>/dev/null || echo refused")) == "refused\n"


def test_the_original_and_the_host_can_not_be_written(box: Bubblewrap, lower: Path) -> None:
    before = tree_digest(lower)
    for place in ("/clone/kept.py", "/clone/new", "/stock/kept.py", "/stock/new", "/usr/new", box.rg, box.python[0]):
        done = sh(box, f"echo x >> '{place}'")
        refused = done.error_text().endswith(("Read-only file system", "Permission denied", "Text file busy"))
        assert (done.exit_code, refused) == (2, True), place
    assert tree_digest(lower) == before
    assert sorted(p.name for p in lower.iterdir()) == ["changed.py", "deleted.py", "kept.py"]


def test_nothing_inside_can_undo_it(box: Bubblewrap, lower: Path) -> None:
    """Root inside would be root outside: it must have no capability, and no file of the kernel to write to."""
    assert "CapEff:\t0000000000000000\n" in out(sh(box, "cat /proc/self/status"))
    for undo in (
        "mount -o remount,rw,bind /stock",
        "mount -o remount,rw,bind /usr",
        "umount /stock",
        "mount -o remount,rw /",
    ):
        assert sh(box, undo).exit_code not in (0, 127), undo
        assert sh(box, f"unshare -Urm sh -c '{undo}'").exit_code not in (0, 127), undo
    for file in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness", "/proc/sys/kernel/hostname"):
        same = f"cat {file} > /tmp/same && cat /tmp/same > {file}"
        assert (Path(file).exists(), sh(box, same).exit_code) == (True, 2), file
    assert sorted(p.name for p in lower.iterdir()) == ["changed.py", "deleted.py", "kept.py"]


# --- What it shows


def test_the_clone_shows_stock_with_its_layer(box: Bubblewrap) -> None:
    script = "cd $0; for f in $(find . -type f | sort); do echo $f; cat $f; done"
    clone = out(box.exec(Command(["sh", "-c", script, "/clone"])))
    stock = out(box.exec(Command(["sh", "-c", script, "/stock"])))
    assert clone == "./added/new.py\nnew = 1\n./changed.py\ny = 2\n./kept.py\nx = 1\n"
    assert stock == "./changed.py\ny = 1\n./deleted.py\nz = 1\n./kept.py\nx = 1\n"
    assert out(box.exec(Command(["pwd"]))) == "/clone\n"
    assert box.exec(Command(["cat", "/clone/deleted.py"])).exit_code == 1


def test_what_is_written_is_thrown_away(box: Bubblewrap, lower: Path) -> None:
    before = tree_digest(lower)
    script = (
        "echo w >> kept.py && rm changed.py && mkdir d && echo n > d/n && chmod +x kept.py && cat kept.py d/n && ls"
    )
    done = sh(box, script, writable=True)
    assert (done.exit_code, out(done)) == (0, "x = 1\nw\nn\nadded\nd\nkept.py\n"), done.error_text()
    assert out(sh(box, "cat kept.py; ls", writable=True)) == "x = 1\nadded\nchanged.py\nkept.py\n"
    assert sh(box, "echo x > /stock/new", writable=True).exit_code == 2
    assert tree_digest(lower) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root owns every tree")
def test_a_tree_of_somebody_else_can_be_read_and_written_to_in_a_copy(tmp_path: Path) -> None:
    theirs = next(
        p for p in map(Path, ("/etc/default", "/etc/security", "/etc/init.d")) if p.is_dir() and any(p.iterdir())
    )
    name = next(p.name for p in theirs.iterdir() if p.is_file() and os.access(p, os.R_OK))
    box = open_backend("bubblewrap", clone_of(theirs, write(tmp_path / "layer", {"own": "1\n"})), tmp_path / "scratch")
    assert box.notes == []
    assert box.exec(Command(["cat", name])).stdout.read_bytes() == (theirs / name).read_bytes()
    done = sh(box, f"echo changed > '{name}' && cat '{name}' own && rm '{name}' && ls '{name}'", writable=True)
    assert (out(done), done.exit_code) == ("changed\n1\n", 2)
    assert (theirs / name).exists()
    assert not list(box.scratch.glob("copy-*"))


def test_a_mount_is_shown_read_only(box: Bubblewrap, tmp_path: Path) -> None:
    extra = write(tmp_path / "extra", {"f": "here\n"})
    mounts = [Mount(extra, "/sleuth/extra")]
    assert out(sh(box, "cat /sleuth/extra/f", mounts=mounts)) == "here\n"
    assert sh(box, "echo x > /sleuth/extra/f", mounts=mounts).exit_code == 2


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("root", ["plain", "a:b,c\\d e", "new\nline", "ünï", os.fsdecode(b"\xff")])
def test_odd_names_are_shown(tmp_path: Path, backend: str, root: str) -> None:
    tree = write(tmp_path / root, {})
    for name in ODD_NAMES:
        Path(os.fsdecode(os.fsencode(tree) + b"/" + name)).write_bytes(name)
    layer = write(tmp_path / f"layer-{root}", {"layered": ""})
    box = open_backend(backend, clone_of(tree, layer), tmp_path / "scratch")
    done = sh(box, "find . -type f -print0")
    assert set(done.stdout.read_bytes().split(b"\0")) == {b"./" + name for name in ODD_NAMES} | {b"./layered", b""}


def test_only_a_copy_says_that_it_is_one(box: Bubblewrap, lower: Path, request: pytest.FixtureRequest) -> None:
    copied = [f"/clone: no overlay can be had over {lower}; its files were copied instead"]
    assert box.notes == (copied if "copy" in request.node.callspec.id else [])
