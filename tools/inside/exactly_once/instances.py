"""Objects that came from nowhere: which classes they may have, and an instance for each."""

from __future__ import annotations

import ast

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
        if value.text not in cache:
            cache[value.text] = None
            cache[value.text] = self._instantiate(value, frame, at)
        return cache[value.text]

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
        if not names or len(names) > MOST_CLASSES:
            return None
        if len(names) == 1:
            return self.leaf(self._instance(next(iter(names.values())), value.text))
        last = value.text.rpartition(".")[2] if "(" not in value.text else value.text
        key = f"type({last})"
        if len(names) >= MANY_CLASSES and self.may_slice and self.fact(key, key, tuple(names)) is None:
            raise ManyClasses(key, tuple(names))
        chosen = self.new_guard(key, frame, at, tuple(names))
        return self.diagrams.map(lambda name: self._instance(names[name], value.text), chosen)

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
