"""Assignments: names, attributes, items, and storage that several names share."""

from __future__ import annotations

import ast
from typing import Any

from . import algebra
from .calls import Calls
from .core import Frame
from .diagram import Node
from .program import Class
from .sharing import part, share
from .values import (
    Murky,
    Obj,
    Opaque,
    Tensor,
    Tuple,
)
from .wording import short, text_of

_VIEWS = {
    "view",
    "reshape",
    "transpose",
    "permute",
    "squeeze",
    "unsqueeze",
    "narrow",
    "detach",
    "expand",
    "flatten",
    "view_as",
    "select",
    "t",
    "unflatten",
    "as_strided",
    "diagonal",
}


class Storing(Calls):
    """Keeps values."""

    def _hinted(self, value: Node, hint: Class | None, number: bool, text: str | None) -> Node:
        if hint is None and not number:
            return value

        def with_hint(v: Any) -> Any:
            if not isinstance(v, Opaque):
                return v
            # What had a promised class before keeps its name: it is the same object, wherever it is kept.
            name = v.text if v.hint is not None else text or v.text
            return Opaque(name, self.narrower(hint, v.hint), v.number or number)

        return self.diagrams.map(with_hint, value)

    def assign(self, target: ast.expr, value: Node, frame: Frame, pc: Node) -> None:
        """`target = value`."""
        if isinstance(target, ast.Name):
            self.bind(frame, target.id, value, pc)
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(target.elts, value, frame, pc)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value, frame, pc)
        elif isinstance(target, ast.Attribute):
            for base, where in self.values(self.evaluate(target.value, frame, pc), pc):
                if target.attr == self.factor and not isinstance(base, Obj):
                    self.note_blind(frame, target, f"`{ast.unparse(target)}` is set on something that isn't known")
                self.set_attribute(base, target.attr, self._attribute_value(base, target.attr, value, where), where)
        elif isinstance(target, ast.Subscript):
            self._store_item(target, value, frame, pc)

    def _attribute_value(self, base: Any, name: str, value: Node, pc: Node) -> Node:
        if not isinstance(base, Obj):
            return value
        for inner, _ in self.values(value, pc):
            if isinstance(inner, Obj) and inner.owner is not None and inner.text == inner.owner.name:
                inner.text = f"{base.text}.{name}"
                self.known_objects.add(inner.text)
        return self._hinted(value, self.attribute_hints.get((base, name)), False, f"{base.text}.{name}")

    def _unpack(self, targets: list[ast.expr], value: Node, frame: Frame, pc: Node) -> None:
        for index, target in enumerate(targets):
            self.assign(target, self._nth(value, index, len(targets), frame, pc), frame, pc)

    def _nth(self, value: Node, index: int, count: int, frame: Frame, pc: Node) -> Node:
        return self.each(value, pc, lambda v, where: self._part(v, index, count, frame, where))

    def _part(self, value: Any, index: int, count: int, frame: Frame, pc: Node) -> Node:
        if isinstance(value, Tuple) and len(value.items) == count:
            return value.items[index]
        if (
            isinstance(value, Obj)
            and value.owner is not None
            and value.owner.is_record
            and len(value.owner.fields) == count
        ):
            target = value.owner.fields[index].target
            assert isinstance(target, ast.Name)
            return self.get_attribute(value, target.id, frame, pc)
        if isinstance(value, Tuple):
            return self.new_list(list(value.items), "tuple").attrs["each"]
        if isinstance(value, Obj) and value.kind == "list":
            return self.item(value, self.leaf(Opaque(str(index))), frame, pc, ast.Pass())
        if isinstance(value, Tensor | Murky):
            return self.leaf(value)
        return self.leaf(Opaque(short(f"{text_of(value)}[{index}]")))

    def _store_item(self, target: ast.Subscript, value: Node, frame: Frame, pc: Node) -> None:
        base = self.evaluate(target.value, frame, pc)
        kinds = {getattr(v, "kind", "") for v, _ in self.values(base, pc) if isinstance(v, Obj)}
        if kinds:
            for held, where in self.values(base, pc):
                self._store_in(held, target, value, frame, where)
            return
        for known, _ in self.values(base, pc):
            if (
                isinstance(known, Opaque)
                and isinstance(target.slice, ast.Constant)
                and isinstance(target.slice.value, str)
            ):
                self.set_attribute(known, target.slice.value, value, pc)
                return
        new = self.diagrams.map2(
            lambda a, b: algebra.store(a, b, lambda i: self.sites[i].kind == "reciprocal"),
            self.diagrams.under(pc, base),
            self.diagrams.under(pc, value),
        )
        self.change(target.value, new, frame, pc)

    def _store_in(self, held: Any, target: ast.Subscript, value: Node, frame: Frame, pc: Node) -> None:
        if not isinstance(held, Obj):
            return
        self.escapes(value)
        if held.kind == "list":
            held.attrs["each"] = self.diagrams.map2(self.pooled, held.attrs["each"], value)
        elif held.kind == "dict":
            for index, where in self.values(self.evaluate(target.slice, frame, pc), pc):
                key = self.key_of(self.leaf(index)) or ""
                held.open = held.open or not key
                held.attrs[key] = self.diagrams.ite(self.absolute(where), value, held.attrs.get(key, self.unbound))

    def change(self, target: ast.expr, new: Node, frame: Frame, pc: Node) -> None:  # noqa: C901 - one branch a kind
        """The storage behind an expression was changed in place: all its names see it, the caller's too."""
        if isinstance(target, ast.IfExp):
            test = self.condition(target.test, frame, pc)
            self.change(target.body, new, frame, self.diagrams.both(pc, test))
            self.change(target.orelse, new, frame, self.diagrams.both(pc, self.diagrams.negate(test)))
            return
        while isinstance(target, ast.Subscript | ast.Call | ast.Starred) or _is_same_storage(target):
            if isinstance(target, ast.Call):
                if not isinstance(target.func, ast.Attribute):
                    return
                target = target.func.value
            else:
                assert isinstance(target, ast.Subscript | ast.Starred | ast.Attribute)
                target = target.value
        if isinstance(target, ast.Attribute):
            for base, where in self.values(self.evaluate(target.value, frame, pc), pc):
                if target.attr == self.factor and not isinstance(base, Obj):
                    self.note_blind(frame, target, f"`{ast.unparse(target)}` is set on something that isn't known")
                self.set_attribute(base, target.attr, new, where)
            key = ast.unparse(target)
        elif isinstance(target, ast.Name):
            key = target.id
            self._overwrite_where_bound(key, new, frame, pc)
        else:
            return
        for other, when in [(key, self.diagrams.true), *frame.aliases.get(key, {}).items()]:
            where = self.diagrams.both(pc, when)
            if other != key and "." not in other:
                self.overwrite(frame, other, new, where)
            elif other != key:
                self.assign(ast.parse(other, mode="eval").body, new, frame, where)
            if other in frame.env:
                frame.changed.add(other)

    def _overwrite_where_bound(self, name: str, new: Node, frame: Frame, pc: Node) -> None:
        at: Frame | None = frame
        while at is not None and name not in at.env:
            at = at.outer
        self.overwrite(at or frame, name, new, pc, at is None or at is frame)

    def _alias(self, target: ast.expr, source: ast.expr, value: Node, frame: Frame, pc: Node) -> None:
        """`y = x` and views of x: the two share storage from now on."""
        if not isinstance(target, ast.Name | ast.Attribute):
            return
        if isinstance(target, ast.Attribute):
            part(frame.aliases, ast.unparse(target), pc, self.diagrams)
        self._share(target, source, value, frame, pc)

    def still_shared(self, target: ast.expr, source: ast.expr, frame: Frame) -> dict[str, Node]:
        """What shares a variable's storage still after `y = y.view(…)`."""
        if isinstance(target, ast.Name) and self.storage_of(source) == target.id:
            return dict(frame.aliases.get(target.id, {}))
        return {}

    def _share(self, target: ast.expr, source: ast.expr, value: Node, frame: Frame, pc: Node) -> None:
        if isinstance(source, ast.IfExp):
            test = self.condition(source.test, frame, pc)
            self._share(target, source.body, value, frame, self.diagrams.both(pc, test))
            self._share(target, source.orelse, value, frame, self.diagrams.both(pc, self.diagrams.negate(test)))
            return
        key, other = ast.unparse(target), self.storage_of(source)
        if other is None and frame.function is not None and frame.function.is_kernel:
            other = _pointer(source)
        if other is None or other == key or pc is self.diagrams.false:
            return
        kinds = [v for v, _ in self.diagrams.values(value)]
        if not any(isinstance(v, Tensor | Opaque | Murky) for v in kinds):
            return
        share(frame.aliases, key, other, pc, self.diagrams)

    def storage_of(self, source: ast.expr) -> str | None:
        """The variable whose storage an expression is, or is a view of; None for a fresh value."""
        if isinstance(source, ast.Name):
            return source.id
        if isinstance(source, ast.Attribute):
            return self.storage_of(source.value) if source.attr in ("T", "mT", "data") else ast.unparse(source)
        if isinstance(source, ast.Subscript):
            return self.storage_of(source.value)
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) and source.func.attr in _VIEWS:
            return self.storage_of(source.func.value)
        return None


def _is_same_storage(node: ast.expr) -> bool:
    """Whether an attribute is another view of the tensor that it is an attribute of."""
    return isinstance(node, ast.Attribute) and node.attr in ("data", "T", "mT")


def _pointer(node: ast.expr) -> str | None:
    """The pointer that an address in a GPU kernel is computed from: `p` in `p + offsets`."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        node = node.left
    return node.id if isinstance(node, ast.Name) else None
