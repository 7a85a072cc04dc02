"""Objects: attributes, methods by inheritance, instances of a class that isn't known."""

from __future__ import annotations

import ast
import re
from typing import Any

from .core import Arguments, Frame
from .diagram import Node
from .names import Names
from .program import Class, Function
from .values import (
    UNBOUND,
    Bound,
    ClassValue,
    Const,
    External,
    FunctionValue,
    Member,
    ModuleValue,
    Murky,
    Obj,
    Opaque,
    Power,
    Tensor,
    Tuple,
)
from .wording import text_of

_META = {"shape", "dtype", "device", "ndim", "is_cuda", "layout", "names", "requires_grad", "itemsize", "nbytes"}
"""Attributes of a tensor that don't carry what it carries."""


class _Slot(dict[str, Node]):
    """One class attribute as if it were among an object's."""

    def __init__(self, cache: dict[tuple[int, str], Node], key: tuple[int, str], known: Node | None) -> None:
        super().__init__({} if known is None else {key[1]: known})
        self.cache, self.key = cache, key

    def __setitem__(self, name: str, value: Node) -> None:
        self.cache[self.key] = value


class Objects(Names):
    """Reads and writes attributes."""

    def bases(self, owner: Class) -> list[Class | External]:
        """A class's direct bases."""
        key = id(owner)
        cache = self._bases
        if key not in cache:
            cache[key] = []
            frame = self.module_frame(owner.module)
            for base in owner.node.bases:
                target = base.value if isinstance(base, ast.Subscript) else base
                for value, _ in self.diagrams.values(self.evaluate(target, frame, self.diagrams.true)):
                    if isinstance(value, ClassValue):
                        cache[key].append(value.owner)
                    elif isinstance(value, External):
                        cache[key].append(value)
        return cache[key]

    def lineage(self, owner: Class) -> list[Class]:
        """The class and its bases of the tree in the order of attribute lookup (depth first, last of repeats)."""
        found: list[Class] = []

        def walk(at: Class) -> None:
            if len(found) < 200:
                found.append(at)
                for base in self.bases(at):
                    if isinstance(base, Class) and base is not at:
                        walk(base)

        walk(owner)
        last = {id(c): index for index, c in enumerate(found)}
        return [c for index, c in enumerate(found) if last[id(c)] == index]

    def _resolution(self, owner: Class) -> list[ClassValue | External]:
        """What a class's `__mro__` lists: the classes of the tree, then what they have from outside."""
        line = self.lineage(owner)
        outside = [b for c in line for b in self.bases(c) if isinstance(b, External)]
        return [*map(ClassValue, line), *dict.fromkeys(outside), External("builtins.object")]

    def narrower(self, promised: Class | None, known: Class | None) -> Class | None:
        """The more telling of two classes that a value is promised to have."""
        if promised is None or known is None:
            return promised or known
        return known if promised in self.lineage(known) else promised

    def has_external_base(self, owner: Class) -> bool:
        """Whether attributes can come from a base outside the tree."""
        plain = {"ABC", "object", "Protocol", "Generic", "Module", "NamedTuple", "Enum", "IntEnum"}
        return any(isinstance(b, External) and b.name not in plain for c in self.lineage(owner) for b in self.bases(c))

    def method(self, owner: Class, name: str, after: Class | None = None) -> Function | None:
        """The function that a class's attribute is, in the order of attribute lookup, from after a class on."""
        line = self.lineage(owner)
        if after is not None:
            line = line[line.index(after) + 1 :] if after in line else []
        for at in line:
            if name in at.functions:
                return at.functions[name]
        return None

    def class_attributes(self, owner: Class, name: str) -> dict[str, Node]:
        """Where an assignment to a class's attribute is kept, with the value it has so far."""
        known = self.class_attribute(owner, name)
        cache = self._class_vars
        return _Slot(cache, (id(owner), name), known)

    def class_attribute(self, owner: Class, name: str) -> Node | None:
        """A class variable; the value is kept, so that a dict filled by registration is one dict."""
        cache = self._class_vars
        for at in self.lineage(owner):
            if (id(at), name) in cache:
                return cache[id(at), name]
            for statement in at.members.get(name, []):
                value = getattr(statement, "value", None)
                if not isinstance(statement, ast.Assign | ast.AnnAssign) or value is None:
                    continue
                key = (id(at), name)
                if key not in cache:
                    cache[key] = self.evaluate(value, self.module_frame(at.module), self.diagrams.true)
                    self.escapes(cache[key])
                    self.mark_registry(cache[key], at.module.path, name)
                    made = getattr(cache[key], "value", None)
                    if isinstance(made, Obj) and made.owner is not None:
                        made.text = f"{at.name}.{name}"
                return cache[key]
        return None

    def mark_registry(self, node: Node, path: str, name: str) -> None:
        """Remember a container made at the top level, which registrations elsewhere may fill."""
        value = getattr(node, "value", None)
        if isinstance(value, Obj) and value.kind in ("dict", "list"):
            self.registries.setdefault(value, (path, name))

    def field_annotation(self, owner: Class, name: str) -> tuple[Class | None, bool]:
        """What the annotation of a class's attribute promises, in the class body or on `self.name: T` in a method."""
        for at in self.lineage(owner):
            for statement in at.members.get(name, []):
                if isinstance(statement, ast.AnnAssign):
                    return self.annotation(statement.annotation, self.module_frame(at.module))
        return None, False

    def finish(self, value: Obj) -> None:  # calls
        """Run the constructor that was put off."""
        raise NotImplementedError

    def get_attribute(self, value: Any, name: str, frame: Frame, pc: Node) -> Node:
        """An attribute of a value, `UNBOUND` where it is known to have none."""
        self.spend()
        if isinstance(value, Obj):
            return self._of_object(value, name, frame, pc)
        if isinstance(value, Opaque):
            return self._of_opaque(value, name, frame)
        if isinstance(value, Tensor | Power | Murky):
            return self.leaf(Opaque(f"tensor.{name}") if name in _META else value)
        if isinstance(value, ModuleValue):
            return self.imported_from(value, name)
        if isinstance(value, ClassValue):
            return self._of_class(value.owner, name, frame)
        if isinstance(value, Member):
            return self._of_member(value, name, frame, pc)
        if isinstance(value, External):
            return self.leaf(External(f"{value.dotted}.{name}"))
        if isinstance(value, FunctionValue | Bound):
            return self.unknown(
                f"{text_of(value)}.{name}", None, frame, frame.module.header[0] if frame.module.header else ast.Pass()
            )
        return self.unbound if isinstance(value, Const | Tuple) else self.leaf(Opaque(f"{text_of(value)}.{name}"))

    def imported_from(self, value: ModuleValue, name: str) -> Node:
        """A module's attribute."""
        found = self.module_name(value.module, name)
        if found is self.unbound:
            return self.imported(value.module, "", 1, name) if value.module.path.endswith("__init__.py") else found
        return found

    def _of_object(self, value: Obj, name: str, frame: Frame, pc: Node) -> Node:
        if name == "__dict__":
            self.note_blind(
                frame, frame.function.node if frame.function else ast.Pass(), f"`{value.text}.__dict__` is used"
            )
            return self.leaf(Opaque(f"{value.text}.__dict__"))
        if (
            value.pending is not None
            and name not in value.attrs
            and not (value.owner and self.method(value.owner, name))
        ):
            self.finish(value)
        own = value.attrs.get(name)
        if own is not None and all(v is not UNBOUND for v, _ in self.values(own, pc)):
            return own
        inherited = self._inherited(value, name, frame, pc) if value.owner else self.unbound
        if own is None:
            return inherited
        return self.diagrams.map(lambda v: inherited if v is UNBOUND else v, own)

    def _inherited(self, value: Obj, name: str, frame: Frame, pc: Node) -> Node:
        assert value.owner is not None
        function = self.method(value.owner, name)
        if function is not None:
            if function.marks & {"property", "cached_property"}:
                return self.call(FunctionValue(function, value), Arguments([], {}), frame, pc)
            if "staticmethod" in function.marks:
                return self.leaf(FunctionValue(function))
            bound: Any = ClassValue(value.owner) if "classmethod" in function.marks else value
            return self.leaf(FunctionValue(function, bound))
        shared = self.class_attribute(value.owner, name)
        if shared is not None:
            return shared
        if name == "__class__":
            return self.leaf(ClassValue(value.owner))
        if name == self.factor and value.open:
            return self.leaf(Power(1))
        if (value.open and not self.surely_lacks(value.owner, name)) or self.has_external_base(value.owner):
            hint, number = self.field_annotation(value.owner, name)
            return self.unknown(f"{value.text}.{name}", hint, frame, value.owner.node, number)
        return self.unbound

    def text_of_class(self, at: Class) -> str:
        """A class's own source."""
        if id(at) not in self._class_texts:
            lines = at.module.text.split("\n")
            self._class_texts[id(at)] = "\n".join(lines[at.node.lineno - 1 : at.node.end_lineno])
        return self._class_texts[id(at)]

    def class_text(self, owner: Class) -> str:
        """The source of a class and its bases."""
        return "\n".join(map(self.text_of_class, self.lineage(owner)))

    def surely_lacks(self, owner: Class, name: str) -> bool:
        """Whether instances of a class have no attribute of that name, nothing of the tree being able to set one."""
        key = (owner, name)
        if key not in self._lacking:
            word = re.compile(rf"\b{re.escape(name)}\b")
            line = self.lineage(owner)
            self._lacking[key] = (
                name != self.factor
                and not name.startswith("__")
                and not any(set(c.functions) & {"__getattr__", "__getattribute__"} for c in line)
                and not any(word.search(self.text_of_class(c)) for c in line)
                and not self.program.texts.stored(name)
            )
        return self._lacking[key]

    def _of_opaque(self, value: Opaque, name: str, frame: Frame) -> Node:
        known = self.extras.get(value.text, {}).get(name)
        if known is not None:
            return known
        if name == self.factor:
            return self.leaf(Power(1))
        at: ast.AST = frame.function.node if frame.function else ast.Pass()
        hint: Class | None = None
        number = False
        if value.hint is not None:
            function = self.method(value.hint, name)
            if function is not None and function.marks & {"property", "cached_property"}:
                returns = getattr(function.node, "returns", None)
                hint, number = self.annotation(returns, self.module_frame(function.module))
            elif function is not None:
                return self.leaf(Bound(value, name))
            else:
                hint, number = self.field_annotation(value.hint, name)
        return self.unknown(f"{value.text}.{name}", hint, frame, at, number)

    def _of_class(self, owner: Class, name: str, frame: Frame) -> Node:
        if self.is_enum(owner) and name in self.enum_members(owner):
            return self.leaf(Member(owner, name))
        function = self.method(owner, name)
        if function is not None:
            bound = ClassValue(owner) if "classmethod" in function.marks else None
            return self.leaf(FunctionValue(function, bound))
        shared = self.class_attribute(owner, name)
        if shared is not None:
            return shared
        if name in ("__name__", "__qualname__"):
            return self.leaf(Const.of(owner.name))
        if name == "__mro__":
            return self.leaf(Tuple(tuple(map(self.leaf, self._resolution(owner)))))
        if name == "__dict__":
            names = dict.fromkeys([*owner.functions, *owner.members])
            return self.leaf(Obj(None, "dict", {repr(n): self._of_class(owner, n, frame) for n in names}, owner.name))
        return self.leaf(Opaque(f"{owner.name}.{name}"))

    def _of_member(self, value: Member, name: str, frame: Frame, pc: Node) -> Node:
        function = self.method(value.owner, name)
        if function is not None:
            if function.marks & {"property", "cached_property"}:
                return self.call(FunctionValue(function, value), Arguments([], {}), frame, pc)
            return self.leaf(FunctionValue(function, value))
        if name == "value":
            literal = self.member_literal(value)
            return self.leaf(Const.of(literal) if literal is not None else Opaque(f"{text_of(value)}.value"))
        return self.leaf(Const.of(value.name) if name == "name" else Opaque(f"{text_of(value)}.{name}"))

    def set_attribute(self, value: Any, name: str, new: Node, pc: Node) -> None:
        """Set an attribute of a value in the worlds of `pc`."""
        pc = self.absolute(pc)
        self.escapes(new)
        if isinstance(value, Obj):
            attrs = value.attrs
            new = self._expected(name, new, pc)
        elif isinstance(value, Opaque):
            attrs = self.extras.setdefault(value.text, {})
        elif isinstance(value, ClassValue):
            attrs = self.class_attributes(value.owner, name)
        else:
            return
        if value not in self._hot_objects:
            self.writes += 1
        old = attrs.get(name, self.unbound)
        if isinstance(value, Opaque) and name not in attrs and pc is not self.diagrams.true:
            old = self.leaf(Opaque(f"{value.text}.{name}"))
        new = self.marked(name, new)
        merged = self.diagrams.under(self.alive, self.diagrams.ite(pc, new, old))
        attrs[name] = self.tidy(merged, f"{text_of(value)}.{name}")

    def is_wrapper(self, name: str, promised: Class | None) -> bool:  # instances
        """Whether a class of that name is built around others of the promised class."""
        raise NotImplementedError

    def settled(self, value: Opaque, name: str) -> Obj | None:  # instances
        """An unknown object as an instance of the class of that name, where it could have it."""
        raise NotImplementedError

    def _expected(self, name: str, new: Node, pc: Node) -> Node:
        """A fact that names the class of an attribute tells what it is, and rules out worlds in which it is another."""
        fact = self.folded.get(name.casefold()) or self.folded.get(f"type({name})".casefold())
        wanted = self.facts[fact] if fact is not None else ""
        if fact is None or not wanted[:1].isupper():
            return new
        known: dict[Any, Obj] = {}
        for value, where in self.values(new, pc):
            if isinstance(value, Opaque):
                self.nicknames.setdefault(f"type({value.text})", []).append(name)
                if self.is_wrapper(wanted, value.hint):
                    # Who builds a wrapper does so by name: what nobody is seen to build isn't one.
                    self.alive = self.diagrams.both(self.alive, self.diagrams.negate(where))
                    continue
                made = self.settled(value, wanted)
                if made is not None:
                    self.used_facts.add(fact)
                    known[value] = made
            elif isinstance(value, Obj) and value.owner is not None and value.owner.name != wanted:
                self.used_facts.add(fact)
                self.alive = self.diagrams.both(self.alive, self.diagrams.negate(where))
        return self.diagrams.map(lambda v: known.get(v, v), new) if known else new
