"""Follow `#include` lines of C, C++ and CUDA sources to files of the tree."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from .imports import Hop
from .source import Tree, Unreadable, decode

SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hh", ".hpp", ".hip")

_INCLUDE = re.compile(r"[ \t]*#[ \t]*include[ \t]*[\"<]([^\">]+)[\">]")
_INCLUDE_ROOTS = ("", "include", "src", "csrc")


def included(tree: Tree, start: str, depth: int) -> dict[str, tuple[int, list[Hop]]]:
    """Files of the tree that a source file includes, each with its distance and the lines that lead there.

    Args:
        tree: where to look.
        start: the including file.
        depth: how many includes to follow in a row.
    """
    reached: dict[str, tuple[int, list[Hop]]] = {start: (0, [])}
    queue = [start]
    for file in queue:
        distance, path = reached[file]
        if distance == depth:
            continue
        for line, name in _includes(tree, file):
            target = _locate(tree, file, name)
            if target is not None and target not in reached:
                reached[target] = (distance + 1, [*path, Hop("imports", file, line, name, target)])
                queue.append(target)
    del reached[start]
    return reached


def _includes(tree: Tree, file: str) -> Iterator[tuple[int, str]]:
    try:
        text = decode(tree.read(file))
    except Unreadable:
        return
    for number, line in enumerate(text.split("\n"), 1):
        match = _INCLUDE.match(line)
        if match:
            yield number, match[1]


def _locate(tree: Tree, file: str, name: str) -> str | None:
    """Beside the including file, in a folder around it, or in one of the usual include folders of those."""
    folder = posixpath.dirname(file)
    while True:
        for root in _INCLUDE_ROOTS:
            path = posixpath.normpath(posixpath.join(folder, root, name))
            if not path.startswith(("..", "/")) and tree.is_file(path):
                return tree.canonical(path)
        if not folder:
            return None
        folder = posixpath.dirname(folder)
