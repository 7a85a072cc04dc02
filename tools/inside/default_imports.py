"""How many imports part each file from the module that is launched."""

from __future__ import annotations

import glob
import os
import re

IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+([\w, \t]*)|import[ \t]+([\w., \t]+))",
    re.MULTILINE,
)
CONSOLE = re.compile(r"""^\s*["']?([\w-]+)["']?\s*=\s*["']?([\w.]+):\w""", re.MULTILINE)
MAX_STEPS = 4
MAX_READ = 1 << 20


def distances(root: bytes, files: list[bytes], entry: str) -> dict[bytes, int]:
    """Fewest imports from `entry` to each file within `MAX_STEPS`; empty if the tree lacks it.

    Args:
        root: the tree.
        files: paths in it, relative.
        entry: dotted name of the launched module, or a console command.
    """
    known = set(files)
    entry = _console(root).get(entry, entry)
    start = _locate(entry.encode().replace(b".", b"/"), known)
    if start is None:
        return {}
    path, base = start
    found, edge = {path: 0}, [path]
    for step in range(1, MAX_STEPS + 1):
        reached = {q for p in edge for q in _imported(root, p, base, known)}
        edge = sorted(reached - set(found))
        found |= dict.fromkeys(edge, step)
    return found


def _console(root: bytes) -> dict[str, str]:
    """Modules of the console commands that the tree's packages declare, by command."""
    found: dict[str, str] = {}
    for pattern in ("*.dist-info/entry_points.txt", "pyproject.toml", "*/pyproject.toml"):
        for path in sorted(glob.glob(os.path.join(glob.escape(os.fsdecode(root)), pattern))):
            if os.path.isfile(path) and os.path.getsize(path) <= MAX_READ:
                with open(path, "rb") as stream:
                    text = stream.read(MAX_READ).decode("utf-8", "replace")
                found |= {c.replace("-", "_"): m for c, m in CONSOLE.findall(text)}
    return found


def _locate(module: bytes, files: set[bytes]) -> tuple[bytes, bytes] | None:
    """A module's file, and the folder that its package's parent is."""
    tails = [module + t for t in (b".py", b"/__main__.py", b"/__init__.py")]
    for tail in tails:
        fits = sorted((f for f in files if f == tail or f.endswith(b"/" + tail)), key=len)
        if fits:
            return fits[0], fits[0][: -len(tail)]
    return None


def _imported(root: bytes, path: bytes, base: bytes, files: set[bytes]) -> set[bytes]:
    try:
        with open(os.path.join(root, path), "rb") as stream:
            data = stream.read(MAX_READ)
    except OSError:
        return set()
    names: set[bytes] = set()
    for source, items, plain in IMPORT.findall(data):
        if plain:
            names |= {base + m.split()[0].replace(b".", b"/") for m in plain.split(b",") if m.split()}
        else:
            module = _absolute(source, path, base)
            members = [m.split()[0] for m in items.split(b",") if m.split()]
            names |= {module, *(os.path.join(module, m) for m in members)}
    return {f for n in names for f in (n + b".py", n + b"/__init__.py") if f in files}


def _absolute(source: bytes, path: bytes, base: bytes) -> bytes:
    """Path, without an ending, of the module named after `from`."""
    tail = source.lstrip(b".")
    up = len(source) - len(tail)
    folder = path
    for _ in range(up):
        folder = os.path.dirname(folder)
    return os.path.join(folder if up else base, tail.replace(b".", b"/")).rstrip(b"/")
