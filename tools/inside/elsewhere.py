"""The control of a trace that met nothing: which files of the tree mention the word at all."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from typing import Any

from .paths import to_shown
from .source import Tree, Unreadable

MOST_FILES = 20
_LOOKED_AT = 50_000


def files_with(tree: Tree, word: str) -> list[dict[str, Any]]:
    """Python files that hold the word, each with the number of such lines, most first, at most `MOST_FILES`."""
    pattern = re.compile(rb"(?<!\w)" + re.escape(word.encode()) + rb"(?!\w)")
    found: list[tuple[int, str]] = []
    for path in itertools.islice(_python_files(tree.root), _LOOKED_AT):
        lines = _lines(tree, path, word.encode(), pattern)
        found += [(-lines, path)] if lines else []
    return [{"file": to_shown(path), "count": -count} for count, path in sorted(found)[:MOST_FILES]]


def _python_files(root: str) -> Iterator[str]:
    """Every *.py below `root`, relative to it, without recursion: a tree may be deeper than Python's stack."""
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            entries = sorted(os.scandir(os.path.join(root, folder)), key=lambda entry: entry.name)
        except OSError:
            continue
        yield from (os.path.join(folder, e.name) for e in entries if e.name.endswith(".py"))
        pending += [os.path.join(folder, e.name) for e in reversed(entries) if e.is_dir(follow_symlinks=False)]


def _lines(tree: Tree, path: str, needle: bytes, pattern: re.Pattern[bytes]) -> int:
    try:
        data = tree.load(path)
    except Unreadable:
        return 0
    return sum(1 for line in data.split(b"\n") if pattern.search(line)) if needle in data else 0
