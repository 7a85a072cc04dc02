"""Patch files read and applied; what git and GNU patch make of the same file is the measure."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sleuth.sandbox.applying import apply_patches
from sleuth.sandbox.clone import View, copy_view, tree_digest
from sleuth.sandbox.deployment import PatchEntry
from sleuth.sandbox.layer import Layer
from sleuth.sandbox.patches import located, read_patches

from ..support.trees import write

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git makes the patches")

LINES = "".join(f"line {n}\n" for n in range(1, 41))


def git(root: Path, *words: str) -> str:
    settings = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.autocrlf=false", "-c", "commit.gpgsign=false"]
    command = ["git", *settings, *words]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, env={**os.environ, "LC_ALL": "C"})
    return done.stdout.decode("utf-8", "surrogateescape")


def listing(root: Path) -> dict[str, tuple[str, bytes]]:
    """Every file below `root` with its kind and content, git's own folder apart."""
    found = {}
    for path in sorted(root.rglob("*")):
        if ".git" in path.relative_to(root).parts or (path.is_dir() and not path.is_symlink()):
            continue
        mode = path.lstat().st_mode
        kind = "link" if stat.S_ISLNK(mode) else "run" if mode & 0o100 else "file"
        found[str(path.relative_to(root))] = (
            kind,
            os.fsencode(path.readlink()) if kind == "link" else path.read_bytes(),
        )
    return found


class Repository:
    """A git repository before and after one change, and the patch between."""

    def __init__(self, place: Path, files: dict[str, str | bytes]) -> None:
        self.root, self.place = write(place / "repo", files), place
        git(self.root, "init", "-q", "-b", "main")
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", "before")
        self.before = place / "before"
        shutil.copytree(self.root, self.before, symlinks=True, ignore=shutil.ignore_patterns(".git"))

    def change(self, edit: Callable[[Path], object]) -> Path:
        edit(self.root)
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", "after")
        return self.patch()

    def patch(self, *format_patch: str) -> Path:
        text = git(self.root, "format-patch", "-1", "--stdout", *format_patch)
        path = self.place / "the.patch"
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        return path


def applied(tree: Path, patch: Path, place: Path, *, reverse: bool = False) -> tuple[Path, list[str]]:
    """The tree with the patch applied, as a copy; the tree itself stays as it is."""
    digest = tree_digest(tree)
    place.mkdir()
    (layer := place / "layer").mkdir()
    notes = apply_patches(Layer(tree, layer), read_patches(PatchEntry(path=patch)), reverse=reverse)
    assert tree_digest(tree) == digest
    copy_view(View(tree, layer), place / "result")
    return place / "result", notes


def _edit(name: str, old: str, new: str) -> Callable[[Path], object]:
    return lambda root: (root / name).write_text((root / name).read_text().replace(old, new))


def _binary_free_rename(root: Path) -> None:
    (root / "to").mkdir()
    (root / "a.txt").rename(root / "to/b.txt")
    (root / "to/b.txt").write_text((root / "to/b.txt").read_text().replace("line 3\n", "line three\n"))


def _folder_for_file(root: Path) -> None:
    (root / "x").unlink()
    write(root, {"x/inner.txt": "inner\n"})


def _file_for_folder(root: Path) -> None:
    shutil.rmtree(root / "d")
    (root / "d").write_text("now a file\n")


