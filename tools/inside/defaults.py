"""What a source tree says an environment variable or launch argument is when nobody sets it."""

from __future__ import annotations

import ast
import gc
import json
import math
import os
import re
import stat
import warnings
from collections.abc import Iterator
from typing import Any

from .default_imports import distances
from .default_needle import Needle, matcher
from .default_sites import Site, Wanted, callee, sites
from .default_source import Source
from .fail import InsideError

MAX_BYTES = 4 << 20
MAX_FILES = 200_000
MAX_SHOWN = 50
ASIDE = {b"test", b"tests", b"benchmark", b"benchmarks", b"example", b"examples", b"docs"}
"""Folders whose code no server runs: their defaults are listed and decide nothing."""
FALSE_WORDS = {"", "0", "false", "no", "n", "f", "off", "none"}


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Find defaults in the tree.

    Args:
        request: `root`; `env` and `args`, names or globs asked for (arguments in snake_case, a
            trailing `_` or `*` makes a prefix); `typed`, spellings of arguments to resolve as
            argparse would, abbreviations included; `entry`, the dotted module that is launched.

    Returns:
        `found`: per site `{name, kind, default, known, text, file, line, how, role, owner, rank,
        names, aside, rewritten}`, best first; `chosen`: name to index in `found` where the default
        is certain; `conflicts`: names whose sites disagree; `aliases`: typed spelling to
        `{name, names, flag, file, line}`; `skipped`: files that could not be looked at, with why;
        `files` and `parsed`: counts.

    Raises:
        InsideError: `root` is no folder.
    """
    if not os.path.isdir(request["root"]):
        raise InsideError(f"{request['root']} is not a folder")
    # Syntax trees hold no cycles worth collecting, and looking for some takes a third of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _Search(request).answer()
    finally:
        if collecting:
            gc.enable()


class _Search:
    """One request: reads the tree once, and once more where a default lies behind a name."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.root, self.entry = os.fsencode(request["root"]), request.get("entry") or ""
        self.typed = [t for t in request.get("typed", ()) if t]
        env, args = list(request.get("env", ())), list(request.get("args", ()))
        # An abbreviation is spelled by its first letters, so options that it may stand for count.
        self.wanted = Wanted(matcher(env), matcher(args + [t + "*" for t in self.typed]))
        self.asked = matcher(args)
        self.needle = Needle(env, args, self.typed)
        self.skipped: list[dict[str, str]] = []
        self.files: list[bytes] = []
        self.sources: dict[bytes, Source] = {}
        self.found: list[tuple[bytes, Site]] = []

    def answer(self) -> dict[str, Any]:
        for path, data in self._read():
            self.files.append(path)
            if b"\r" in data or self.needle.starts(data):
                self._look(path, data)
        self._follow()
        self.near = distances(self.root, self.files, self.entry) if self.entry else {}
        aliases = self._aliases()
        names = {a["name"] for a in aliases.values()}
        kept = [(p, s) for p, s in self.found if s.kind == "env" or self._keep(s, names)]
        entries = sorted((self._entry(p, s) for p, s in kept), key=_order)
        choices = _choices(entries)
        for entry in entries:
            entry["distance"] = -1 if entry["distance"] == math.inf else entry["distance"]
        return {
            "found": entries,
            **choices,
            "aliases": aliases,
            "skipped": self.skipped[:MAX_SHOWN],
            "skipped_more": max(0, len(self.skipped) - MAX_SHOWN),
            "files": len(self.files),
            "parsed": len(self.sources),
        }

    def _keep(self, site: Site, resolved: set[str]) -> bool:
        return site.name in resolved or any(map(self.asked, site.names))

    def _read(self, unseen: bool = True) -> Iterator[tuple[bytes, bytes]]:
        for path in _python_files(self.root) if unseen else self.files:
            data, why = _content(os.path.join(self.root, path))
            if not why:
                yield path, data
            elif unseen:
                self._skip(path, why)

    def _skip(self, path: bytes, why: str) -> None:
        self.skipped.append({"file": os.fsdecode(path), "why": why})

    def _look(self, path: bytes, data: bytes) -> None:
        source = Source(data)
        hits = self.needle.lines(source)
        try:
            found = [(path, s) for s in sites(source, hits, self.wanted)] if hits else []
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return self._skip(path, "not Python that can be parsed")
        if found:
            self.sources[path] = source
            self.found += found

    def _follow(self) -> None:
        """Keep the files that define classes and functions which hold a default elsewhere."""
        named = {(n, p) for p, s in self.found for n in _behind(s)}
        missing = {n for n, p in named if not self._definition(n, p)}
        if missing:
            heads = [f"{kind} {name}".encode() for name in missing for kind in ("class", "def")]
            for path, data in self._read(unseen=False):
                if path not in self.sources and any(head in data for head in heads):
                    self.sources[path] = Source(data)

    def _definition(self, name: str, path: bytes) -> ast.ClassDef | ast.FunctionDef | None:
        try:
            return self.sources[path].definition(name)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    def _definitions(self, name: str, near: bytes) -> list[tuple[bytes, ast.ClassDef | ast.FunctionDef]]:
        """Top-level definitions of a name: that of the file `near`, else those of all kept."""
        if own := self._definition(name, near):
            return [(near, own)]
        paths = [p for p in self.sources if not _aside(p)]
        return [(p, d) for p in paths if (d := self._definition(name, p))]

    def _entry(self, path: bytes, site: Site) -> dict[str, Any]:
        value, known, via = self._value(path, site)
        return {
            "name": site.name,
            "kind": site.kind,
            "default": value,
            "known": known,
            "text": site.text,
            "file": os.fsdecode(path),
            "line": site.line,
            "how": site.how + via,
            "role": site.role,
            "owner": site.owner,
            "rank": site.rank,
            "names": list(site.names),
            "aside": _aside(path),
            "distance": self.near.get(path, math.inf) if self.near else 0,
            "rewritten": self._rewritten(path, site),
        }

    def _value(self, path: bytes, site: Site) -> tuple[Any, bool, str]:
        """The default as a JSON value, whether it is certain, and what it was read through."""
        if site.role in ("required", "presence"):
            return None, False, ""
        if site.helper:
            return self._signature(path, site)
        if site.default is None:
            return (None, False, "") if not site.implied else (*_literal(site.implied), "")
        value, known = _literal(site.default)
        return (value, known, "") if known else self._reference(path, site.default)

    def _reference(self, path: bytes, node: ast.expr, depth: int = 3) -> tuple[Any, bool, str]:
        """`Class.field`, where every definition of the class agrees on a literal default."""
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name) or not depth:
            return None, False, ""
        results = []
        for where, definition in self._definitions(node.value.id, path):
            for stmt in definition.body:
                if isinstance(stmt, ast.AnnAssign) and stmt.value and callee(stmt.target) == node.attr:
                    value, known = _literal(stmt.value)
                    results.append((value, known) if known else self._reference(where, stmt.value, depth - 1)[:2])
        certain = bool(results) and all(known for _, known in results)
        if not certain or any(not _same(results[0][0], v) for v, _ in results):
            return None, False, ""
        return results[0][0], True, f", default from {node.value.id}.{node.attr}"

    def _signature(self, path: bytes, site: Site) -> tuple[Any, bool, str]:
        """The default that every definition of the helper gives its second parameter."""
        values = []
        for _, node in self._definitions(site.helper, path):
            if isinstance(node, ast.FunctionDef) and len(node.args.args) == 2 and node.args.defaults:
                values.append(_literal(node.args.defaults[-1]))
        agreed = bool(values) and all(k and _same(values[0][0], v) for v, k in values)
        return (values[0][0], True, ", default in its signature") if agreed else (None, False, "")

    def _rewritten(self, path: bytes, site: Site) -> list[int]:
        """Lines of the field's own file that assign the attribute again."""
        if site.kind != "arg" or not site.owner:
            return []
        source = self.sources[path]
        pattern = re.compile(re.escape(f".{site.name}").encode() + rb"[ \t]*=(?!=)")
        return sorted({source.line(m.start()) for m in pattern.finditer(source.data)})

    def _aliases(self) -> dict[str, dict[str, Any]]:
        return {t: a for t in self.typed if (a := self._alias(t))}

    def _alias(self, typed: str) -> dict[str, Any] | None:
        """What argparse takes `typed` for: the option of that name, else the only it starts."""
        options = [(p, s) for p, s in self.found if s.names and s.rank <= 1 and not _aside(p)]
        options = [(p, s) for p, s in options if any(n.startswith(typed) for n in s.names)]
        reached = [(p, s) for p, s in options if p in self.near] or options
        near = self._nearest([(p, s) for p, s in reached if typed in s.names] or reached)
        if len({s.name for _, s in near}) != 1:
            return None
        names = list(dict.fromkeys(n for _, s in near for n in s.names))
        path, site = near[0]
        place = {"file": os.fsdecode(path), "line": site.line}
        return {"name": site.name, "names": names, "flag": all(s.flag for _, s in near), **place}

    def _nearest(self, options: list[tuple[bytes, Site]]) -> list[tuple[bytes, Site]]:
        """Those in files that fewest imports part from the launched module."""
        far = [self.near.get(p, math.inf) for p, _ in options]
        return [o for o, d in zip(options, far, strict=True) if d == min(far)]


