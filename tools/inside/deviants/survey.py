"""The parts of a tree that have to do with one factor, and what a rule says about them."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..exactly_once.program import Class, Function, Module, Program, last_name

_LEFT_OUT = re.compile(r"(^|/)(tests?|testing|benchmarks?|docs?|examples?|build)(/|$)|(^|/)(test_|conftest)[^/]*$")
"""Paths whose code isn't deployed."""


@dataclass(frozen=True)
class Place:
    """A line of the tree, with what it has to do with a finding."""

    path: str
    line: int
    symbol: str
    note: str = ""


@dataclass(frozen=True)
class Suspect:
    """A place that deviates.

    Attributes:
        kind: never, twice or wrong.
        rule: which comparison found it.
        why: a sentence.
        when: the condition under which it matters, for a reader.
        see: places that it was compared with.
    """

    kind: str
    rule: str
    place: Place
    why: str
    when: str = ""
    see: tuple[Place, ...] = ()


@dataclass
class Survey:
    """What is known about one factor in a tree.

    Attributes:
        compared: for each file, its functions that were compared with others.
        read: what was read out of functions, for whoever asks again.
    """

    program: Program
    factor: str
    compared: dict[str, set[str]] = field(default_factory=dict)
    read: dict[tuple[str, int, bool], list[Any]] = field(default_factory=dict)

    @cached_property
    def sources(self) -> list[str]:
        """Python files of the tree that may be deployed."""
        return [path for path in _walk(self.program.tree.root) if not _LEFT_OUT.search(path)]

    @cached_property
    def texts(self) -> dict[str, bytes]:
        """Bytes of the files that mention the factor."""
        word = self.factor.encode()
        return {path: data for path in self.sources if word in (data := self.program.texts.data(path))}

    @cached_property
    def _definitions(self) -> list[Class | Function]:
        found: list[Class | Function] = []
        for path in self.texts:
            module = self.program.module(path)
            for chunks in module.chunks.values() if module else ():
                for chunk in chunks:
                    made = self.program.definition(module, chunk) if self.factor in chunk.text and module else None
                    if made is not None:
                        found.append(made)
        return found

    @cached_property
    def classes(self) -> list[Class]:
        """Classes that mention the factor."""
        return [made for made in self._definitions if isinstance(made, Class)]

    @cached_property
    def functions(self) -> list[Function]:
        """Functions and methods that mention the factor."""
        plain = [made for made in self._definitions if isinstance(made, Function)]
        return plain + [f for owner in self.classes for f in owner.functions.values() if self.factor in f.text]

    @cached_property
    def holders(self) -> set[str]:
        """Names of configurations that the factor is read from: `runner_config` in `runner_config.factor`."""
        read = re.compile(rf"\b(\w*config\w*)\.{re.escape(self.factor)}\b")
        return {name for function in self.functions for name in read.findall(function.text)}

    @cached_property
    def _heads(self) -> dict[str, list[tuple[str, str]]]:
        """For each class at the top level of a file, the files and what stands in its parentheses there."""
        head = re.compile(rb"^class[ \t]+(\w+)(?:\(([^)]*)\))?", re.MULTILINE)
        found: dict[str, list[tuple[str, str]]] = {}
        for path in self.sources:
            for match in head.finditer(self.program.texts.data(path)):
                bases = (match[2] or b"").decode("utf-8", "replace")
                found.setdefault(match[1].decode(), []).append((path, bases))
        return found

    def class_named(self, name: str) -> Class | None:
        """The only class of that name at the top level of a file."""
        places = self._heads.get(name, [])
        return self._class_at(places[0][0], name) if len(places) == 1 else None

    def _class_at(self, path: str, name: str) -> Class | None:
        found = self._at(path, name, Class)
        return found if isinstance(found, Class) else None

    def below(self, names: set[str]) -> list[Class]:
        """Classes that have one of these as a base."""
        word = re.compile(r"\b(" + "|".join(map(re.escape, sorted(names))) + r")\b") if names else None
        places = [(path, n) for n, at in self._heads.items() for path, b in at if word and word.search(b)]
        return [made for path, n in places if (made := self._class_at(path, n)) is not None]

    def _at(self, path: str, name: str, kind: type) -> Class | Function | None:
        made = self.program.top_level(path, name)
        return made if isinstance(made, kind) else None

    def function_named(self, module: Module, name: str) -> Function | None:
        """The function that a name of a module means: defined there, or imported from a file of the tree."""
        found = self._at(module.path, name, Function)
        for statement in [] if found else module.binders.get(name, []):
            if isinstance(statement, ast.ImportFrom):
                place = self.program.place(module.path, statement.module or "", statement.level)
                origin = self.program.at_place(place) if place else None
                real = next((a.name for a in statement.names if (a.asname or a.name) == name), name)
                found = self._at(origin.path, real, Function) if origin else None
        return found if isinstance(found, Function) else None

    def lineage(self, owner: Class) -> list[Class]:
        """A class and those above it that are found by name."""
        found, waiting = [owner], list(owner.base_names)
        while waiting:
            above = self.class_named(waiting.pop(0))
            if above is not None and above not in found:
                found.append(above)
                waiting += above.base_names
        return found

    def names_above(self, owner: Class) -> set[str]:
        """Names of a class and of those above it."""
        return {at.name for at in self.lineage(owner)}

    def note(self, function: Function) -> None:
        """A place of this function was compared with others."""
        self.compared.setdefault(function.module.path, set()).add(function.qualname)

    def place(self, function: Function, node: ast.AST, note: str = "") -> Place:
        """Where a node of a function stands."""
        return Place(function.module.path, getattr(node, "lineno", function.node.lineno), function.qualname, note)

    def is_flag(self, name: str) -> bool:
        """Whether an identifier speaks of the factor without being it: who applies it, or whether it was."""
        return self.factor in name and name.strip("_") != self.factor


def flags_in(node: ast.AST, survey: Survey) -> set[str]:
    """Identifiers that say who applies the factor."""
    found = set()
    for one in ast.walk(node):
        name = one.id if isinstance(one, ast.Name) else one.attr if isinstance(one, ast.Attribute) else ""
        if not name and isinstance(one, ast.Call) and last_name(one.func) == "getattr" and len(one.args) > 1:
            name = str(getattr(one.args[1], "value", ""))
        if name and survey.is_flag(name):
            found.add(name)
    return found


def _walk(root: str) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        inside = os.path.relpath(folder, root)
        for name in sorted(names):
            if name.endswith(".py"):
                yield name if inside == "." else f"{inside}/{name}"
