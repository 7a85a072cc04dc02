"""Suspects of a deployed tree that is compared with stock, without patches being named."""

from pathlib import Path

import pytest

from sleuth.agent.session import Options, start
from sleuth.agent.store import CaseFolder
from sleuth.sandbox.errors import ConfigError

from ..support.books import book, rule, step, write
from ..support.investigation import case_in, lay

RELEASE = {"pkg/a.py": "a = 1\n", "pkg/b.py": "b = 1\n", "x-1.0.dist-info/METADATA": "Name: x\n"}


def opened(folder: Path, tree: dict[str, str]) -> Path:
    lay(folder / "stock", RELEASE)
    lay(folder / "fork", tree)
    (folder / "sleuth.yaml").write_text("name: x\ntree: fork\nstock: stock\n")
    look = step("q1", rule(), tool="grep", args={"pattern": "a"})
    return start(folder / "home", folder / "sleuth.yaml", write(folder, book(look)), {}, {}, Options()).path


def suspects(folder: Path, tree: dict[str, str]) -> list[str]:
    opened(folder, tree)
    (case,) = (folder / "home/cases").iterdir()
    return [s.id for s in case_in(CaseFolder(case)).suspects]


def test_files_around_the_release_and_packaging_metadata_are_no_suspects(tmp_path: Path) -> None:
    tree = {"pkg/a.py": "a = 2\n", "pkg/b.py": "b = 1\n", "numpy/x.py": "x\n", "x-1.1.dist-info/METADATA": "Name: x\n"}
    assert suspects(tmp_path, tree) == ["pkg.a.py"]


def test_a_repository_whose_packages_lie_one_folder_down_is_refused_with_the_right_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        opened(tmp_path, {f"python/{name}": text for name, text in RELEASE.items()})
    said = f"sleuth.yaml:2: tree: {tmp_path}/fork has none of the folders that {tmp_path}/stock has (pkg)"
    assert str(caught.value).endswith(f"{said}; did you mean {tmp_path}/fork/python?")


def test_another_release_is_not_taken_for_patches(tmp_path: Path) -> None:
    tree = {f"pkg/f{n}.py": "x = 1\n" for n in range(201)} | {"pkg/a.py": "a = 1\n", "pkg/b.py": "b = 1\n"}
    opened(tmp_path, tree)
    (case,) = (tmp_path / "home/cases").iterdir()
    assert "201 of 203 files differ from stock: that is another release" in (case / "events.jsonl").read_text()
