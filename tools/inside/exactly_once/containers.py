"""Lists, tuples and dicts: what stands for their items."""

from __future__ import annotations

import math
from typing import Any

from . import algebra
from .diagram import Node, leaves
from .instances import Instances
from .values import (
    UNBOUND,
    Const,
    Member,
    Murky,
    Obj,
    Opaque,
    Power,
    Tensor,
    Tuple,
)
from .wording import short, text_of

MOST_KEYS = 200


class Containers(Instances):
    """Holds items."""

    def new_list(self, items: list[Node], text: str) -> Obj:
        """A list whose length isn't followed: one value stands for each of its items."""
        each = items[0] if items else self.unbound
        for item in items[1:]:
            each = self.diagrams.map2(self.pooled, each, item)
        return Obj(None, "list", {"each": each}, short(text, 40))

    def pooled(self, a: Any, b: Any) -> Any:
        """One value for two items of a list."""
        if a is UNBOUND or a == b:
            return b
        if b is UNBOUND:
            return a
        if any(isinstance(v, Tensor | Murky | Power) for v in (a, b)):
            return algebra.union([a, b])
        return a if isinstance(a, Obj) else Opaque(f"{text_of(a)} or {text_of(b)}")

    def merge_dicts(self, into: Obj, other: Node, pc: Node) -> None:
        """`into.update(other)`."""
        for value, where in self.values(other, pc):
            if isinstance(value, Obj) and value.kind == "dict":
                into.open = into.open or value.open
                for name, item in value.attrs.items():
                    into.attrs[name] = self.diagrams.ite(self.absolute(where), item, into.attrs.get(name, self.unbound))
            else:
                into.open = True

    def key_of(self, node: Node) -> str | None:
        """A constant dict key as text, None where it isn't constant."""
        value = getattr(node, "value", None)
        if isinstance(value, Const):
            return repr(value.value)
        if isinstance(value, Tuple):
            parts = [self.key_of(item) for item in value.items]
            return f"({', '.join(p for p in parts if p)})" if all(parts) else None
        return text_of(value) if type(value).__name__ in ("Member", "ClassValue", "FunctionValue") else None

    def dict_item(self, value: Obj, key: Node, default: Node | None) -> Node:
        """`value[key]`, or `value.get(key, default)`."""
        name = self.key_of(key)
        missing = default if default is not None else self.leaf(Opaque(short(f"{value.text}[{self._index_text(key)}]")))
        if name is None:
            if not value.attrs:
                return missing
            pooled = self.new_list(list(value.attrs.values()), value.text).attrs["each"]
            return pooled
        if name.strip("'") == self.factor and name not in value.attrs and value.open:
            return self.leaf(Power(1))
        found = value.attrs.get(name)
        if found is None:
            return self.leaf(Opaque(f"{value.text}[{name}]")) if value.open else missing
        return self.diagrams.map(lambda v: missing if v is UNBOUND else v, found)

    def fill_registry(self, value: Obj) -> None:  # registry
        """Run the registrations that fill a container made at the top level."""
        raise NotImplementedError

    def _item_of_tuple(self, value: Tuple, index: Any) -> Node:
        if (
            isinstance(index, Const)
            and isinstance(index.value, int)
            and -len(value.items) <= index.value < len(value.items)
        ):
            return value.items[index.value]
        return self.new_list(list(value.items), "tuple").attrs["each"]

    @staticmethod
    def _index_text(index: Node) -> str:
        return text_of(getattr(index, "value", "…"))

    def _alternatives(self, items: list[Node]) -> Node:
        """A tuple of constants that depend on guards, as constant tuples that do: a key to look up."""
        sizes = [len(leaves(item)) for item in items]
        constant = all(isinstance(v.value, Const | Member) for item in items for v in leaves(item))
        if not constant or not 1 < math.prod(sizes) <= MOST_KEYS:
            return self.leaf(Tuple(tuple(items)))
        result: Node = self.leaf(Tuple(()))
        for item in items:
            result = self.diagrams.map2(lambda t, v: Tuple((*t.items, self.leaf(v))), result, item)
        return result
