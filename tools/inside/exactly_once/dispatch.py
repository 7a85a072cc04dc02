"""Methods of objects whose class isn't known: every class that they may have is followed."""

from __future__ import annotations

import ast
import re
from typing import Any

from .core import Arguments, Frame
from .diagram import Node
from .entering import length
from .guards import is_abstract
from .program import Class, Function
from .relevance import Relevance
from .values import (
    ClassValue,
    Const,
    FunctionValue,
    Obj,
    Opaque,
    Power,
)

LONGEST_COLD = 45
"""Lines of a function that is entered although nothing handed to it carries the factor."""
DEEPEST_COLD = 4
"""How many of them inside each other."""


class Dispatch(Relevance):
    """Dispatches on what isn't known."""

    def _opaque_method(self, value: Opaque, name: str, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        platform = self.platform(name, frame, arguments.node or ast.Pass()) if not arguments.all() else None
        if platform is not None:
            return self.diagrams.map(Const.of, platform)
        stored = self.extras.get(value.text, {})
        if name in ("pop", "get") and arguments.positional:
            key = (self.key_of(arguments.positional[0]) or "").strip("'\"")
            if key == self.factor:
                return self.leaf(Power(1))
            if key in stored:
                return stored[key]
        if name in stored:
            return self.each_callee(stored[name], arguments, frame, pc)
        if value.hint is not None and self._somewhere_below(value.hint, name):
            found = self._dispatched(value, name, arguments, frame, pc)
            if found is not None:
                return found
        if value.hint is None and any(map(self.is_hot, arguments.all())):
            alike = self._by_likeness(value, name, arguments, frame, pc)
            if alike is not None:
                return alike
        return self.value_method(value, name, arguments, frame, pc)

    def _by_likeness(self, value: Opaque, name: str, arguments: Arguments, frame: Frame, pc: Node) -> Node | None:
        """A method of a part of a known object, whose class nothing tells: each class whose method fits is followed."""
        owner_text = value.text.rpartition(".")[0]
        if not owner_text or "(" in value.text or owner_text not in self.known_objects:
            return None
        roots = [c for c in self.definers(name) if self._fits(c, name, arguments)]
        if not roots:
            return None
        found = self.instances_among(value, roots, frame, pc, arguments.node or ast.Pass())
        return self._each_method(found, name, arguments, frame, pc) if found is not None else None

    def _each_method(self, found: Node, name: str, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        parts: list[tuple[Node, Node]] = []
        for made, where in self.values(self.diagrams.under(pc, found), pc):
            where = self.live(where)
            if where is not self.diagrams.false:
                parts.append((where, self.call_method(made, name, arguments, frame, where)))
        return self.join(parts)

    def _fits(self, owner: Class, name: str, arguments: Arguments) -> bool:
        """Whether a method can be called so, and arguments that are variables are called what it calls them."""
        spec = owner.functions[name].node.args
        names = [a.arg for a in [*spec.posonlyargs, *spec.args]][1:]
        if len(arguments.positional) > len(names) or spec.vararg or spec.kwarg:
            return False
        if not set(arguments.named) <= {*names, *(a.arg for a in spec.kwonlyargs)}:
            return False
        given = set(names[: len(arguments.positional)]) | set(arguments.named)
        needed = names[: len(names) - len(spec.defaults)] if spec.defaults else names
        spoken = [(names[k], s) for k, s in arguments.sources.items() if isinstance(k, int) and isinstance(s, ast.Name)]
        alike = sum(n == s.id for n, s in spoken)
        return set(needed) <= given and alike * 2 >= len(spoken)

    def _dispatched(self, value: Opaque, name: str, arguments: Arguments, frame: Frame, pc: Node) -> Node | None:
        """A method of an object of unknown class: each class that it may have is followed."""
        assert value.hint is not None
        function = self.method(value.hint, name)
        hot = any(map(self.is_hot, arguments.all()))
        if function is not None and not hot and (not is_abstract(function) or length(function) > LONGEST_COLD):
            if length(function) <= LONGEST_COLD and not is_abstract(function) and self.cold < DEEPEST_COLD:
                return self.enter(FunctionValue(function, value), arguments, frame, pc)
            return None
        if not hot:
            return None
        made = self._made_by(function) if function is not None else None
        if function is not None and made is not None:
            self._note_products(value.hint, name, made)
            # A factory declared by a base class: what it makes is told by its type, whoever makes it.
            return self.unknown(f"{value.text}.{name}()", made, frame, arguments.node or function.node)
        found = self.instances(value, frame, pc, arguments.node or ast.Pass())
        if found is None:
            return None
        parts: list[tuple[Node, Node]] = []
        for instance, where in self.values(self.diagrams.under(pc, found), pc):
            where = self.live(where)
            if where is self.diagrams.false or (function is None and not self._has_method(instance, name)):
                continue  # an AttributeError: no value there
            parts.append((where, self.call_method(instance, name, arguments, frame, where)))
        return self.join(parts) if parts else None

    def _has_method(self, value: Any, name: str) -> bool:
        return isinstance(value, Obj) and value.owner is not None and self.method(value.owner, name) is not None

    def _somewhere_below(self, owner: Class, name: str) -> bool:
        """Whether a class or one below it has a method."""
        cache = self._below
        if (owner, name) not in cache:
            cache[owner, name] = self.method(owner, name) is not None or (
                not self.is_enum(owner) and any(name in c.functions for c in self.subclasses(owner))
            )
        return cache[owner, name]

    def _note_products(self, maker: Class, name: str, made: Class) -> None:
        """Classes that the makers' methods construct count as what they promise, whatever their bases."""
        if (maker, name) in self.products_noted:
            return
        self.products_noted.add((maker, name))
        for at in self.subclasses(maker):
            function = at.functions.get(name)
            if function is None:
                continue
            for word in dict.fromkeys(re.findall(r"\b([A-Z]\w+)\(", function.text)):
                found = self.module_name(at.module, word)
                value = getattr(found, "value", None)
                local = value.owner if isinstance(value, ClassValue) else self._imported_in(function, word, at)
                if local is not None and made not in self.lineage(local):
                    self.products.setdefault(made, {})[local] = None

    def _imported_in(self, function: Function, word: str, at: Class) -> Class | None:
        for node in ast.walk(function.node):
            if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) == word for a in node.names):
                value = getattr(self.imported(at.module, node.module or "", node.level, word), "value", None)
                return value.owner if isinstance(value, ClassValue) else None
        return None

    def _made_by(self, function: Function) -> Class | None:
        """The class with subclasses that an abstract method promises to return an instance of."""
        if not is_abstract(function):
            return None
        hint, _ = self.annotation(getattr(function.node, "returns", None), self.module_frame(function.module))
        if hint is None or hint.is_record or self.is_enum(hint) or hint.name not in self.class_index:
            return None
        return hint
