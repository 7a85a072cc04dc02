"""Patch files read: who a suspect is, what it claims, and which files of the tree it touches."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sleuth.sandbox.deployment import PatchEntry
from sleuth.sandbox.patches import located, read_patches


@pytest.mark.parametrize(
    ("subject", "title"),
    [
        ("Subject: [PATCH 2/8] Fuse the routed\n scaling factor", "Fuse the routed scaling factor"),
        ("Subject: =?UTF-8?q?caf=C3=A9?= top-k", "café top-k"),
        ("Subject: =?no-such-charset?q?x?=", "=?no-such-charset?q?x?="),
        ("Subject: caf\udce9", "caf�"),
        ("From: nobody", "a-b"),
    ],
)
def test_title_and_id(tmp_path: Path, subject: str, title: str) -> None:
    path = tmp_path / "a b.patch"
    text = f"From 1 Mon\n{subject}\n---\n x | 2 +-\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n-- \n2.39\n\n"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    [patch] = read_patches(PatchEntry(path=path))
    assert (patch.id, patch.files, patch.title) == ("a-b", ["x"], title)
    [named] = read_patches(PatchEntry(path=path, id="me", title="mine"))
    assert (named.id, named.title) == ("me", "mine")


@pytest.mark.parametrize(
    ("name", "ident"), [("..patch", "patch"), (".x.diff", "x"), ("-ü-.patch", "patch"), ("é1", "1")]
)
def test_an_id_is_always_a_plain_word(tmp_path: Path, name: str, ident: str) -> None:
    (tmp_path / name).write_text("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n")
    assert read_patches(PatchEntry(path=tmp_path / name))[0].id == ident


def test_located_names_only_what_the_tree_has(tmp_path: Path) -> None:
    text = "".join(
        f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-1\n+2\n"
        for name in ("python/s/a.py", "/etc/passwd", "docs/none.md")
    )
    (tmp_path / "p.patch").write_text(text)
    [patch] = read_patches(PatchEntry(path=tmp_path / "p.patch"))
    assert located(patch, lambda name: os.path.lexists(Path("/") / name) or name == "s/a.py") == [
        "s/a.py",
        "etc/passwd",
    ]
    assert located(patch, lambda name: name in ("s/a.py", "/etc/passwd")) == ["s/a.py"]
