"""Small real cases: a source tree, a description, a playbook, and a case home, all in one temporary folder."""

import difflib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sleuth.agent.case import CaseFile, fold
from sleuth.agent.events import AnyEvent, CallStarted
from sleuth.agent.log import Record, read_log
from sleuth.agent.session import Options, resume, start
from sleuth.agent.store import CaseFolder, cases
from sleuth.playbooks import loader

from .books import Part, book, rule, step, write

SOURCE = {
    "pkg/__init__.py": "",
    "pkg/router.py": "SCALE = 2.5\n\n\ndef route(weights):\n    return weights * SCALE\n",
    "pkg/model.py": "from .router import route\n\n\ndef forward(x):\n    return route(x)\n",
}
PATCH = """\
Subject: scale later

--- a/pkg/router.py
+++ b/pkg/router.py
@@ -2,4 +2,4 @@

\x20
 def route(weights):
-    return weights * SCALE
+    return weights
"""
SLEUTH = "from sleuth.agent.cli.main import run; run()"


def refuting_book(**more: Any) -> Part:
    """Two questions that clear the suspect: a grep with a control, then a look at the file."""
    control = {"tool": "grep", "args": {"pattern": "def "}, "must": "data.total > 0"}
    return book(
        step(
            "q1",
            rule("data.total > 0", "supports"),
            rule("status == 'no_data'", "refutes", assume={"a": "verified"}),
            rule(),
            args={"pattern": "SCALE \\* SCALE"},
            control=control,
        ),
        step("q2", rule(note="${data.total_lines} lines"), tool="read_file", args={"path": "pkg/router.py"}),
        **more,
    )


@dataclass
class Scene:
    """Where a test's case plays.

    Attributes:
        folder: holds everything.
        description: what sleuth.yaml says.
        playbook: what the playbook says.
    """

    folder: Path
    playbook: Part = field(default_factory=refuting_book)
    description: dict[str, Any] = field(default_factory=lambda: {"name": "fork", "tree": "tree"})

    def __post_init__(self) -> None:
        self.home, self.tree = self.folder / "home", self.folder / "tree"
        lay(self.tree, SOURCE)

    @property
    def yaml(self) -> Path:
        """The description's file, written anew."""
        path = self.folder / "sleuth.yaml"
        path.write_text(yaml.safe_dump(self.description), encoding="utf-8")
        return path

    @property
    def book(self) -> Path:
        """The playbook's file, written anew."""
        return write(self.folder, self.playbook)

    def run(self, options: Options | None = None, given: dict[str, str] | None = None) -> CaseFolder:
        """Open a case and work it to its end."""
        return start(self.home, self.yaml, self.book, given or {}, {}, options or Options())

    def resume(self, options: Options | None = None) -> CaseFile:
        """Go on with the only case there is."""
        return case_in(resume(self.only(), options or Options()))

    def only(self) -> CaseFolder:
        """The only case there is."""
        (found,) = cases(self.home)
        return found

    def words(self) -> list[str]:
        """The command line that does what `run` does."""
        return ["run", str(self.book), "-d", str(self.yaml), "--home", str(self.home)]


def listen(kind: type, act: Callable[[], object], at: int = 1) -> Options:
    """Options that call `act` when the `at`-th event of `kind` was written."""
    seen: list[Record] = []

    def hear(record: Record) -> None:
        if isinstance(record.event, kind):
            seen.append(record)
            if len(seen) == at:
                act()

    return Options(listen=hear)


def interrupt() -> None:
    """What Ctrl-C does."""
    raise KeyboardInterrupt


def exit_code(folder: CaseFolder) -> int:
    """The exit status of a closed case."""
    closed = case_in(folder).closed
    assert closed is not None
    return closed.exit_code


def started(folder: CaseFolder) -> list[str]:
    """Keys of the calls that were begun, in order."""
    return [event.call.key for event in events_of(folder) if isinstance(event, CallStarted)]


def change(file: str, *lines: str) -> str:
    """A patch of one hunk."""
    return "\n".join([f"--- a/{file}", f"+++ b/{file}", *lines, ""])


def lay(folder: Path, files: dict[str, str]) -> None:
    """Write text files below `folder`."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def case_in(folder: CaseFolder) -> CaseFile:
    """The case file of a case on disk."""
    return fold(read_log(folder.events))


def kinds(folder: CaseFolder) -> list[str]:
    """The kinds of a case's events, in order."""
    return [event.kind for event in events_of(folder)]


def events_of(folder: CaseFolder) -> list[AnyEvent]:
    """A case's events."""
    return [record.event for record in read_log(folder.events)]


def held(case: CaseFile) -> dict[str, str]:
    """What is held of each suspect."""
    return {verdict.suspect: str(verdict.verdict) for verdict in case.verdicts}


def verdicts_and_evidence(case: CaseFile) -> tuple[object, object]:
    """What two runs of one case must agree on; times are left out."""
    return case.verdicts, case.evidence


def command(*words: str) -> list[str]:
    """The argv of `sleuth` as a process of its own."""
    return [sys.executable, "-c", SLEUTH, *words]


def sleuth(*words: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `sleuth` as a user does."""
    return subprocess.run(
        command(*words), cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, check=False, timeout=120
    )


def work(folder: Path, playbook: str, stock: dict[str, str], changed: dict[str, str], **params: str) -> CaseFile:
    """The case of one patch that turns the files of `stock` into `changed`."""
    lay(folder / "stock", {"pkg/__init__.py": "", **stock})
    patch = ""
    for name, text in changed.items():
        old, new = stock.get(name, "").splitlines(True), text.splitlines(True)
        patch += "".join(difflib.unified_diff(old, new, f"a/{name}" if old else "/dev/null", f"b/{name}"))
    lay(folder, {"p.patch": patch})
    described = {"name": "x", "stock": "stock", "patches": ["p.patch"]}
    (folder / "sleuth.yaml").write_text(yaml.safe_dump(described))
    found = loader.find(playbook)
    case = case_in(start(folder / "home", folder / "sleuth.yaml", found, dict(params), {}, Options()))
    assert case.closed
    assert case.troubles == []
    return case