def _choices(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Index of each name's certain default, and the names whose sites disagree.

    Marks each entry as `listed` when it has a say, and as `agrees` when it says the same.
    """
    chosen, conflicts = {}, []
    for name in dict.fromkeys(e["name"] for e in entries):
        own = [(n, e) for n, e in enumerate(entries) if e["name"] == name]
        says = [(n, e) for n, e in own if e["role"] == "default"]
        index = _choose(own if own[0][1]["kind"] == "arg" else says)
        if index is not None:
            chosen[name] = index
        first = says[0][1] if says else own[0][1]
        for _, entry in own:
            entry["listed"] = _counts(entry, first)
            entry["agrees"] = entry["known"] and _same(first["default"], entry["default"])
        if any(e["listed"] and e["known"] and first["known"] and not e["agrees"] for _, e in says):
            conflicts.append(name)
    return {"chosen": chosen, "conflicts": conflicts}


def _counts(entry: dict[str, Any], first: dict[str, Any]) -> bool:
    """A site that can disagree with the first: as good a kind, in code the launch reaches."""
    unreached = entry["kind"] == "arg" and entry["distance"] == math.inf > first["distance"]
    return not entry["aside"] and not unreached and entry["rank"] <= max(1, first["rank"])


def _choose(own: list[tuple[int, dict[str, Any]]]) -> int | None:
    if not own:
        return None
    best = [(n, e) for n, e in own if _order(e)[:3] == _order(own[0][1])[:3]]
    first = best[0][1]
    certain = all(e["known"] and _same(e["default"], first["default"]) for _, e in best)
    return best[0][0] if certain else None


def _order(entry: dict[str, Any]) -> tuple[Any, ...]:
    roles = ("default", "required", "assigned", "presence", "declared")
    place = (entry["name"], roles.index(entry["role"]), entry["file"], entry["line"])
    return (entry["aside"], entry["rank"], entry["distance"], *place)


def _same(one: Any, other: Any) -> bool:
    """Two defaults mean the same; beside a flag or nothing, texts count by what they switch."""
    if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
        return (str(one).lower() in FALSE_WORDS) == (str(other).lower() in FALSE_WORDS)
    return str(one) == str(other)


def _literal(node: ast.expr | str) -> tuple[Any, bool]:
    """The value of a literal that JSON can hold, and whether there is one."""
    try:
        value = ast.literal_eval(node)
        text = json.dumps(value, allow_nan=False)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None, False
    return json.loads(text), True


def _behind(site: Site) -> list[str]:
    """Names of the class or function that holds a site's default."""
    node = site.default
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return [node.value.id]
    return [site.helper] if site.helper else []


def _aside(path: bytes) -> bool:
    return not ASIDE.isdisjoint(path.split(b"/")[:-1])


def _python_files(root: bytes) -> Iterator[bytes]:
    """Paths of `*.py` below `root` in a fixed order; no symbolic link to a folder is followed."""
    stack, left = [b""], MAX_FILES
    while stack:
        folder = stack.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as listing:
                entries = sorted(listing, key=lambda e: e.name)
        except OSError:
            continue
        for entry in entries:
            path = os.path.join(folder, entry.name)
            if entry.is_dir(follow_symlinks=False) and entry.name not in (b".git", b"__pycache__"):
                stack.append(path)
            elif entry.name.endswith(b".py") and left > 0:
                left -= 1
                yield path


def _content(path: bytes) -> tuple[bytes, str]:
    """A regular file's bytes, or why it isn't read; no link is followed, no pipe waited on."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        return b"", error.strerror or "can't be opened"
    with os.fdopen(handle, "rb") as stream:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            return b"", "not a regular file"
        if state.st_size > MAX_BYTES:
            return b"", f"{state.st_size:,} bytes, over the limit of {MAX_BYTES:,}"
        return stream.read(MAX_BYTES + 1), ""
