"""The control of a trace that met nothing: which files of the tree mention the word at all."""

from __future__ import annotations

import os
import re
from typing import Any

from .paths import to_shown
from .source import Tree, Unreadable

MOST_FILES = 20
_LOOKED_AT = 50_000


def files_with(tree: Tree, word: str) -> list[dict[str, Any]]:
    """Python files that hold the word, each with the number of such lines, most first, at most `MOST_FILES`."""
    pattern = re.compile(rb"(?<!\w)" + re.escape(word.encode()) + rb"(?!\w)")
    found: list[tuple[int, str]] = []
    looked_at = 0
    for folder, folders, files in os.walk(tree.root):
        folders.sort()
        for name in files:
            if name.endswith(".py") and looked_at < _LOOKED_AT:
                looked_at += 1
                path = os.path.relpath(os.path.join(folder, name), tree.root)
                lines = _lines(tree, path, word.encode(), pattern)
                found += [(-lines, path)] if lines else []
    return [{"file": to_shown(path), "count": -count} for count, path in sorted(found)[:MOST_FILES]]


def _lines(tree: Tree, path: str, needle: bytes, pattern: re.Pattern[bytes]) -> int:
    try:
        data = tree.load(path)
    except Unreadable:
        return 0
    return sum(1 for line in data.split(b"\n") if pattern.search(line)) if needle in data else 0
