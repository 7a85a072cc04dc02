"""The command line: what each command prints where, and every exit status."""

import contextlib
import errno
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from sleuth.agent.cli import main as cli
from sleuth.agent.cli.main import COMMANDS, EPILOG, main
from sleuth.agent.exitcodes import ExitCode

from ..support import ROOT
from ..support.books import bare_book, book, rule, step, write
from ..support.investigation import PATCH, SOURCE, Scene, case_in, lay

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.chdir(tmp_path)
    return Scene(tmp_path)


@pytest.fixture
def done(scene: Scene) -> Scene:
    """A scene with one finished case."""
    with contextlib.redirect_stdout(io.StringIO()):
        assert main([*scene.words(), "-q"]) == ExitCode.CLEAN
    return scene


def home(scene: Scene) -> list[str]:
    return ["--home", str(scene.home)]


# --- Each command


def test_run_prints_the_case_on_stdout_and_progress_on_stderr(scene: Scene, capsys: Captured) -> None:
    assert main(scene.words()) == ExitCode.CLEAN
    out, err = capsys.readouterr()
    assert out.startswith("CASE ")
    assert out.endswith("original source: unchanged\nexit 0: clean\n")
    assert [line.split(":")[0].split(" ")[0] for line in err.splitlines()][:2] == ["case", "1"]
    assert "    grep: no_data in" in err
    assert err.splitlines()[-1] == "exonerated: source"


def test_quiet_means_nothing_on_stderr(scene: Scene, capsys: Captured) -> None:
    assert main([*scene.words(), "--quiet"]) == ExitCode.CLEAN
    assert capsys.readouterr().err == ""


def test_run_takes_a_playbook_by_name_from_a_folder(scene: Scene, capsys: Captured) -> None:
    assert scene.book.name == "p.yaml"
    words = ["run", "p", "--playbooks", str(scene.folder), "-d", str(scene.yaml), *home(scene), "-q"]
    assert main(words) == ExitCode.CLEAN


