"""The diff tool: its data, its text, and its statuses, with the script run as the sandbox would run it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import ValidationError

from sleuth.sandbox.base import CLONE, STOCK, Command, Completed
from sleuth.sandbox.deployment import Deployment
from sleuth.tools.base import Outcome, Status, ToolContext, ToolError
from sleuth.tools.diff import TEXT_HUNKS, Diff, DiffArgs, DiffData
from sleuth.tools.inside.change_kinds import KINDS


class Bare:
    """Runs a command without a sandbox around it, the trees where they are."""

    name = "bare"
    python = (sys.executable, "-I", "-S", "-B")
    rg = "rg"

    def __init__(self, stock: Path, clone: Path, scratch: Path) -> None:
        self.stock, self.clone, self.scratch = stock, clone, scratch

    def exec(self, command: Command) -> Completed:
        request = json.loads(command.stdin)
        assert (request["root"], request["stock"]) == (CLONE, STOCK)
        request.update(root=str(self.clone), stock=str(self.stock))
        (mount,) = command.mounts
        argv = [word.replace("/sleuth", str(mount.source.parent)) for word in command.argv]
        done = subprocess.run(argv, input=json.dumps(request).encode(), capture_output=True, check=False)
        for name, content in (("out", done.stdout), ("err", done.stderr)):
            (self.scratch / name).write_bytes(content)
        out, err = self.scratch / "out", self.scratch / "err"
        return Completed(tuple(command.argv), done.returncode, None, out, err, 0.1)


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("stock", "clone"):
        (tmp_path / name).mkdir()
    return tmp_path / "stock", tmp_path / "clone"


def diff(trees: tuple[Path, Path], **args: Any) -> Outcome[DiffData]:
    sandbox = Bare(*trees, trees[0].parent)
    context = ToolContext(sandbox=cast(Any, sandbox), deployment=Deployment(name="x", stock="stock"))
    return Diff().run(DiffArgs(**args), context)


STOCK_TEXT = "class A:\n    def f(self, x):\n        assert x, 'no'\n        return x\n"
CLONE_TEXT = "class A:\n    def f(self, x):\n        if self.on:\n            x = x * self.s\n        return x\n"


def test_data_holds_files_hunks_and_flat_changes(trees: tuple[Path, Path]) -> None:
    (trees[0] / "a.py").write_text(STOCK_TEXT)
    (trees[1] / "a.py").write_text(CLONE_TEXT)
    done = diff(trees)
    assert done.status is Status.OK
    assert done.data.kinds == ["assertion_removed", "multiply_added"]
    assert done.data.kind_counts == {"assertion_removed": 1, "multiply_added": 1}
    removed, added = done.data.changes
    assert (removed.file, removed.line, removed.scope) == ("a.py", 3, "A.f")
    assert removed.detail == "x, 'no'"
    assert (added.line, added.detail, added.guards, added.hunk) == (4, "x * self.s", ["self.on"], "a.py#1")
    assert done.data.files[0].hunks[0].changes[1].clone_line == 4
    assert done.truncated == ""
    assert [command[-3:-1] for command in done.commands] == [("compare", "<<<")]


def test_the_text_names_classes_then_shows_the_diff(trees: tuple[Path, Path]) -> None:
    (trees[0] / "a.py").write_text(STOCK_TEXT)
    (trees[1] / "a.py").write_text(CLONE_TEXT)
    assert diff(trees).text == (
        "1 of 1 files differ, in 1 hunks\n"
        "assertion_removed 1, multiply_added 1\n"
        "\n"
        "modified a.py (+2 -1)\n"
        "  a.py#1 in A.f\n"
        "    assertion_removed: x, 'no'\n"
        "    multiply_added: x * self.s, if self.on\n"
        "    @@ -1,4 +1,5 @@\n"
        "     class A:\n"
        "         def f(self, x):\n"
        "    -        assert x, 'no'\n"
        "    +        if self.on:\n"
        "    +            x = x * self.s\n"
        "             return x"
    )


def test_equal_trees_are_no_data_and_say_how_much_was_compared(trees: tuple[Path, Path]) -> None:
    for root in trees:
        (root / "a.py").write_text(STOCK_TEXT)
    done = diff(trees)
    assert done.status is Status.NO_DATA
    assert done.text == "no difference: 1 files compared, all the same"
    assert (done.data.compared, done.data.identical) == (1, 1)


def test_no_hunk_of_the_kinds_asked_for_is_no_data_with_the_count(trees: tuple[Path, Path]) -> None:
    (trees[0] / "a.py").write_text(STOCK_TEXT)
    (trees[1] / "a.py").write_text(CLONE_TEXT)
    done = diff(trees, kinds=["dtype_changed"])
    assert done.status is Status.NO_DATA
    assert done.text == "1 of 1 files differ, in 1 hunks; 0 shown hunks in 0 files have dtype_changed"
    assert diff(trees, kinds=["multiply_added"]).status is Status.OK


def test_an_unknown_kind_is_an_error_for_the_user(trees: tuple[Path, Path]) -> None:
    with pytest.raises(ToolError, match="did you mean dtype_changed"):
        diff(trees, kinds=["dtype_change"])


def test_arguments_are_checked() -> None:
    with pytest.raises(ValidationError):
        DiffArgs(contxt=3)  # type: ignore[call-arg]
    with pytest.raises(ValidationError):
        DiffArgs(context=-1)


def test_clipping_is_said_in_data_and_text(trees: tuple[Path, Path]) -> None:
    old = "".join(f"v{n} = {n}\n" for n in range(2000))
    (trees[0] / "a.py").write_text(old)
    (trees[1] / "a.py").write_text("".join(f"v{n} = {n + (n % 20 == 0)}\n" for n in range(2000)))
    done = diff(trees, max_hunks=70)
    assert done.truncated == "30 of 100 hunks are not shown (max_hunks 70); narrow paths or kinds"
    assert len(done.data.files[0].hunks) == 70
    assert f"… {70 - TEXT_HUNKS} more hunks of this file are in the data, not in this text" in done.text
    assert "more lines of this hunk; raise max_text to see them" in diff(trees, max_text=200).text


def test_control_characters_of_a_source_do_not_reach_the_text(trees: tuple[Path, Path]) -> None:
    (trees[0] / "a.txt").write_text("a\n")
    (trees[1] / "a.txt").write_text("\x1b[2Jb\u202e\n")
    assert diff(trees).text.endswith("    -a\n    +\N{REPLACEMENT CHARACTER}[2Jb\N{REPLACEMENT CHARACTER}")


def test_every_reported_class_is_a_known_one(trees: tuple[Path, Path]) -> None:
    (trees[0] / "a.py").write_text(STOCK_TEXT)
    (trees[1] / "a.py").write_text(CLONE_TEXT)
    assert set(diff(trees).data.kind_counts) <= set(KINDS)
