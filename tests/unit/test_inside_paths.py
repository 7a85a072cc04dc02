"""Names that a user or a model gives: found inside a tree and never outside it, shown so that they can come back."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sleuth.tools.inside import look
from sleuth.tools.inside.fail import InsideError
from sleuth.tools.inside.paths import from_shown, regular, resolve, to_shown

from ..support.trees import ODD_NAMES, hostile, write


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return hostile(tmp_path / "tree")


@pytest.mark.parametrize(("raw", "shown"), ODD_NAMES.items(), ids=ODD_NAMES.values())
def test_odd_names_are_shown_and_taken_back(tree: Path, raw: bytes, shown: str) -> None:
    assert to_shown(os.fsdecode(raw)) == shown
    assert os.fsencode(from_shown(shown)) == raw
    assert resolve(str(tree), shown) == os.path.join(tree, os.fsdecode(raw))  # noqa: PTH118


@settings(database=None)
@given(st.binary(max_size=40).filter(lambda raw: b"\0" not in raw))
def test_every_name_comes_back(raw: bytes) -> None:
    shown = to_shown(os.fsdecode(raw))
    assert os.fsencode(from_shown(shown)) == raw
    assert shown.encode().isascii() or shown.encode().decode() == shown
    assert shown.isprintable() or not any(c < " " or "\x7f" <= c <= "\x9f" for c in shown)


@settings(database=None)
@given(st.text(max_size=20), st.text(max_size=20))
def test_no_two_names_are_shown_alike(one: str, two: str) -> None:
    names = [text.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape") for text in (one, two)]
    assert (to_shown(names[0]) == to_shown(names[1])) == (names[0] == names[1])


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("ok.py", "ok.py"),
        ("./package//in.py", "package/in.py"),
        ("package/../ok.py", "ok.py"),
        ("folder-link/in.py", "package/in.py"),
        ("round/round/round/ok.py", "ok.py"),
        ("", ""),
        (".", ""),
    ],
)
def test_what_is_found(tree: Path, name: str, inside: str) -> None:
    assert resolve(str(tree), name) == str(tree / inside)
    assert resolve(str(tree), str(tree / name)) == str(tree / inside)


REFUSED = {
    "../tree2/x": "outside the tree; paths are relative to its root",
    "/etc/passwd": "outside the tree; paths are relative to its root",
    "package/../../x": "outside the tree; paths are relative to its root",
    r"\x2e\x2e/x": "outside the tree; paths are relative to its root",
    "out": "a symbolic link that leads out of the tree, to /usr/bin; it isn't followed",
    "round/out": "a symbolic link that leads out of the tree, to /usr/bin; it isn't followed",
    "loop": "a symbolic link to loop2 that leads in a circle",
    "loop/x": "can't be reached: Too many levels of symbolic links",
    "dangling": "a symbolic link to nowhere that leads to nothing inside the sandbox",
    "okk.py": "no such file in the tree; did you mean 'ok.py'?",
    "new_line.py": r"no such file in the tree; did you mean 'new\x0aline.py'?",
    "zzzzzzzz": "no such file in the tree",
    "packag/in.py": "no such file in the tree; there is no folder 'packag' either; did you mean 'package'?",
    "no/no/no": "no such file in the tree; there is no folder 'no' either",
    "ok.py/x": "no such file in the tree; there is no folder 'ok.py' either; did you mean 'ok.py'?",
    "x" * 300: "can't be reached: File name too long",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(tree: Path, name: str) -> None:
    with pytest.raises(InsideError) as error:
        resolve(str(tree), name)
    assert str(error.value) == f"{name}: {REFUSED[name]}"


def test_a_nul_is_refused(tree: Path) -> None:
    for name in ("a\0b", r"a\x00b"):
        with pytest.raises(InsideError, match="a path can't hold a NUL"):
            resolve(str(tree), name)


def test_a_neighbour_whose_name_begins_alike_is_outside(tmp_path: Path) -> None:
    write(tmp_path / "tree", {"a": ""})
    write(tmp_path / "tree2", {"a": ""})
    (tmp_path / "tree/link").symlink_to("../tree2/a")
    with pytest.raises(InsideError, match="leads out of the tree"):
        resolve(str(tmp_path / "tree"), "link")
    with pytest.raises(InsideError, match="outside the tree"):
        resolve(str(tmp_path / "tree"), "../tree2/a")


def test_a_root_behind_a_link(tmp_path: Path, tree: Path) -> None:
    (tmp_path / "alias").symlink_to(tree)
    assert resolve(str(tmp_path / "alias"), "folder-link/in.py") == str(tree / "package/in.py")


def test_only_regular_files_are_read(tree: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tree / "sock"))
    assert regular(str(tree), "ok.py") == str(tree / "ok.py")
    for name in ("pipe", "sock"):
        with pytest.raises(InsideError, match=r": not a regular file \(a pipe, socket or device\)"):
            regular(str(tree), name)
    with pytest.raises(InsideError, match=r"package: a folder, not a file; it holds 1 entries: in\.py"):
        regular(str(tree), "package")
    write(tree / "many", {f"{n:02}": "" for n in range(20)})
    with pytest.raises(InsideError, match=r"it holds 20 entries: 00, 01, .*, 11, …$"):
        regular(str(tree), "many")


def test_look_tells_everything_at_once(tree: Path) -> None:
    names = ["ok.py", "./package/", "pipe", "out", "nope", r"bad\xff.py", "folder-link/in.py"]
    assert look.run({"root": str(tree), "paths": names}) == {
        "files": ["ok.py", r"bad\xff.py", "folder-link/in.py"],
        "names": ["ok.py", "package", "pipe", r"bad\xff.py", "folder-link/in.py"],
        "problems": [
            "pipe: not a regular file (a pipe, socket or device)",
            f"out: {REFUSED['out']}",
            "nope: no such file in the tree",
        ],
    }
