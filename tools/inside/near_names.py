"""Top-level classes and functions of the tree whose name is nearly the one that somebody asked for."""

from __future__ import annotations

import difflib
import os
import re
from typing import Any

from .source import Tree, Unreadable

_DEFINED = re.compile(rb"^(?:class|def|async def)[ \t]+(\w+)", re.MULTILINE)
MOST = 3


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Look through every Python file.

    Args:
        request: `root`, and `name`: `Class`, `Class.method`, `path.py::Class` or `path.py::Class.method`.

    Returns:
        `near`: the nearest names, best first, as they could be asked for; files of the same name first.
    """
    path, _, symbol = request["name"].rpartition("::")
    owner, dot, rest = symbol.partition(".")
    tree = Tree(request["root"])
    places: dict[str, list[str]] = {}
    for file in _files(tree.root):
        try:
            data = tree.load(file)
        except Unreadable:
            continue
        for name in _DEFINED.findall(data):
            places.setdefault(name.decode("ascii", "replace"), []).append(file)
    if owner in places and path in ("", *places[owner]):
        return {"near": []}  # something inside it is missing, and the tracer's message lists what there is
    exact = [f"{file}::{symbol}" for file in places.get(owner, [])]
    near = [
        name + dot + rest for name in difflib.get_close_matches(owner, places, n=MOST, cutoff=0.75) if name != owner
    ]
    return {"near": [*exact, *near][:MOST]}


def _files(root: str) -> list[str]:
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in (".git", "__pycache__")]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names if name.endswith(".py")]
    return sorted(found)
