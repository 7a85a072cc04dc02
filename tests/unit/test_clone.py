"""The clone: what its digest sees, that it copies nothing, and that a copy shows what an overlay shows."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from sleuth.sandbox.clone import Clone, View, copy_view, make_clone, tree_digest, walk
from sleuth.sandbox.deployment import Deployment, load_deployment
from sleuth.sandbox.errors import ConfigError, PatchError, SandboxUnavailable

from ..support.trees import hostile, write

PATCH = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
DELETE = "diff --git a/b.py b/b.py\ndeleted file mode 100644\n--- a/b.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-y = 1\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = write(tmp_path / "tree", {"a.py": "x = 1\n", "b.py": "y = 1\n", "d/c.py": "z = 1\n", ".git/HEAD": "ref\n"})
    (tree / "link").symlink_to("a.py")
    return tree


def whiteout(path: Path) -> None:
    path.unlink()
    os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))


def relink(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


SEEN: dict[str, Callable[[Path], object]] = {
    "content": lambda root: (root / "a.py").write_text("x = 2\n"),
    "content, same size and time": lambda root: [
        (root / "a.py").write_text("x = 3\n"),
        os.utime(root / "a.py", ns=(1, 1)),
    ],
    "executable": lambda root: (root / "a.py").chmod(0o755),
    "name": lambda root: (root / "a.py").rename(root / "A.py"),
    "place": lambda root: (root / "a.py").rename(root / "d/a.py"),
    "new": lambda root: (root / "new").touch(),
    "new folder": lambda root: (root / "new").mkdir(),
    "gone": lambda root: (root / "b.py").unlink(),
    "link target": lambda root: relink(root / "link", "b.py"),
    "link to file": lambda root: [(root / "link").unlink(), (root / "link").write_text("x = 1\n")],
    "whiteout": lambda root: whiteout(root / "b.py"),
    "pipe": lambda root: os.mkfifo(root / "pipe"),
    "two files swapped": lambda root: [
        (root / "a.py").rename(root / "t"),
        (root / "b.py").rename(root / "a.py"),
        (root / "t").rename(root / "b.py"),
    ],
    "below a folder": lambda root: (root / "d/c.py").write_text("z = 2\n"),
    ".git that is a file": lambda root: (root / "d/.git").write_text("gitdir: x\n"),
}


@pytest.mark.parametrize("change", SEEN)
def test_the_digest_sees(tree: Path, change: str) -> None:
    before = tree_digest(tree)
    assert tree_digest(tree) == before
    SEEN[change](tree)
    assert tree_digest(tree) != before


UNSEEN: dict[str, Callable[[Path], object]] = {
    "time": lambda root: os.utime(root / "a.py", ns=(1, 1)),
    "umask": lambda root: (root / "a.py").chmod(0o600),
    ".git": lambda root: (root / ".git/HEAD").write_text("other\n"),
    "order of creation": lambda root: [(root / "b.py").unlink(), (root / "b.py").write_text("y = 1\n")],
}


@pytest.mark.parametrize("change", UNSEEN)
def test_the_digest_overlooks(tree: Path, change: str) -> None:
    before = tree_digest(tree)
    UNSEEN[change](tree)
    assert tree_digest(tree) == before


def test_names_can_not_be_shaped_to_collide(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one", {"b\nc": "x"}), write(tmp_path / "two", {"c": "x"})
    (one / "a").symlink_to("t")
    (two / "a").symlink_to("t\nb")
    assert tree_digest(one) != tree_digest(two)


def test_the_digest_is_the_same_elsewhere_and_known(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, {"a": "1", "b/c": "2"})
    assert tree_digest(tmp_path / "one") == tree_digest(tmp_path / "two")
    assert tree_digest(tmp_path / "nothing") == tree_digest(write(tmp_path / "empty", {}))


def test_links_are_never_followed(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"secret": "s"})
    tree = write(tmp_path / "tree", {"a": "1"})
    (tree / "up").symlink_to(outside)
    (tree / "round").symlink_to(".")
    (tree / "file").symlink_to(outside / "secret")
    assert [relative for relative, _, _ in walk(tree)] == ["a", "file", "round", "up"]
    before = tree_digest(tree)
    (outside / "secret").write_text("other")
    assert tree_digest(tree) == before
    copy_view(View(tree), tmp_path / "copy")
    links = {name: str((tmp_path / "copy" / name).readlink()) for name in ("file", "round", "up")}
    assert links == {"file": str(outside / "secret"), "round": ".", "up": str(outside)}


def test_a_tree_that_changes_under_the_walk(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {f"{n}/{n}": "x" for n in range(5)})
    found = []
    for relative, _, _ in walk(tree):
        found.append(relative)
        for path in (tree / "3/3", tree / "3"):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
    assert found == ["0", "1", "2", "4", "0/0", "1/1", "2/2", "4/4"]


# --- A copy


def test_a_copy_has_everything_and_what_can_not_be_read_stays_so(tmp_path: Path) -> None:
    tree = hostile(tmp_path / "tree")
    (tree / "closed").mkdir()
    (tree / "closed").chmod(0)
    (tree / "prog").touch(0o755)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tree / "sock"))
        copy_view(View(tree), tmp_path / "copy")
    names = [[name for name, _, _ in walk(root)] for root in (tree, tmp_path / "copy")]
    assert names[0] == names[1]
    if os.geteuid() == 0:  # others can't read all of it
        assert tree_digest(tmp_path / "copy") == tree_digest(tree)
    for name in ("secret.py", "closed"):
        assert (tmp_path / "copy" / name).stat().st_mode & 0o555 == 0
    for name, kind in {
        "pipe": stat.S_IFIFO,
        "sock": stat.S_IFSOCK,
        "out": stat.S_IFLNK,
        "secret.py": stat.S_IFREG,
    }.items():
        assert stat.S_IFMT((tmp_path / "copy" / name).lstat().st_mode) == kind
    assert (tmp_path / "copy/prog").stat().st_mode & 0o777 == 0o755


def test_a_copy_of_a_layered_view(tmp_path: Path) -> None:
    lower = write(tmp_path / "lower", {"keep": "1", "change": "1", "gone": "1", "file": "1", "folder/x": "1"})
    layer = write(tmp_path / "layer", {"change": "2", "new/n": "2", "file/inner": "2", "folder": "2"})
    (layer / "gone").touch()
    whiteout(layer / "gone")
    copy_view(View(lower, layer), tmp_path / "copy")
    files = {
        str(p.relative_to(tmp_path / "copy")): p.read_text() for p in (tmp_path / "copy").rglob("*") if p.is_file()
    }
    assert files == {"keep": "1", "change": "2", "new/n": "2", "file/inner": "2", "folder": "2"}


def test_a_copy_never_goes_into_the_tree_itself(tree: Path) -> None:
    before = tree_digest(tree)
    with pytest.raises(SandboxUnavailable, match=r"tree/d/copy lies inside .*tree, so it can't hold a copy of it"):
        copy_view(View(tree), tree / "d/copy")
    assert tree_digest(tree) == before


# --- make_clone


def describe(tmp_path: Path, text: str) -> Deployment:
    (tmp_path / "sleuth.yaml").write_text(text)
    return load_deployment(tmp_path)


@pytest.fixture
def patches(tmp_path: Path) -> Path:
    return write(tmp_path / "patches", {"1-change.patch": PATCH, "2-delete.patch": DELETE})


def test_stock_with_patches(tmp_path: Path, tree: Path, patches: Path) -> None:
    before = tree_digest(tree)
    clone = make_clone(describe(tmp_path, "name: x\nstock: tree\npatches: [patches]\n"), tmp_path / "layers")
    layer = tmp_path / "layers/patched"
    assert (clone.tree, clone.stock) == (View(tree, layer), View(tree))
    assert [(p.id, p.files) for p in clone.patches] == [("1-change", ["a.py"]), ("2-delete", ["b.py"])]
    assert sorted(p.name for p in layer.rglob("*")) == ["a.py", "b.py"]  # nothing else was copied
    assert (layer / "a.py").read_text() == "x = 2\n"
    assert (clone.originals(), tree_digest(tree)) == ([tree], before)


def test_a_patched_tree_gives_its_stock_back(tmp_path: Path, tree: Path, patches: Path) -> None:
    (tree / "a.py").write_text("x = 2\n")
    (tree / "b.py").unlink()
    clone = make_clone(describe(tmp_path, "name: x\ntree: tree\npatches: [patches]\n"), tmp_path / "layers")
    layer = tmp_path / "layers/unpatched"
    assert (clone.tree, clone.stock) == (View(tree), View(tree, layer))
    assert {p.name: p.read_text() for p in layer.iterdir()} == {"a.py": "x = 1\n", "b.py": "y = 1\n"}


def test_a_tree_alone_and_with_its_stock(tmp_path: Path, tree: Path, patches: Path) -> None:
    write(tmp_path / "stock", {"a.py": "x = 0\n"})
    alone = make_clone(describe(tmp_path, "name: x\ntree: tree\n"), tmp_path / "layers")
    assert (alone.tree, alone.stock, alone.originals()) == (View(tree), None, [tree])
    assert not (tmp_path / "layers").exists()
    both = make_clone(
        describe(tmp_path, "name: x\ntree: tree\nstock: stock\npatches: [patches]\n"), tmp_path / "layers"
    )
    assert (both.tree, both.stock) == (View(tree), View(tmp_path / "stock"))
    assert both.originals() == [tmp_path / "stock", tree]
    assert [note.startswith(f"the patches can't be told apart in {tree}: ") for note in both.notes] == [True]


def test_the_clones_digest_is_of_all_it_shows(tmp_path: Path, tree: Path) -> None:
    layer, stock = write(tmp_path / "layer", {"a.py": "x = 2\n"}), write(tmp_path / "stock", {"a.py": "x = 1\n"})
    shapes = [
        Clone(View(tree), None, [], []),
        Clone(View(tree, layer), None, [], []),
        Clone(View(tree), View(tree), [], []),
        Clone(View(tree, layer), View(tree), [], []),
        Clone(View(tree), View(tree, layer), [], []),
        Clone(View(tree), View(stock), [], []),
        Clone(View(stock), View(tree), [], []),
    ]
    first = [shape.digest() for shape in shapes]
    assert (len(set(first)), [shape.digest() for shape in shapes]) == (len(shapes), first)
    (layer / "a.py").write_text("x = 3\n")
    changed = [before != after.digest() for before, after in zip(first, shapes, strict=True)]
    assert changed == [False, True, False, True, True, False, False]


def test_what_contradicts_itself(tmp_path: Path, tree: Path, patches: Path) -> None:
    write(tmp_path / "more", {"1-change.diff": PATCH})
    twice = describe(tmp_path, "name: x\nstock: tree\npatches:\n  - patches\n  - more\n")
    with pytest.raises(ConfigError, match=r"sleuth.yaml:3: patches: .*are both called '1-change'; give one an `id`"):
        make_clone(twice, tmp_path / "layers")
    applied = describe(tmp_path, "name: x\ntree: tree\npatches: [patches]\n")
    with pytest.raises(PatchError, match=r"2-delete.patch: b.py: the patch deletes it, but it is already in the tree"):
        make_clone(applied, tmp_path / "layers")


def test_a_clone_made_again_starts_afresh(tmp_path: Path, tree: Path, patches: Path) -> None:
    deployment = describe(tmp_path, "name: x\nstock: tree\npatches: [patches]\n")
    first = make_clone(deployment, tmp_path / "layers").digest()
    (tmp_path / "layers/patched/stray").write_text("left by a run that was killed")
    assert make_clone(deployment, tmp_path / "layers").digest() == first