def _relink(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("x")
    (root / "plain").symlink_to("a.txt")


ODD = ("sp ace", 'qu"ote', "tab\there", "café", "new\nline")

CHANGES: dict[str, Callable[[Path], object]] = {
    "edit": _edit("a.txt", "line 20\n", "line twenty\n"),
    "several hunks": lambda root: [_edit("a.txt", f"line {n}\n", f"new {n}\nand\n")(root) for n in (2, 20, 39)],
    "first and last line": lambda root: (root / "a.txt").write_text("first\n" + LINES[7:-8] + "last\n"),
    "no newline at the end": lambda root: (root / "a.txt").write_text(LINES.rstrip("\n")),
    "newline at the end": lambda root: (root / "bare").write_text("no newline\n"),
    "still no newline": lambda root: (root / "bare").write_text("other"),
    "emptied": lambda root: (root / "a.txt").write_text(""),
    "new file": lambda root: write(root, {"new/deep/file.txt": "a\nb\n", "empty.txt": ""}),
    "new program": lambda root: [write(root, {"run": "#!/bin/sh\n"}), (root / "run").chmod(0o755)],
    "deleted file": lambda root: [(root / "a.txt").unlink(), (root / "d/only.txt").unlink()],
    "rename": _binary_free_rename,
    "pure rename": lambda root: (root / "a.txt").rename(root / "z.txt"),
    "renamed program": lambda root: (root / "prog").rename(root / "prog2"),
    "mode": lambda root: (root / "a.txt").chmod(0o755),
    "mode off and edit": lambda root: [(root / "prog").chmod(0o644), _edit("prog", "echo", "print")(root)],
    "edited program": _edit("prog", "echo", "print"),
    "crlf": lambda root: (root / "crlf").write_bytes(b"a\r\nB\r\nc\r\n"),
    "crlf to lf": lambda root: (root / "crlf").write_bytes(b"a\nb\nc\n"),
    "form feed": lambda root: (root / "feed").write_bytes(b"x\n\x0c\ny = 2\x0b\x1c\n\xe2\x80\xa8z\n"),
    "not utf-8": lambda root: (root / "latin").write_bytes(b"caf\xe9\nnew \xff\n"),
    "blank lines": lambda root: (root / "blank").write_text("\n\n\n\nx\n\n"),
    "lines like headers": lambda root: (root / "a.txt").write_text(LINES + "-- a\n--- b\n+++ c\n@@ -1 +1 @@\n"),
    "odd names": lambda root: [(root / name).write_text("2\n") for name in ODD],
    "folder for a file": _folder_for_file,
    "file for a folder": _file_for_folder,
    "symbolic links": _relink,
}  # fmt: skip

FILES: dict[str, str | bytes] = {
    "a.txt": LINES,
    "bare": "no newline",
    "d/only.txt": "x\n",
    "prog": "#!/bin/sh\necho\necho\n",
    "crlf": b"a\r\nb\r\nc\r\n",
    "feed": b"x\n\x0c\ny = 1\x0b\x1c\n\xe2\x80\xa8z\n",
    "latin": b"caf\xe9\nold\n",
    "blank": "\n\n\nx\n\n",
    "x": "x\n",
    **dict.fromkeys(ODD, "1\n"),
}


FORMATS = [(), ("-U0",), ("--no-prefix",), ("-M", "-C", "--find-copies-harder")]


@pytest.mark.parametrize("name", CHANGES)
def test_git_patches_make_what_git_makes_and_come_out_again(tmp_path: Path, name: str) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo/prog").touch(0o755)
    (tmp_path / "repo/link").symlink_to("a.txt")
    repository = Repository(tmp_path, FILES)
    repository.change(CHANGES[name])
    assert listing(repository.root) != listing(repository.before)
    # With a space in a name and no prefix, `sp ace sp ace` could be cut in several places.
    for number, options in enumerate(f for f in FORMATS if (name, f) != ("odd names", ("--no-prefix",))):
        patch = repository.patch(*options)
        after, notes = applied(repository.before, patch, tmp_path / f"{number}")
        assert (listing(after), notes) == (listing(repository.root), []), options
        back, notes = applied(after, patch, tmp_path / f"{number}-back", reverse=True)
        assert (listing(back), notes) == (listing(repository.before), []), options


def test_a_copy_leaves_its_source_and_reads_it_as_it_was(tmp_path: Path) -> None:
    def edit(root: Path) -> None:
        shutil.copy(root / "a.txt", root / "copy.txt")
        _edit("a.txt", "line 30\n", "thirty\n")(root)

    repository = Repository(tmp_path, FILES)
    repository.change(edit)
    patch = repository.patch("-C")
    assert "copy from a.txt" in patch.read_text(errors="replace")
    after, _ = applied(repository.before, patch, tmp_path / "forward")
    assert listing(after) == listing(repository.root)
    back, _ = applied(after, patch, tmp_path / "back", reverse=True)
    assert listing(back) == listing(repository.before)


def test_two_files_that_change_places(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"a": "1\n", "b": "2\n"})
    one = "diff --git a/{0} b/{1}\nsimilarity index 100%\nrename from {0}\nrename to {1}\n"
    (tmp_path / "p.patch").write_text(f"From {'0' * 40} Mon\n" + one.format("a", "b") + one.format("b", "a"))
    after, _ = applied(tree, tmp_path / "p.patch", tmp_path / "forward")
    assert listing(after) == {"a": ("file", b"2\n"), "b": ("file", b"1\n")}