def test_home_comes_from_the_option_then_the_variable_then_the_folder(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    words = ["run", str(scene.book), "-d", str(scene.yaml), "-q"]
    assert main(words) == ExitCode.CLEAN
    monkeypatch.setenv("SLEUTH_HOME", str(scene.folder / "variable"))
    assert main(words) == ExitCode.CLEAN
    assert main([*words, "--home", str(scene.folder / "option")]) == ExitCode.CLEAN
    for name in (".sleuth", "variable", "option"):
        assert len(list((scene.folder / name / "cases").iterdir())) == 1


def test_tree_and_stock_of_the_command_line_win(scene: Scene, capsys: Captured) -> None:
    lay(scene.folder / "other", {**SOURCE, "pkg/new.py": "x = 1\n"})
    scene.playbook = book(step("q1"))
    assert main([*scene.words(), "--tree", "other", "--stock", "tree", "-q"]) == ExitCode.INCONCLUSIVE
    opened = case_in(scene.only()).opened
    assert opened is not None
    assert opened.overrides == {"tree": str(scene.folder / "other"), "stock": str(scene.tree)}
    assert "pkg.new.py: INCONCLUSIVE" in capsys.readouterr().out


def test_show_prints_what_run_printed(done: Scene, capsys: Captured) -> None:
    assert main(["show", "last", *home(done)]) == ExitCode.CLEAN
    shown = capsys.readouterr()
    assert shown.out.startswith(f"CASE {done.only().id}\n")
    assert shown.err == ""
    assert main(["resume", done.only().id, *home(done)]) == ExitCode.CLEAN
    assert capsys.readouterr().out == shown.out


def test_show_prints_an_artefact_byte_for_byte(done: Scene, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    (kept, *_) = sorted(done.only().artefacts.iterdir())
    assert main(["show", "last", "--artefact", kept.name[:8], *home(done)]) == ExitCode.CLEAN
    assert capsysbinary.readouterr().out == kept.read_bytes()


def test_a_changed_artefact_is_not_shown(done: Scene, capsys: Captured) -> None:
    (kept, *_) = sorted(done.only().artefacts.iterdir())
    kept.write_bytes(b"\x00")
    assert main(["show", "last", "--artefact", kept.name, *home(done)]) == ExitCode.FAILED
    out, err = capsys.readouterr()
    assert (out, "isn't what was kept" in err) == ("", True)


def test_cases_lists_each_with_its_end(done: Scene, capsys: Captured) -> None:
    broken = done.home / "cases" / "20990101-000000-x-0000"
    broken.mkdir()
    (broken / "events.jsonl").write_text("{}\n")
    assert main(["cases", *home(done)]) == ExitCode.CLEAN
    out, err = capsys.readouterr()
    first, second = out.splitlines()
    assert re.fullmatch(r"\d{8}-\d{6}-p-[0-9a-f]{4}  fork  exit 0  exonerated: source", first)
    assert second.startswith("20990101-000000-x-0000  unreadable: ")
    assert err == ""


def test_no_cases_is_said_on_stderr(tmp_path: Path, capsys: Captured) -> None:
    assert main(["cases", "--home", str(tmp_path)]) == ExitCode.CLEAN
    assert capsys.readouterr() == ("", f"no cases in {tmp_path}\n")


@pytest.mark.parametrize("name", ["md", "json", "jsonl"])
def test_export_to_stdout_and_to_a_file_is_the_same(
    done: Scene, name: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["export", "last", "--format", name, *home(done)]) == ExitCode.CLEAN
    out = capsysbinary.readouterr().out
    assert main(["export", "last", "--format", name, "-o", "file", *home(done)]) == ExitCode.CLEAN
    assert Path("file").read_bytes() == out
    assert len(out) > 500


def test_playbooks_list_names_each_with_its_title(scene: Scene, capsys: Captured) -> None:
    assert scene.book
    assert main(["playbooks", "list", "--playbooks", str(scene.folder / "none")]) in (0, 2)
    assert re.search(r"^double-scaling +\S", capsys.readouterr().out, re.MULTILINE)


def test_playbooks_show_prints_the_file(scene: Scene, capsys: Captured) -> None:
    assert main(["playbooks", "show", str(scene.book)]) == ExitCode.CLEAN
    assert capsys.readouterr() == (scene.book.read_text(), "")


def test_playbooks_check_says_ok_or_every_problem(scene: Scene, capsys: Captured) -> None:
    bad = write(scene.folder, book(step("s1", rule("data.totl"), tool="grep"), name="bad"), name="worse")
    assert main(["playbooks", "check", str(scene.book), str(bad)]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == f"{scene.book}: ok, 2 steps\n"
    assert [line.split(": ")[1] for line in err.splitlines()] == ["name", "steps.0.outcomes.0.when"]


def test_tool_prints_the_finding(scene: Scene, capsys: Captured) -> None:
    words = ["tool", "grep", '{"pattern": "SCALE ="}', "-d", str(scene.yaml)]
    assert main(words) == ExitCode.CLEAN
    assert capsys.readouterr().out == "1 lines match 'SCALE =' in 1 files\npkg/router.py:1: SCALE = 2.5\n"
    assert main([*words, "--json"]) == ExitCode.CLEAN
    assert json.loads(capsys.readouterr().out)["hits"] == [{"file": "pkg/router.py", "line": 1, "text": "SCALE = 2.5"}]


def test_tool_errors_go_to_stderr(scene: Scene, capsys: Captured) -> None:
    assert main(["tool", "grep", '{"pattern": "("}', "-d", str(scene.yaml)]) == ExitCode.FAILED
    out, err = capsys.readouterr()
    assert (out, err.startswith("grep: bad pattern '('")) == ("", True)


# --- Each exit status


PROVED = {"bearing": "supports", "grade": "computed", "proves": True}
RUNS: dict[str, tuple[int, Any, list[str]]] = {
    "clean": (0, bare_book(step("q", rule(bearing="refutes"), args={"pattern": "def "})), []),
    "guilty": (1, bare_book(step("q", rule(**PROVED), args={"pattern": "def "})), []),
    "suspected": (3, bare_book(step("q", rule(bearing="supports"), args={"pattern": "def "})), []),
    "undecided": (3, bare_book(step("q", args={"pattern": "def "})), []),
    "denied": (4, bare_book(step("q", rule(bearing="refutes"), args={"pattern": "def "})), ["--deny", "grep"]),
    "failed": (4, bare_book(step("q", rule(bearing="refutes"), args={"pattern": "("})), []),
    "budget": (5, bare_book(step("q"), step("r", args={"pattern": "def "})), ["--max-calls", "1"]),
}


@pytest.mark.parametrize(("code", "playbook", "options"), RUNS.values(), ids=RUNS)
def test_exit_status_of_a_run(scene: Scene, capsys: Captured, code: int, playbook: Any, options: list[str]) -> None:
    scene.playbook = playbook
    assert main([*scene.words(), "-q", *options]) == code
    out, err = capsys.readouterr()
    assert out.endswith(f"exit {code}: {ExitCode(code).name.lower()}\n")
    assert err == ""


USAGE: list[tuple[list[str], str]] = [
    ([], "usage: sleuth"),
    (["rnu"], "invalid choice: 'rnu'"),
    (["run"], "the following arguments are required: PLAYBOOK"),
    (["show", "last", "--hom", "x"], "unrecognized arguments: --hom x"),
    (["run", "nope"], "sleuth: no playbook 'nope'; "),
    (["run", "p.yaml", "-d", "none.yaml"], "none.yaml: doesn't exist"),
    (["run", "none.yaml"], "none.yaml: doesn't exist"),
    (["run", "p.yaml", "--param", "x"], "sleuth: --param x: NAME=VALUE expected"),
    (["run", "p.yaml", "--param", "x=1"], "sleuth: --param x: p has no such parameter"),
    (["run", "p.yaml", "--param", "x=1", "--param", "x=2"], "sleuth: --param x: given twice, as '1' and '2'"),
    (["run", "p.yaml", "--tree", "none"], "none doesn't exist"),
    (["run", "p.yaml", "--deny", "gerp"], "sleuth: --deny gerp: no such tool; did you mean 'grep'?"),
    (["run", "p.yaml", "--max-calls", "0"], "argument --max-calls: '0': a whole number from 1 is needed"),
    (["run", "p.yaml", "--max-calls", "-3"], "argument --max-calls"),
    (["run", "p.yaml", "--max-calls", "²"], "a whole number from 1 is needed"),
    (["run", "p.yaml", "--max-seconds", "nan"], "'nan': a number of seconds above 0 is needed"),
    (["run", "p.yaml", "--max-seconds", "inf"], "'inf': a number of seconds above 0 is needed"),
    (["run", "p.yaml", "--max-seconds", "soon"], "'soon': a number of seconds above 0 is needed"),
    (["show", "last"], "sleuth: there are no cases in "),
    (["show", "x"], "sleuth: there are no cases in "),
    (["resume", "x"], "sleuth: there are no cases in "),
    (["export", "x"], "sleuth: there are no cases in "),
    (["playbooks", "show"], "sleuth: playbooks show: name one playbook"),
    (["playbooks", "show", "nope"], "sleuth: no playbook 'nope'"),
    (["playbooks", "remove"], "invalid choice: 'remove'"),
    (["tool", "gerp"], "sleuth: unknown tool 'gerp'; did you mean 'grep'?"),
    (["tool", "grep", "{"], "sleuth: ARGS must be a JSON object, such as"),
    (["tool", "grep", "[1]"], "sleuth: ARGS must be a JSON object, not a list"),
]


@pytest.mark.parametrize(("words", "said"), USAGE, ids=[" ".join(words) or "nothing" for words, _ in USAGE])
def test_a_usage_error_is_said_once_on_stderr(scene: Scene, capsys: Captured, words: list[str], said: str) -> None:
    assert scene.book
    assert scene.yaml
    assert main(words) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "Traceback" not in err
    assert not (scene.folder / ".sleuth").exists()


def test_an_unknown_format(done: Scene, capsys: Captured) -> None:
    assert main(["export", "last", "--format", "jsonn", *home(done)]) == ExitCode.USAGE
    assert capsys.readouterr() == ("", "sleuth: no format 'jsonn'; did you mean 'json'?\n")


def test_a_bad_patch_is_a_usage_error(scene: Scene, capsys: Captured) -> None:
    lay(scene.folder, {"p.patch": PATCH.replace("def route", "def root")})
    scene.description = {"name": "fork", "stock": "tree", "patches": ["p.patch"]}
    assert main([*scene.words(), "-q"]) == ExitCode.USAGE
    assert "hunk 1 (line 2) doesn't fit" in capsys.readouterr().err


def test_a_changed_log_is_a_failure(done: Scene, capsys: Captured) -> None:
    events = done.only().events
    events.write_bytes(events.read_bytes().replace(b"fork", b"fort", 1))
    for words in (["show", "last"], ["resume", "last"], ["export", "last"]):
        assert main([*words, *home(done)]) == ExitCode.FAILED
        assert capsys.readouterr().err == f"sleuth: {events}:1: isn't what sleuth wrote: the log was changed\n"


def test_a_full_disk_is_a_failure_and_no_traceback(
    done: Scene, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_bytes", full)
    assert main(["export", "last", "-o", "file", *home(done)]) == ExitCode.FAILED
    assert capsys.readouterr() == ("", "sleuth: file: No space left on device\n")


def test_an_internal_error_is_not_a_verdict(done: Scene, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(case: object) -> str:
        raise ZeroDivisionError("by surprise")

    monkeypatch.setattr("sleuth.agent.cli.show.report", broken)
    assert main(["show", "last", *home(done)]) == ExitCode.INTERNAL
    said = "sleuth: internal error: ZeroDivisionError('by surprise'); please report it (SLEUTH_DEBUG=1 shows where)\n"
    assert capsys.readouterr() == ("", said)
    monkeypatch.setenv("SLEUTH_DEBUG", "1")
    assert main(["show", "last", *home(done)]) == ExitCode.INTERNAL
    assert "Traceback" in capsys.readouterr().err


# --- Help


def test_help_names_every_command_and_loads_none(capsys: Captured) -> None:
    assert main(["--help"]) == ExitCode.CLEAN
    out, err = capsys.readouterr()
    for name, about in COMMANDS.items():
        assert f" {name} {about} " in " ".join(out.split()), name
    assert err == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: Captured) -> None:
    assert main([name, "--help"]) == ExitCode.CLEAN
    assert capsys.readouterr().out.startswith(f"usage: sleuth {name} ")


def test_every_command_is_a_module_and_every_module_a_command() -> None:
    folder = Path(cli.__file__).parent
    assert {p.stem for p in folder.glob("*.py")} - {"__init__", "main", "common"} == set(COMMANDS)


def test_version(capsys: Captured) -> None:
    assert main(["--version"]) == ExitCode.CLEAN
    assert re.fullmatch(r"sleuth (\d+\.\d+\.\d+.*|not installed)\n", capsys.readouterr().out)


def test_every_exit_status_is_in_the_help() -> None:
    told = {int(number) for number in re.findall(r"\b(\d+) (?=[a-z])", EPILOG)}
    assert told == {int(code) for code in ExitCode}


def test_the_readme_tells_every_exit_status() -> None:
    readme = ROOT / "README.md"
    rows = (
        re.findall(r"^\| *`?(\d+)`? *\|", readme.read_text(encoding="utf-8"), re.MULTILINE) if readme.exists() else []
    )
    if not rows:
        pytest.skip("README.md has no table of exit codes")
    assert {int(row) for row in rows} == {int(code) for code in ExitCode}
