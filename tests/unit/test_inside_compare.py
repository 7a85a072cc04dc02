"""Two trees compared: every odd thing a tree can hold, and nothing left out in silence."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from sleuth.tools.inside import compare
from sleuth.tools.inside.fail import InsideError


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    stock, clone = tmp_path / "stock", tmp_path / "clone"
    stock.mkdir()
    clone.mkdir()
    return stock, clone


def run(trees: tuple[Path, Path], **request: Any) -> dict[str, Any]:
    stock, clone = trees
    answer = compare.run({"root": str(clone), "stock": str(stock), **request})
    # What the sandbox sends is JSON without lone surrogates.
    reply: dict[str, Any] = json.loads(json.dumps(answer).encode())
    json.dumps(reply, ensure_ascii=False).encode()
    return reply


def put(trees: tuple[Path, Path], name: str, old: bytes | str | None, new: bytes | str | None) -> None:
    for root, content in zip(trees, (old, new), strict=True):
        if content is not None:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)


def rows(reply: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(row["file"], row["change"], row["note"]) for row in reply["files"]]


def test_a_modified_file_has_hunks_with_lines_and_counts(trees: tuple[Path, Path]) -> None:
    put(trees, "a/b.py", "x = 1\ny = 2\nz = 3\n", "x = 1\ny = 4\nz = 3\n")
    put(trees, "same.py", "x = 1\n", "x = 1\n")
    reply = run(trees)
    (row,) = reply["files"]
    (hunk,) = row["hunks"]
    assert (row["file"], row["change"], row["method"]) == ("a/b.py", "modified", "syntax")
    assert (row["added_lines"], row["removed_lines"], row["language"]) == (1, 1, "python")
    assert (hunk["id"], hunk["stock_start"], hunk["clone_start"]) == ("a/b.py#1", 1, 1)
    assert (hunk["stock_lines"], hunk["clone_lines"]) == (3, 3)
    assert hunk["text"] == "@@ -1,3 +1,3 @@\n x = 1\n-y = 2\n+y = 4\n z = 3"
    assert [change["kind"] for change in hunk["changes"]] == ["constant_changed"]
    assert (reply["compared"], reply["identical"]) == (2, 1)
    assert reply["kind_counts"] == {"constant_changed": 1}
    assert reply["left_out"] == []


def test_added_deleted_and_moved_files(trees: tuple[Path, Path]) -> None:
    put(trees, "new.py", None, "x = 1\n")
    put(trees, "gone.py", "y = 2\ny = 3\n", None)
    put(trees, "Case.py", "z = 1\n", None)
    put(trees, "case.py", None, "z = 1\n")
    reply = run(trees)
    assert rows(reply) == [
        ("Case.py", "deleted", ""),
        ("case.py", "added", "same content as Case.py, which is gone, only the case of its name differs"),
        ("gone.py", "deleted", ""),
        ("new.py", "added", ""),
    ]
    assert reply["kind_counts"] == {"code_added": 2, "code_removed": 2}
    assert reply["files"][2]["hunks"][0]["changes"][0]["detail"] == "deleted file, 2 lines"


def test_links_are_compared_by_target_and_never_followed(trees: tuple[Path, Path], tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text("secret")
    for root, target in zip(trees, ("a", "b"), strict=True):
        (root / "link").symlink_to(target)
        (root / "loop").symlink_to("loop")
        (root / "out").symlink_to(secret)
        (root / "folder").symlink_to(root.parent)
    reply = run(trees)
    assert rows(reply) == [("link", "symlink", "a → b")]
    assert reply["compared"] == 4
    with pytest.raises(InsideError, match="goes through the symlink folder"):
        run(trees, paths=["folder/secret.py"])


def test_a_link_in_place_of_a_file_is_another_type(trees: tuple[Path, Path]) -> None:
    put(trees, "a.py", "x = 1\n", None)
    (trees[1] / "a.py").symlink_to("elsewhere")
    assert rows(run(trees)) == [("a.py", "type", "file became symlink")]


def test_a_fifo_is_named_and_not_opened(trees: tuple[Path, Path]) -> None:
    os.mkfifo(trees[1] / "pipe")
    put(trees, "was", "x", None)
    os.mkfifo(trees[1] / "was")
    assert rows(run(trees)) == [("pipe", "added", "fifo"), ("was", "type", "file became fifo")]


def test_a_changed_executable_bit_is_a_difference(trees: tuple[Path, Path]) -> None:
    put(trees, "run.sh", "x\n", "x\n")
    put(trees, "other.sh", "x\n", "x\n")
    (trees[1] / "run.sh").chmod(0o755)
    (trees[0] / "run.sh").chmod(0o644)
    (trees[1] / "other.sh").chmod(0o600)
    assert rows(run(trees)) == [("run.sh", "mode", "mode 644 → 755")]


def test_odd_bytes_in_names_and_texts(trees: tuple[Path, Path]) -> None:
    for root, text in zip(trees, (b"x = '\xff'\n", b"x = '\xfe'\n"), strict=True):
        for name in (b"a\nb.py", b"\xff.py"):
            Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_bytes(text)
    reply = run(trees)
    assert [row["file"] for row in reply["files"]] == ["a\\x0ab.py", "\\xff.py"]
    assert reply["files"][0]["hunks"][0]["text"] == "@@ -1,1 +1,1 @@\n-x = '\\xff'\n+x = '\\xfe'"
    assert rows(run(trees, paths=["\\xff.py"])) == [("\\xff.py", "modified", "")]


def test_binary_files_have_sizes_and_no_hunks(trees: tuple[Path, Path]) -> None:
    put(trees, "a.so", b"\0\1", b"\0\1\2")
    put(trees, "b.py", "x = 1\n", b"x = 1\0\n")
    reply = run(trees)
    assert rows(reply) == [
        ("a.so", "binary", "binary, 2 → 3 bytes"),
        ("b.py", "binary", "binary, 6 → 7 bytes"),
    ]
    assert [row["hunks"] for row in reply["files"]] == [[], []]


def test_a_large_file_is_compared_by_bytes_and_says_so(trees: tuple[Path, Path]) -> None:
    put(trees, "big.txt", "a\n" * 3000, "a\n" * 2999 + "b\n")
    put(trees, "same.txt", "a\n" * 3000, "a\n" * 3000)
    reply = run(trees, max_file_bytes=4096)
    note = "6,000 bytes, over 4,096: compared by bytes only"
    assert rows(reply) == [("big.txt", "modified", note)]
    assert reply["skipped"] == [{"file": "big.txt", "reason": note}]
    assert reply["identical"] == 1


def test_a_sparse_file_of_200_megabytes_is_no_trouble(trees: tuple[Path, Path]) -> None:
    for root, last in zip(trees, (b"a", b"b"), strict=True):
        with (root / "huge.bin").open("wb") as stream:
            stream.seek(200 << 20)
            stream.write(last)
    reply = run(trees)
    assert rows(reply) == [("huge.bin", "modified", "209,715,201 bytes, over 8,388,608: compared by bytes only")]


def test_byte_order_mark_line_ends_and_missing_last_newline(trees: tuple[Path, Path]) -> None:
    put(trees, "bom.py", "x = 1\n", b"\xef\xbb\xbfx = 1\n")
    put(trees, "crlf.py", "x = 1\ny = 2\n", "x = 1\r\ny = 2\r\n")
    put(trees, "last.py", "x = 1\n", "x = 1")
    put(trees, "broken.py", "def f(:\n  x = 1\n", "def f(:\n  x = 2\n")
    reply = run(trees)
    found = {row["file"]: [c["kind"] for h in row["hunks"] for c in h["changes"]] for row in reply["files"]}
    assert found == {
        "bom.py": ["whitespace_only"],
        "broken.py": ["constant_changed"],
        "crlf.py": ["whitespace_only"],
        "last.py": [],
    }
    assert reply["files"][3]["note"] == "line ending at the end of the file differs"


def test_version_control_and_compiled_files_are_ignored_aloud(trees: tuple[Path, Path]) -> None:
    for name in (".git/config", "a/__pycache__/b.pyc", "c.pyc"):
        put(trees, name, None, "x")
    reply = run(trees)
    assert reply["files"] == []
    assert reply["ignored"] == ["1 × .git folder", "1 × __pycache__ folder", "1 × compiled Python (*.pyc)"]


def test_what_no_class_tells_is_listed(trees: tuple[Path, Path]) -> None:
    put(trees, "a.so", b"\0\1", b"\0\2")
    put(trees, "big.py", "x = 1\n" * 1000, "x = 2\n" * 1000)
    put(trees, "fine.py", "x = 1\n", "x = 2\n")
    put(trees, "last.py", "x = 1\n", "x = 1")
    put(trees, "empty.py", None, "")
    put(trees, "mode.sh", "x\n", "x\n")
    (trees[1] / "mode.sh").chmod(0o755)
    (trees[0] / "link").symlink_to("a")
    (trees[1] / "link").symlink_to("b")
    assert run(trees, max_file_bytes=4096)["unclassified"] == ["a.so", "big.py", "link"]
    assert run(trees, paths=["fine.py"], seconds=-1)["unclassified"] == ["fine.py"]
    assert run(trees, paths=["fine.py"])["unclassified"] == []


def test_empty_trees_are_compared_and_the_same(trees: tuple[Path, Path]) -> None:
    reply = run(trees)
    assert (reply["compared"], reply["identical"], reply["files"], reply["skipped"]) == (0, 0, [], [])


def test_paths_narrow_the_comparison(trees: tuple[Path, Path]) -> None:
    for name in ("a/one.py", "a/two.py", "b/three.py", "ab/four.py"):
        put(trees, name, "x = 1\n", "x = 2\n")
    assert [row["file"] for row in run(trees, paths=["a"])["files"]] == ["a/one.py", "a/two.py"]
    assert [row["file"] for row in run(trees, paths=["b/three.py", "a/one.py"])["files"]] == ["a/one.py", "b/three.py"]
    assert [row["file"] for row in run(trees, paths=["a", "a/one.py"])["files"]] == ["a/one.py", "a/two.py"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("../stock/a.py", "leaves the tree"),
        ("a/../../x", "leaves the tree"),
        ("a\0b", "leaves the tree"),
        ("a/tow.py", "neither in the clone nor in stock; near it: a/two.py"),
        ("nowhere/else", "neither in the clone nor in stock"),
    ],
)
def test_a_path_that_cannot_be_compared_is_an_error(trees: tuple[Path, Path], path: str, message: str) -> None:
    put(trees, "a/two.py", "x", "x")
    with pytest.raises(InsideError, match=message):
        run(trees, paths=[path])


def test_kinds_keep_only_their_hunks_and_all_are_counted(trees: tuple[Path, Path]) -> None:
    middle = "".join(f"v{n} = {n}\n" for n in range(20))
    put(trees, "a.py", "assert x\n" + middle + "y = 1\n", middle + "y = 2\n")
    put(trees, "b.py", "y = 1\n", "y = 2\n")
    reply = run(trees, kinds=["assertion_removed"])
    assert [(row["file"], [h["id"] for h in row["hunks"]]) for row in reply["files"]] == [("a.py", ["a.py#1"])]
    assert reply["kind_counts"] == {"assertion_removed": 1, "constant_changed": 2}
    assert (reply["hunk_count"], reply["file_count"]) == (3, 2)


def test_an_unknown_kind_is_an_error_with_the_nearest_ones(trees: tuple[Path, Path]) -> None:
    with pytest.raises(InsideError, match="'assert_removed' is not a class of change; did you mean assertion_removed"):
        run(trees, kinds=["assert_removed"])
    with pytest.raises(InsideError, match="known: assertion_removed"):
        run(trees, kinds=["zzzzzz"])


def test_a_missing_stock_tree_is_an_error(trees: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(InsideError, match="the stock tree is missing"):
        run((tmp_path / "none", trees[1]))


def test_clipping_is_said_and_counts_stay_exact(trees: tuple[Path, Path]) -> None:
    old = "".join(f"v{n} = {n}\n" for n in range(200))
    new = "".join(f"v{n} = {n + (n % 20 == 0)}\n" for n in range(200))
    put(trees, "a.py", old, new)
    reply = run(trees, max_hunks=4)
    assert len(reply["files"][0]["hunks"]) == 4
    assert (reply["hunk_count"], reply["kind_counts"]) == (10, {"constant_changed": 10})
    assert reply["left_out"] == ["6 of 10 hunks are not shown (max_hunks 4); narrow paths or kinds"]
    hunks = run(trees, max_text=100)["files"][0]["hunks"]
    # The first hunk takes 55 of the 100 characters, two lines of the second fit, and every header is kept.
    assert [hunk["text_left_out"] for hunk in hunks] == [0, 6, 8, 8, 8, 8, 8, 8, 8, 8]


def test_when_time_is_up_hunks_are_listed_unclassified_and_it_is_said(trees: tuple[Path, Path]) -> None:
    put(trees, "a.py", "x = 1\n", "x = 2\n")
    reply = run(trees, seconds=-1)
    (hunk,) = reply["files"][0]["hunks"]
    assert (hunk["changes"], hunk["text"]) == ([], "@@ -1,1 +1,1 @@\n-x = 1\n+x = 2")
    assert reply["kind_counts"] == {}
    assert reply["left_out"] == ["1 files are without classes, the time for classifying was spent: a.py"]


def test_two_long_texts_without_common_lines_take_no_long_time(trees: tuple[Path, Path]) -> None:
    put(trees, "a.txt", "".join(f"a {n % 7}\n" for n in range(30_000)), "".join(f"b {n % 7}\n" for n in range(30_000)))
    start = time.monotonic()
    reply = run(trees)
    assert (reply["files"][0]["added_lines"], reply["files"][0]["removed_lines"]) == (30_000, 30_000)
    assert time.monotonic() - start < 10


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_reported(trees: tuple[Path, Path]) -> None:
    put(trees, "a.py", "x = 1\n", "x = 2\n")
    (trees[1] / "a.py").chmod(0)
    reply = run(trees)
    assert reply["skipped"] == [{"file": "a.py", "reason": "can't be read: Permission denied"}]