@pytest.mark.parametrize("mails", [True, False])
def test_several_commits_in_one_file(tmp_path: Path, mails: bool) -> None:
    repository = Repository(tmp_path, FILES)
    for edit in (CHANGES["edit"], CHANGES["rename"], CHANGES["new file"], _edit("to/b.txt", "line 39\n", "39\n")):
        repository.change(edit)
    text = git(repository.root, "format-patch", "--root", "--stdout", "HEAD~4..HEAD")
    if not mails:
        text = "".join(git(repository.root, "diff", f"HEAD~{n}", f"HEAD~{n - 1}") for n in (4, 3, 2, 1))
    (tmp_path / "all.patch").write_bytes(text.encode("utf-8", "surrogateescape"))
    after, _ = applied(repository.before, tmp_path / "all.patch", tmp_path / "forward")
    assert listing(after) == listing(repository.root)
    back, _ = applied(after, tmp_path / "all.patch", tmp_path / "back", reverse=True)
    assert listing(back) == listing(repository.before)


# --- diff -u, measured by GNU patch


@pytest.mark.skipif(not shutil.which("patch"), reason="GNU patch is the measure")
@pytest.mark.parametrize("options", [["-ru"], ["-ruN"], ["-rN", "-U0"]], ids=str)
def test_diff_u_makes_what_patch_makes(tmp_path: Path, options: list[str]) -> None:
    old = write(tmp_path / "old", {"p/a.txt": LINES, "p/gone.txt": "x\n", "p/bare": "x", "p/emptied": "x\n"})
    new = write(
        tmp_path / "new", {"p/a.txt": LINES.replace("line 9\n", "nine\n"), "p/fresh.txt": "f\n", "p/bare": "y\n"}
    )
    (new / "p/emptied").touch()
    said = subprocess.run(["diff", *options, "old", "new"], cwd=tmp_path, capture_output=True, check=False).stdout
    (tmp_path / "the.patch").write_bytes(said)
    expected = tmp_path / "expected"
    shutil.copytree(old, expected)
    subprocess.run(["patch", "-s", "-p1", "-i", "../the.patch"], cwd=expected, check=True)
    after, notes = applied(old, tmp_path / "the.patch", tmp_path / "forward")
    assert (listing(after), notes) == (listing(expected), [])
    back, _ = applied(after, tmp_path / "the.patch", tmp_path / "back", reverse=True)
    assert listing(back) == listing(old)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("/opt/stock/sglang/x.py", "/srv/deployed/v2/sglang/x.py"),
        ("old/python/sglang/x.py\t2026-01-01 10:00:00", "new/python/sglang/x.py\t2026-01-02 10:00:00"),
        ("sglang/x.py.orig", "sglang/x.py"),
        ("sglang/x.py", "sglang/x.py.new"),
        ("a/python/sglang/x.py", "b/python/sglang/x.py"),
        ("i/sglang/x.py", "w/sglang/x.py"),
        ("x.py", "x.py"),
    ],
)
def test_names_that_a_tool_gave_find_their_file(tmp_path: Path, source: str, target: str) -> None:
    files: dict[str, str | bytes] = {"x.py" if source == "x.py" else "sglang/x.py": "old\n"}
    tree = write(tmp_path / "tree", files)
    (tmp_path / "p.diff").write_text(f"--- {source}\n+++ {target}\n@@ -1 +1 @@\n-old\n+new\n")
    after, notes = applied(tree, tmp_path / "p.diff", tmp_path / "forward")
    assert (listing(after), notes) == (dict.fromkeys(files, ("file", b"new\n")), [])
    [patch] = read_patches(PatchEntry(path=tmp_path / "p.diff"))
    assert located(patch, lambda name: (tree / name).exists()) == list(files)


# --- Where a patch lies in the tree


def test_a_repository_patch_fits_the_package_it_ships(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"sglang/srt/a.py": "1\n", "LICENSE": "l\n"})
    text = ""
    for name, old, new in [("LICENSE", "l", "m"), ("python/sglang/srt/a.py", "1", "2"), ("test/srt/t.py", "1", "2")]:
        text += f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-{old}\n+{new}\n"
    new = "python/sglang/srt/new.py"
    text += f"diff --git a/{new} b/{new}\nnew file mode 100644\n--- /dev/null\n+++ b/{new}\n@@ -0,0 +1 @@\n+n\n"
    (tmp_path / "p.patch").write_text(
        text.partition("diff --git a/python")[1] + text.partition("diff --git a/python")[2]
    )
    after, notes = applied(tree, tmp_path / "p.patch", tmp_path / "forward")
    expected = {"sglang/srt/a.py": b"2\n", "LICENSE": b"l\n", "sglang/srt/new.py": b"n\n"}
    assert {name: content for name, (_, content) in listing(after).items()} == expected
    assert notes == ["p: test/srt/t.py left out: the tree doesn't ship test/ files of this kind"]


