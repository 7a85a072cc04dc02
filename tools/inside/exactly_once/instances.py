"""Objects that came from nowhere: which classes they may have, and an instance for each."""

from __future__ import annotations

import ast
import re

from .core import Frame
from .diagram import Node
from .guards import is_abstract
from .objects import Objects
from .program import Class
from .values import (
    Obj,
    Opaque,
)

MOST_CLASSES = 64
"""Subclasses that an unknown object may have; beyond, its calls are opaque."""
MANY_CLASSES = 6
"""From so many on, each is followed by itself where all together take too long."""


class ManyClasses(Exception):
    """An object may have so many classes that each is better followed by itself."""

    def __init__(self, name: str, values: tuple[str, ...]) -> None:
        super().__init__(f"{name} may be one of {len(values)} classes")
        self.name, self.values = name, values


class Instances(Objects):
    """Makes instances of what isn't known."""

    def instances(self, value: Opaque, frame: Frame, pc: Node, at: ast.AST) -> Node | None:
        """An unknown object as one instance for each class that it may have; None where that can't be told."""
        cache = self._instances
        known = cache.get(value.text)
        if known is None and (value.text, value.hint) not in self._not_made:
            # What it may be while that is found out, and with this promise for good if it can't be told.
            self._not_made.add((value.text, value.hint))
            known = cache[value.text] = self._instantiate(value, frame, at)
        return known

    def _instantiate(self, value: Opaque, frame: Frame, at: ast.AST) -> Node | None:
        if value.hint is None or self.is_enum(value.hint):
            return None
        candidates = self.subclasses(value.hint)
        wide = next((made for made in self.products if made is value.hint or made in self.lineage(value.hint)), None)
        candidates += [c for c in self.products.get(wide, ()) if self._could_be(c, value.hint)] if wide else []
        return self._one_of(value, candidates, frame, at)

    def instances_among(self, value: Opaque, roots: list[Class], frame: Frame, pc: Node, at: ast.AST) -> Node | None:
        """Like `instances`, for an object that has one of these classes or one below them."""
        cache = self._instances
        if value.text not in cache:
            cache[value.text] = self._one_of(value, [c for root in roots for c in self.subclasses(root)], frame, at)
        return cache[value.text]

    def _one_of(self, value: Opaque, candidates: list[Class], frame: Frame, at: ast.AST) -> Node | None:
        names: dict[str, Class] = {}
        for candidate in [c for c in candidates if not self._is_declared_only(c) and not self._wraps(c, value.hint)]:
            names.setdefault(candidate.name, candidate)
        last = value.text.rpartition(".")[2] if "(" not in value.text else value.text
        key = f"type({last})"
        told = self.fact(key, key, tuple(names)) if len(names) > MOST_CLASSES else None
        if told is not None:
            names = {told: names[told]}
        if not names or len(names) > MOST_CLASSES:
            return None
        if len(names) == 1:
            return self.leaf(self._instance(next(iter(names.values())), value.text))
        if len(names) >= MANY_CLASSES and self.may_slice and self.fact(key, key, tuple(names)) is None:
            raise ManyClasses(key, tuple(names))
        chosen = self.new_guard(key, frame, at, tuple(names))
        return self.diagrams.map(lambda name: self._instance(names[name], value.text), chosen)

    def settled(self, value: Opaque, name: str) -> Obj | None:
        """An unknown object as an instance of the class of that name, where it could have it."""
        if value.hint is None or self.is_enum(value.hint):
            return None
        owner = next((c for c in self._below_by_name(value.hint) if c[1] == name), None)
        made = self._load(owner) if owner is not None else None
        if made is None or self._is_declared_only(made):
            return None
        found = self._instance(made, value.text)
        self._instances[value.text] = self.leaf(found)
        return found

    def known_instance(self, text: str, hint: Class, frame: Frame, node: ast.AST) -> Node | None:
        """An unknown object as an instance of the class that a fact names, or of the one that a flag stands for."""
        told = self.known(text)
        if told is None or not told[1][:1].isupper() or self.is_wrapper(told[1], hint):
            told = self._by_flag(hint)
        made = self.settled(Opaque(text, hint), told[1]) if told is not None else None
        if made is None or told is None:
            return None
        self.used_facts.add(told[0])
        return self.leaf(made)

    def _by_flag(self, hint: Class) -> tuple[str, str] | None:
        """The fact, and the class below a promised one, where its string is what just one such class calls itself.

        `quantization=fp8` is the class below `QuantizationConfig` whose `get_name` returns "fp8".
        """
        snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", hint.name).lower()
        names = (snake, re.sub(r"_(config|base|type)$", "", snake))
        fact = next((self.folded[n] for n in names if n in self.folded), None)
        if fact is None or not self.facts[fact] or self.facts[fact][:1].isupper():
            return None
        key = (hint, self.facts[fact])
        if key not in self._flags:
            self._flags[key] = self._called(hint, self.facts[fact])
        return (fact, self._flags[key]) if self._flags[key] else None

    def _called(self, hint: Class, value: str) -> str:
        """The class below a promised one that calls itself by a string; of several the one that the tree lists so."""
        quoted = re.compile(rf"""["']{re.escape(value)}["']""")
        found: list[str] = []
        for place in self._below_by_name(hint):
            made = (
                self._load(place)
                if quoted.search(self.program.texts.data(place[0]).decode("utf-8", "replace"))
                else None
            )
            namer = made.functions.get("get_name") if made is not None else None
            if namer is not None and any(
                isinstance(n, ast.Return) and n.value is not None and quoted.search(ast.unparse(n.value))
                for n in ast.walk(namer.node)
            ):
                found.append(place[1])
        if len(found) > 1:
            listed = re.compile(rb"""["']%s["']\s*:\s*(\w+)\b""" % re.escape(value).encode())
            texts = self.program.texts
            said = {n.decode() for path in texts.holding(value.encode()) for n in listed.findall(texts.data(path))}
            found = [name for name in found if name in said]
        return found[0] if len(found) == 1 else ""

    def _below_by_name(self, owner: Class) -> list[tuple[str, str]]:
        """A class and those below it as (path, name), without reading their files."""
        found, waiting = [(owner.module.path, owner.name)], [owner.name]
        while waiting:
            for place in self.class_index.get(waiting.pop(0), []):
                if place not in found:
                    found.append(place)
                    waiting.append(place[1])
        return found

    def _load(self, place: tuple[str, str]) -> Class | None:
        made = self.program.top_level(*place)
        return made if isinstance(made, Class) else None

    def _could_be(self, owner: Class, promised: Class) -> bool:
        """Whether a class has all that another declares."""
        return all(self.method(owner, n) for n, f in promised.functions.items() if "abstractmethod" in f.marks)

    def is_wrapper(self, name: str, promised: Class | None) -> bool:
        """Whether a class of that name is built around others of the promised class."""
        below = self.subclasses(promised) if promised is not None else []
        return any(owner.name == name and self._wraps(owner, promised) for owner in below)

    def _wraps(self, owner: Class, promised: Class | None) -> bool:
        """Whether a class is built around another of its kind: who builds it does so by name."""
        init = self.method(owner, "__init__")
        if init is None or promised is None or owner is promised:
            return False
        frame = self.module_frame(init.module)
        hints = [self.annotation(a.annotation, frame)[0] for a in init.node.args.args if a.annotation]
        return any(h is not None and (h is promised or h in self.lineage(owner)[1:]) for h in hints)

    def _is_declared_only(self, owner: Class) -> bool:
        public = [f for n, f in owner.functions.items() if not n.startswith("__")]
        return bool(public) and (
            all(is_abstract(f) for f in public) or any("abstractmethod" in f.marks for f in public)
        )

    def _instance(self, owner: Class, text: str) -> Obj:
        self.known_objects.add(text)
        cache = self._made
        key = (id(owner), text)
        if key not in cache:
            cache[key] = Obj(owner, "instance", {}, text, open=True)
            self.fill_unknown(cache[key])
        return cache[key]

    def instances_made(self) -> list[Obj]:
        """Objects that came from nowhere, one for each class that they may have."""
        return list(self._made.values())

    def fill_unknown(self, value: Obj) -> None:  # calls
        """Run the constructor of an instance that came from nowhere, with unknown arguments."""
        raise NotImplementedError
