"""read_file: exact lines and figures, and a clear word about everything that isn't a text file."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ..support.trees import ODD_NAMES, Bench, hostile

TEXT = "one\ntwo\r\n\tthree \x1b[31m\n\nfive \xe9\n".encode("latin-1")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    tree = hostile(tmp_path / "tree")
    (tree / "text.py").write_bytes(TEXT)
    return Bench(tree, tmp_path / "bench")


def read(bench: Bench, **args: Any) -> dict[str, Any]:
    result = bench.call("read_file", **args)
    assert result.status in ("ok", "no_data"), result.text
    found: dict[str, Any] = json.loads(bench.kept[result.data].read_bytes())
    return found


def test_a_whole_file(bench: Bench) -> None:
    result = bench.call("read_file", path="text.py")
    assert (result.status, result.truncated) == ("ok", "")
    assert result.text == (
        "text.py, lines 1-5 of 5\n     1  one\n     2  two\n     3  \tthree \\x1b[31m\n     4  \n     5  five \\xe9"
    )
    assert read(bench, path="text.py") == {
        "file": "text.py",
        "start": 1,
        "end": 5,
        "total_lines": 5,
        "size": len(TEXT),
        "sha256": hashlib.sha256(TEXT).hexdigest(),
        "lines": ["one", "two", "\tthree \x1b[31m", "", "five \\xe9"],
    }
    [command] = result.commands
    assert command[-3:-1] == ["read", "<<<"]
    assert json.loads(command[-1])["path"] == "text.py"


@pytest.mark.parametrize(
    ("start", "lines", "expected", "left"),
    [(2, 2, ["two", "\tthree \x1b[31m"], 3), (5, 10, ["five \\xe9"], 4), (1, 5, None, 0), (1, 1, ["one"], 4)],
)
def test_some_lines(bench: Bench, start: int, lines: int, expected: list[str] | None, left: int) -> None:
    result = bench.call("read_file", path="text.py", start=start, lines=lines)
    assert result.truncated == (f"{left} of 5 lines not shown; ask for them with start and lines" if left else "")
    if expected is not None:
        assert read(bench, path="text.py", start=start, lines=lines)["lines"] == expected


def test_a_file_without_a_last_line_end_and_an_empty_one(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "tree/bare").write_text("a\nb")
    assert read(bench, path="bare")["lines"] == ["a", "b"]
    result = bench.call("read_file", path="empty.py")
    assert (result.status, result.text) == ("no_data", "empty.py: empty")
    assert read(bench, path="empty.py")["total_lines"] == 0


def test_a_very_long_line_is_never_held_whole(bench: Bench, tmp_path: Path) -> None:
    raw = b"x" * (5 << 20) + b"\nshort\n" + b"y" * 4001
    (tmp_path / "tree/long").write_bytes(raw)
    found = read(bench, path="long")
    assert found["lines"] == [
        "x" * 4000 + " … (5,242,881 bytes in this line)",
        "short",
        "y" * 4000 + " … (4,001 bytes in this line)",
    ]
    assert (found["total_lines"], found["size"], found["sha256"]) == (3, len(raw), hashlib.sha256(raw).hexdigest())


@pytest.mark.parametrize("shown", ODD_NAMES.values())
def test_odd_names(bench: Bench, shown: str) -> None:
    assert read(bench, path=shown)["lines"] == ["needle = 3"]
    assert read(bench, path=shown)["file"] == shown


def test_a_name_as_python_holds_it(bench: Bench) -> None:
    assert read(bench, path=os.fsdecode(b"bad\xff.py"))["file"] == r"bad\xff.py"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"path": "okk.py"}, "okk.py: no such file in the tree; did you mean 'ok.py'?"),
        ({"path": "package"}, "package: a folder, not a file; it holds 1 entries: in.py"),
        ({"path": "pipe"}, "pipe: not a regular file (a pipe, socket or device)"),
        ({"path": "binary.bin"}, "binary.bin: a binary file (NUL byte at offset 3); only text can be read"),
        ({"path": "secret.py"}, "secret.py: can't be read: permission denied"),
        ({"path": "out"}, "out: a symbolic link that leads out of the tree, to /usr/bin; it isn't followed"),
        ({"path": "shadow"}, "shadow: a symbolic link to /etc/shadow that leads to nothing inside the sandbox"),
        (
            {"path": "up"},
            "up: a symbolic link to " + "../" * 40 + "etc/hostname that leads to nothing inside the sandbox",
        ),
        ({"path": "loop"}, "loop: a symbolic link to loop2 that leads in a circle"),
        ({"path": "../x"}, "../x: outside the tree; paths are relative to its root"),
        ({"path": "/etc/shadow"}, "/etc/shadow: outside the tree; paths are relative to its root"),
        ({"path": "a\0"}, "'a\\x00': a path can't hold a NUL"),
        ({"path": "\ud800"}, "'\\ud800' holds half a character, '\\ud800'"),
        ({"path": "text.py", "start": 6}, "text.py: has 5 lines; nothing stands at line 6"),
        ({"path": "empty.py", "start": 2}, "empty.py: has 0 lines; nothing stands at line 2"),
        ({"path": "text.py", "lines": 2001}, "read_file: lines: Input should be less than or equal to 2000 (got 2001)"),
        ({"path": ""}, "read_file: path: String should have at least 1 character (got '')"),
        ({"file": "x"}, "read_file: path: this argument is required; file: unknown argument"),
    ],
)
def test_what_is_refused(bench: Bench, args: dict[str, Any], said: str) -> None:
    result = bench.call("read_file", **args)
    assert (result.status, result.artefacts) == ("error", [])
    assert result.text.startswith(said)
    assert "Traceback" not in result.text