def test_a_patch_that_only_adds_finds_the_package_too(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"sglang/a.py": "1\n"})
    name = "python/sglang/new.py"
    (tmp_path / "p.patch").write_text(
        f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+n\n"
    )
    after, _ = applied(tree, tmp_path / "p.patch", tmp_path / "forward")
    assert sorted(listing(after)) == ["sglang/a.py", "sglang/new.py"]


def test_patches_build_on_each_other_and_come_out_last_first(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"a": "1\n"})
    folder = write(
        tmp_path / "patches",
        {
            "1.patch": "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n",
            "2.patch": "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n",
            "3.diff": "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-2\n+3\n",
            "readme.txt": "no patch",
        },
    )
    assert [p.id for p in read_patches(PatchEntry(path=folder))] == ["1", "2", "3"]
    after, _ = applied(tree, folder, tmp_path / "forward")
    assert listing(after) == {"a": ("run", b"3\n")}
    back, _ = applied(after, folder, tmp_path / "back", reverse=True)
    assert listing(back) == {"a": ("file", b"1\n")}


def test_a_hunk_that_moved_is_found_and_noted(tmp_path: Path) -> None:
    repository = Repository(tmp_path, {"a.txt": LINES})
    patch = repository.change(_edit("a.txt", "line 30\n", "thirty\n"))
    tree = write(tmp_path / "tree", {"a.txt": "new\n" * 5 + LINES})
    after, notes = applied(tree, patch, tmp_path / "forward")
    assert listing(after)["a.txt"][1] == ("new\n" * 5 + LINES.replace("line 30\n", "thirty\n")).encode()
    assert notes == ["a.txt: hunk 1 found +5 lines from where it says"]


def test_of_two_places_the_nearer_one_is_taken(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"a": "x\n" + "-\n" * 10 + "x\n" + "-\n" * 3})
    (tmp_path / "p.patch").write_text("--- a/a\n+++ b/a\n@@ -10 +10 @@\n-x\n+y\n")
    after, _ = applied(tree, tmp_path / "p.patch", tmp_path / "forward")
    assert listing(after)["a"][1] == ("x\n" + "-\n" * 10 + "y\n" + "-\n" * 3).encode()


def test_blank_lines_between_diffs_are_no_context(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"a": "1\n", "b": "1\n"})
    one = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-1\n+2\n\n"
    (tmp_path / "p.patch").write_text(one.format("a") + one.format("b"))
    after, _ = applied(tree, tmp_path / "p.patch", tmp_path / "forward")
    assert {content for _, content in listing(after).values()} == {b"2\n"}


def test_a_patch_file_converted_to_crlf_is_read_as_it_was(tmp_path: Path) -> None:
    repository = Repository(tmp_path, FILES)
    patch = repository.change(lambda root: [CHANGES["edit"](root), CHANGES["new file"](root)])
    patch.write_bytes(b"\xef\xbb\xbf" + patch.read_bytes().replace(b"\n", b"\r\n"))
    after, _ = applied(repository.before, patch, tmp_path / "forward")
    assert listing(after) == listing(repository.root)


def test_a_submodule_is_left_out_aloud(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"a": "1\n", "sub/x": "x\n"})
    text = "diff --git a/sub b/sub\nindex 1111111..2222222 160000\n--- a/sub\n+++ b/sub\n@@ -1 +1 @@\n"
    text += "-Subproject commit 1\n+Subproject commit 2\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"
    (tmp_path / "p.patch").write_text(text)
    after, notes = applied(tree, tmp_path / "p.patch", tmp_path / "forward")
    assert (listing(after)["a"][1], notes) == (
        b"2\n",
        ["p: sub left out: a submodule, whose files aren't in the patch"],
    )


def test_many_hunks_in_a_long_file_are_quick(tmp_path: Path) -> None:
    lines = [f"{n}\n" for n in range(60_000)]
    tree = write(tmp_path / "tree", {"a": "".join(["moved\n", *lines])})
    text = "".join(f"@@ -{n + 1} +{n + 1} @@\n-{n}\n+x\n" for n in range(0, 60_000, 100))
    (tmp_path / "p.patch").write_text(f"--- a/a\n+++ b/a\n{text}")
    start = time.monotonic()
    after, notes = applied(tree, tmp_path / "p.patch", tmp_path / "forward")
    assert (listing(after)["a"][1].count(b"x\n"), len(notes)) == (600, 1)
    assert time.monotonic() - start < 5
