"""What the rest of the tree says: who reads an attribute, which bases demand a parameter, which fields a class has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from .definitions import Definition, Function
from .elsewhere import MOST_FILES, _python_files
from .imports import Resolver, dotted_parts
from .paths import to_shown
from .source import Tree, Unreadable
from .twins_groups import COMMON_BASES

LOOKED_AT = 50_000
"""Files; only made-up trees hold more."""


class Around:
    """The whole tree that the examined files belong to; files are read when they are asked about.

    Args:
        skip: the examined files, whose own state may differ from the tree's.
    """

    def __init__(self, root: str, skip: Iterable[str]) -> None:
        self.tree = Tree(root)
        self.resolver = Resolver(self.tree)
        self.skip = set(skip)
        self._fields: dict[str, dict[str, int]] = {}

    def readers(self, names: set[str], owners: dict[str, str]) -> dict[str, tuple[list[str], list[str]]]:
        """For each attribute, the other files that read one of that name, and those that name its class, too."""
        found: dict[str, tuple[list[str], list[str]]] = {name: ([], []) for name in names}
        patterns = {name: _reading(name) for name in names}
        needles = {name: name.encode() for name in names}
        for path in _python_files(self.tree.root) if names else ():
            data = self._data(path)
            for name in names if data else ():
                if needles[name] in data and patterns[name].search(data):
                    every, related = found[name]
                    every.append(to_shown(path))
                    if owners[name].rpartition(".")[2].encode() in data:
                        related.append(to_shown(path))
        return {name: (every[:MOST_FILES], related[:MOST_FILES]) for name, (every, related) in found.items()}

    def _data(self, path: str) -> bytes:
        if path in self.skip:
            return b""
        try:
            return self.tree.load(path)
        except Unreadable:
            return b""

    def required_by(self, path: str, owner: str, method: str, parameter: str) -> str:
        """The base class whose method of that name takes the parameter too, or that can't be seen; empty if none."""
        module = self.resolver.module(path)
        start = module.find(owner) if module is not None else None
        pending, seen = [start] if start is not None else [], set()
        while pending:
            here = pending.pop()
            if here.key in seen:
                continue
            seen.add(here.key)
            for target, name in self._bases(here):
                if target is None and name not in COMMON_BASES and name != "Function":
                    return f"{name}, which isn't in the tree"
                if target is None:
                    continue
                if _takes(target, method, parameter):
                    return target.qualname
                pending.append(target)
        return ""

    def _bases(self, owner: Definition) -> list[tuple[Definition | None, str]]:
        node = owner.nodes[0]
        found: list[tuple[Definition | None, str]] = []
        for base in node.bases if isinstance(node, ast.ClassDef) else []:
            parts = dotted_parts(base)
            targets = self.resolver.resolve(owner.scope, parts) if parts else []
            classes = [t.definition for t in targets if t.definition.kind == "class"]
            found += [(each, parts[-1]) for each in classes] or [(None, parts[-1] if parts else "a computed base")]
        return found

    def fields(self, name: str) -> dict[str, int]:
        """Annotated fields, with their lines, of the one class of that name; nothing when there are several."""
        if name not in self._fields:
            self._fields[name] = self._find_fields(name)
        return self._fields[name]

    def _find_fields(self, name: str) -> dict[str, int]:
        head = re.compile(rb"^class " + re.escape(name.encode()) + rb"\b", re.MULTILINE)
        homes = [path for path in _python_files(self.tree.root) if self._has(path, name.encode(), head)]
        module = self.resolver.module(homes[0]) if len(homes) == 1 else None
        found = module.find(name) if module is not None else None
        body = getattr(found.nodes[0], "body", []) if found is not None else []
        return {f.target.id: f.lineno for f in body if isinstance(f, ast.AnnAssign) and isinstance(f.target, ast.Name)}

    def _has(self, path: str, needle: bytes, head: re.Pattern[bytes]) -> bool:
        try:
            data = self.tree.load(path)
        except Unreadable:
            return False
        return needle in data and head.search(data) is not None


def _takes(owner: Definition, method: str, parameter: str) -> bool:
    for node in getattr(owner.nodes[0], "body", []):
        if isinstance(node, Function) and node.name == method:
            given = node.args
            names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            return parameter in names or given.kwarg is not None or given.vararg is not None
    return False


def _reading(name: str) -> re.Pattern[bytes]:
    """`.name` that isn't assigned, or the name alone in quotes."""
    word = re.escape(name.encode())
    return re.compile(rb"\.\s*" + word + rb"\b(?!\s*(?::[^=\n]*)?=[^=])|[\"']" + word + rb"[\"']")


def class_of(attribute: str) -> str:
    """The class that an attribute's name suggests: `MoeRunnerConfig` for `moe_runner_config`."""
    return "".join(word[:1].upper() + word[1:] for word in attribute.strip("_").split("_"))
