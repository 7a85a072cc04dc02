"""Patches that can't be read or don't fit: each says which file, which hunk, which line; nothing is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sleuth.sandbox.applying import apply_patches
from sleuth.sandbox.clone import tree_digest
from sleuth.sandbox.deployment import PatchEntry
from sleuth.sandbox.errors import PatchError
from sleuth.sandbox.layer import Layer
from sleuth.sandbox.patches import read_patches

from ..support.trees import write

CHANGE = "@@ -1 +1 @@\n-1\n+2\n"


def plain(name: str, body: str = CHANGE) -> str:
    return f"--- a/{name}\n+++ b/{name}\n{body}"


def new(name: str, mode: str = "100644", text: str = "n") -> str:
    head = f"diff --git a/{name} b/{name}\nnew file mode {mode}\n--- /dev/null\n+++ b/{name}\n"
    return f"{head}@@ -0,0 +1 @@\n+{text}\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = write(
        tmp_path / "tree", {"a.py": "1\n2\n3\n", "d/b.py": "1\n", "crlf": b"1\r\n", "bare": "1", "sglang/x": "1\n"}
    )
    outside = write(tmp_path / "outside", {"victim": "1\n", "other": "1\n"})
    (tree / "out").symlink_to(outside)
    (tree / "victim").symlink_to(outside / "victim")
    (tree / "inner").symlink_to("d")
    os.mkfifo(tree / "pipe")
    return tree


DIFFERS = "a.py: hunk 1 (line 2) doesn't fit: at line "
ENDS = "{}: hunk 1 (line 1) doesn't fit: at line 1 the patch expects the line end '\\n', the tree has '{}'"
REFUSED = {
    "dots": (plain("../outside/victim"), "'../outside/victim': a patch may only name files inside the tree"),
    "deep dots": (plain("d/../../outside/victim"), "'d/../../outside/victim': a patch may only name files inside"),
    "new dots": (new("../evil"), "'../evil': a patch may only name files inside the tree"),
    "quoted dots": (
        '--- "a/\\056\\056/victim"\n+++ "b/\\056\\056/victim"\n' + CHANGE,
        "'../victim': a patch may only name",
    ),
    "absolute": ("--- /outside/victim.py\n+++ /outside/victim.py\n" + CHANGE, "none of its files is in "),
    "folder link out": (plain("out/other"), "out/other: out is a symbolic link to "),
    "new through a link": (new("out/evil") + plain("a.py"), "out/evil: out is a symbolic link to "),
    "through a link inside": (plain("inner/b.py"), "inner/b.py: inner is a symbolic link to d; the patch must name"),
    "file link": (plain("victim"), "victim: a symbolic link in the tree"),
    "pipe": (plain("pipe"), "pipe: not a regular file in "),
    "folder": (plain("d"), "d: not a regular file in "),
    "missing": (plain("d/c.py") + plain("a.py"), "d/c.py isn't in {tree}; did you mean 'b.py'?"),
    "all missing": (plain("sglan/y"), "none of its files is in {tree}, e.g. sglan/y; did you mean 'sglang'?"),
    "other text": (
        plain("a.py", "@@ -2 +2 @@\n-two\n+zwei\n"),
        DIFFERS + "2 the patch expects 'two', the tree has '2'",
    ),
    "past the end": (
        plain("a.py", "@@ -3,2 +3,2 @@\n 3\n-4\n+5\n"),
        "a.py: hunk 1 (line 3) doesn't fit: at line 4 the patch expects '4', the file ends",
    ),
    "already in": (plain("a.py", "@@ -2 +2 @@\n-two\n+2\n"), "a.py: hunk 1 (line 2) is already in the tree"),
    "second hunk": (plain("a.py", "@@ -1 +1 @@\n-1\n+one\n@@ -3 +3 @@\n-4\n+5\n"), "a.py: hunk 2 (line 3) doesn't fit"),
    "line ends": (plain("crlf"), ENDS.format("crlf", "\\r\\n")),
    "end of file": (plain("bare"), ENDS.format("bare", "")),
    "over a file": (new("a.py"), "a.py: the patch creates it, but it is already in the tree"),
    "over a folder": (new("d") + plain("a.py"), "d: not a regular file in "),
    "rename onto a file": (
        "diff --git a/a.py b/d/b.py\nsimilarity index 100%\nrename from a.py\nrename to d/b.py\n",
        "d/b.py: the patch creates it, but it is already in the tree",
    ),
    "binary": (
        "diff --git a/a.py b/a.py\nindex 1..2 100644\nBinary files a/a.py and b/a.py differ\n",
        "a.py: a binary change can't be applied from a text diff",
    ),
    "git binary": (
        "diff --git a/a.py b/a.py\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n",
        "a.py: a binary change can't be applied from a text diff",
    ),
    "mode": (new("z", mode="170000"), "z: 170000 is no file mode that git knows"),
    "no octal mode": (new("z", mode="100999"), "z: 100999 is no file mode that git knows"),
    "empty link": (new("z", mode="120000").replace("@@ -0,0 +1 @@\n+n\n", ""), "z: can't be written to "),
    "no name": ("--- \n+++ \n" + CHANGE, "a change without a file name"),
    "long name": (new("x" * 300) + plain("a.py"), f"{'x' * 300}: can't be written to "),
    "empty": ("", "no change in it; a unified diff"),
    "prose": ("hello\nworld\n", "no change in it; a unified diff"),
    "bytes": (bytes(range(256)), "no change in it; a unified diff"),
    "only a mail": ("From: x\nSubject: y\n\ntext\n", "no change in it; a unified diff"),
    "hunk without file": (CHANGE, "not a unified diff: Unexpected hunk found"),
    "cut short": (plain("a.py", "@@ -1,3 +1,3 @@\n-1\n"), "not a unified diff: Hunk is shorter than expected"),
    "too long a hunk": (
        plain("a.py", "@@ -1 +1,2 @@\n-1\n-2\n+x\n"),
        "not a unified diff: Hunk is longer than expected",
    ),
    "no hunk line": (plain("a.py", "@@ -1,2 +1,2 @@\n-1\nx\n"), "not a unified diff: Hunk diff line expected"),
    "utf-16": (plain("a.py").encode("utf-16"), "UTF-16 text, as PowerShell writes; make it with"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(tmp_path: Path, tree: Path, case: str) -> None:
    text, said = REFUSED[case]
    path = tmp_path / "bad.patch"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    (layer := tmp_path / "layer").mkdir()
    before = [tree_digest(tree), tree_digest(tmp_path / "outside")]
    with pytest.raises(PatchError) as error:
        apply_patches(Layer(tree, layer), read_patches(PatchEntry(path=path)))
    assert str(error.value).startswith(f"{path}: " + said.replace("{tree}", str(tree)))
    assert [tree_digest(tree), tree_digest(tmp_path / "outside")] == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.patch", "layer", "outside", "tree"]


def test_taking_out_what_is_not_in(tmp_path: Path, tree: Path) -> None:
    (tmp_path / "p.patch").write_text(plain("a.py", "@@ -2 +2 @@\n-2\n+two\n"))
    (layer := tmp_path / "layer").mkdir()
    with pytest.raises(PatchError, match=r"a.py: hunk 1 \(line 2\) isn't in the tree, so it can't be taken out"):
        apply_patches(Layer(tree, layer), read_patches(PatchEntry(path=tmp_path / "p.patch")), reverse=True)


def test_places_that_hold_no_patch(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    write(tmp_path / "none", {"x.txt": ""})
    (big := tmp_path / "big").touch()
    os.truncate(big, (64 << 20) + 1)
    for name, said in {
        "pipe": "not a regular file",
        "none": "no *.patch or *.diff in this folder",
        "missing": "not a regular file",
        "big": "67,108,865 bytes; a patch over 67,108,864 isn't read",
    }.items():
        with pytest.raises(PatchError) as error:
            read_patches(PatchEntry(path=tmp_path / name))
        assert str(error.value) == f"{tmp_path / name}: {said}"
