"""Digests of trees that are believed as long as the stamps of their files stay."""

import os
import time
from pathlib import Path

import pytest

from sleuth.sandbox import stamps
from sleuth.sandbox.stamps import Stamps

from ..support.trees import hostile, write

KINDS = (".py",)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = write(tmp_path / "tree", {"a.py": "a = 1\n", "p/b.py": "b = 1\n", "notes.txt": "x"})
    settle(root)
    return root


def settle(root: Path) -> None:
    """Make files look as if they had been there for a while, as far as that can be done."""
    for path in root.rglob("*.py"):
        os.utime(path, (1_000_000, 1_000_000))


def digest(tmp_path: Path, root: Path) -> str:
    """Another process's view: the folder is shared, what was seen isn't."""
    folder = tmp_path / "stamps"
    folder.mkdir(exist_ok=True)
    return Stamps(folder).digest(root, KINDS)


def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files whose content is read from now on."""
    read: list[str] = []
    real = stamps._file

    def noted(path: str) -> str:
        read.append(Path(path).name)
        return real(path)

    monkeypatch.setattr(stamps, "_file", noted)
    return read


def test_it_is_the_content_that_counts(tmp_path: Path, tree: Path) -> None:
    first = digest(tmp_path, tree)
    (tree / "a.py").touch()
    (tree / "notes.txt").write_text("y")
    assert digest(tmp_path, tree) == first
    assert digest(tmp_path, write(tmp_path / "copy", {"a.py": "a = 1\n", "p/b.py": "b = 1\n"})) == first


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "a.py").write_text("a = 2\n"),
        lambda root: (root / "p" / "c.py").write_text(""),
        lambda root: (root / "p" / "b.py").unlink(),
        lambda root: (root / "a.py").rename(root / "z.py"),
        lambda root: (root / "q").mkdir(),
        lambda root: (root / "link.py").symlink_to("a.py"),
        lambda root: (root / "linked").symlink_to("p"),
    ],
    ids=["content", "new file", "gone", "renamed", "new folder", "link", "folder link"],
)
def test_every_change_counts(tmp_path: Path, tree: Path, change: object) -> None:
    first = digest(tmp_path, tree)
    change(tree)  # type: ignore[operator]
    assert digest(tmp_path, tree) != first


def test_a_change_that_keeps_size_and_time_is_seen(tmp_path: Path, tree: Path) -> None:
    first = digest(tmp_path, tree)
    (tree / "a.py").write_text("a = 9\n")
    settle(tree)
    assert digest(tmp_path, tree) != first


def test_contents_are_read_once(tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = watched(monkeypatch)
    monkeypatch.setattr(stamps, "SETTLED_NS", -time.time_ns())
    first = digest(tmp_path, tree)
    assert sorted(read) == ["a.py", "b.py"]
    assert digest(tmp_path, tree) == first
    (tree / "a.py").touch()
    assert digest(tmp_path, tree) == first
    assert sorted(read) == ["a.py", "a.py", "b.py"]


def test_a_file_that_has_just_changed_is_read_again(
    tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = watched(monkeypatch)
    (tree / "a.py").write_text("a = 1\n")
    assert digest(tmp_path, tree) == digest(tmp_path, tree)
    assert read.count("a.py") == 2


def test_damaged_stamps_are_no_stamps(tmp_path: Path, tree: Path) -> None:
    first = digest(tmp_path, tree)
    (place,) = (tmp_path / "stamps").iterdir()
    for content in (b"", b"\xff\n[", b"- x\n{}", b"one two three\n[]", b'- x\n{"a.py": 3}'):
        place.write_bytes(content)
        assert digest(tmp_path, tree) == first


def test_a_hostile_tree_has_a_digest(tmp_path: Path) -> None:
    root = hostile(tmp_path / "tree")
    (root / "fifo.py").parent.mkdir(exist_ok=True)
    os.mkfifo(root / "fifo.py")
    assert len(digest(tmp_path, root)) == 64


def test_a_file_stands_for_its_content(tmp_path: Path) -> None:
    patch = tmp_path / "one.patch"
    patch.write_text("x")
    first = digest(tmp_path, patch)
    assert digest(tmp_path, patch) == first
    patch.write_text("y")
    assert digest(tmp_path, patch) != first


def test_a_folder_that_cannot_be_written_only_costs_time(tmp_path: Path, tree: Path) -> None:
    assert Stamps(tmp_path / "nowhere").digest(tree, KINDS) == digest(tmp_path, tree)
