"""How bubblewrap shows a layered clone, and what a bare command sees."""

from pathlib import Path

from sleuth.sandbox import bubblewrap
from sleuth.sandbox.base import Command
from sleuth.sandbox.bubblewrap import Bubblewrap

from ..support.trees import clone_of, open_backend, write

STOCK = {"a.py": "a = 1\n", "pkg/b.py": "b = 1\n"}


def opened(folder: Path, layer: dict[str, str]) -> Bubblewrap:
    tree = write(folder / "tree", STOCK)
    return open_backend("bubblewrap", clone_of(tree, write(folder / "layer", layer), tree), folder / "scratch")


def shown(box: Bubblewrap, *names: str) -> str:
    return box.exec(Command(["cat", *names])).stdout.read_text()


def test_changed_files_are_mounted_one_by_one(tmp_path: Path) -> None:
    box = opened(tmp_path, {"pkg/b.py": "b = 2\n"})
    assert "--ro-overlay" not in box._tree
    assert shown(box, "a.py", "pkg/b.py", "/stock/pkg/b.py") == "a = 1\nb = 2\nb = 1\n"
    assert box.exec(Command(["sh", "-c", "echo x > pkg/b.py"])).exit_code != 0
    assert (tmp_path / "layer/pkg/b.py").read_text() == "b = 2\n"


def test_an_added_file_needs_an_overlay(tmp_path: Path) -> None:
    box = opened(tmp_path, {"pkg/b.py": "b = 2\n", "pkg/new.py": "new = 1\n"})
    assert "--ro-overlay" in box._tree
    assert shown(box, "a.py", "pkg/b.py", "pkg/new.py") == "a = 1\nb = 2\nnew = 1\n"


def test_so_does_a_file_in_place_of_a_link(tmp_path: Path) -> None:
    write(tmp_path / "tree", STOCK)
    (tmp_path / "tree/link.py").symlink_to("a.py")
    box = opened(tmp_path, {"link.py": "mine = 1\n"})
    assert "--ro-overlay" in box._tree
    assert shown(box, "link.py", "a.py") == "mine = 1\na = 1\n"


def test_so_do_many_files(tmp_path: Path) -> None:
    many = {f"f{n}.py": "old\n" for n in range(bubblewrap.MOST_BINDS + 1)}
    write(tmp_path / "tree", many)
    box = opened(tmp_path, dict.fromkeys(many, "new\n"))
    assert "--ro-overlay" in box._tree
    assert shown(box, "f0.py", f"f{bubblewrap.MOST_BINDS}.py") == "new\nnew\n"


def test_a_bare_command_sees_the_source_and_nothing_else(tmp_path: Path) -> None:
    box = opened(tmp_path, {"pkg/b.py": "b = 2\n"})
    done = box.exec(Command([box.rg, "--files", "--hidden", "--no-ignore", "/"], bare=True))
    assert done.exit_code == 0
    assert sorted(done.stdout.read_text().splitlines()) == [
        "/clone/a.py",
        "/clone/pkg/b.py",
        "/sleuth/bin/rg",
        "/stock/a.py",
        "/stock/pkg/b.py",
    ]
    assert box.exec(Command(["cat", "a.py"], bare=True)).exit_code == 127


def test_a_write_still_goes_to_a_layer_that_is_thrown_away(tmp_path: Path) -> None:
    box = opened(tmp_path, {"pkg/b.py": "b = 2\n"})
    done = box.exec(Command(["sh", "-c", "echo 'b = 3' > pkg/b.py; cat pkg/b.py"], writable=True))
    assert done.stdout.read_text() == "b = 3\n"
    assert shown(box, "pkg/b.py") == "b = 2\n"
    assert [path.name for path in (tmp_path / "layer").iterdir()] == ["pkg"]
