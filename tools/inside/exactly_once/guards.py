"""Conditions: which guard a test of an unknown value means, and what follows from what is known."""

from __future__ import annotations

import ast
import re
from typing import Any

from .core import Frame
from .diagram import Node
from .facts import Facts
from .program import Class, Function, last_name
from .values import (
    UNBOUND,
    ClassValue,
    Const,
    External,
    Member,
    Murky,
    Obj,
    Opaque,
    Power,
    Tensor,
    Tuple,
)
from .wording import short, text_of

PLATFORMS = ("cuda", "hip", "npu", "cpu", "xpu", "musa", "hpu", "mps", "tpu", "another")
_PLATFORM = re.compile(r"is_(cuda|hip|rocm|npu|cpu|xpu|musa|hpu|mps|tpu|out_of_tree)")
_COUNTED = re.compile(r"(^|\.)(num|n|len|size)_\w+$|\.shape\[|^len\(|\.numel\(\)|_size$")
_EXTENT = re.compile(r"\.shape\[-?\d+\]$|\.numel\(\)$|\.size\(-?\d+\)$")
_ORDER = {
    ast.Lt: ("<",),
    ast.LtE: ("<", "="),
    ast.Gt: (">",),
    ast.GtE: ("=", ">"),
    ast.Eq: ("=",),
    ast.NotEq: ("<", ">"),
}
_MIRROR: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_SIGN = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.Is: "is",
}
ENUMS = {"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"}


class Guards(Facts):
    """Turns tests into diagrams of true and false."""

    def key_of(self, node: Node) -> str | None:  # expressions
        """A constant dict key as text, None where it isn't constant."""
        raise NotImplementedError

    def new_guard(
        self, key: str, frame: Frame, node: ast.AST, values: tuple[str, ...] = ("true", "false"), name: str = ""
    ) -> Node:
        """A diagram with the guard's value (a string) as leaves; a known fact leaves one."""
        guard = self.diagrams.guard(key, values, name, frame.module.path, getattr(node, "lineno", 0))
        known = self.fact(guard.key, guard.name, values)
        if known is not None:
            return self.leaf(known)
        return self.diagrams.branch(guard, tuple(self.leaf(v) for v in values))

    def atom(self, key: str, frame: Frame, node: ast.AST) -> Node:
        """A condition that isn't known, by its text."""
        if "amx" in key and " is None" not in key:
            # Advanced Matrix Extensions are Intel's CPUs' alone.
            on_cpu = self.platform("is_cpu", frame, node)
            assert on_cpu is not None
            return self.diagrams.both(
                on_cpu, self.diagrams.map(lambda v: v == "true", self.new_guard(short(key), frame, node))
            )
        return self.diagrams.map(lambda v: v == "true", self.new_guard(short(key), frame, node))

    def platform(self, name: str, frame: Frame, node: ast.AST) -> Node | None:
        """What a predicate such as `is_cuda` means, None for other names. Platforms exclude each other."""
        if name == "is_cuda_alike":
            wanted: tuple[str, ...] = ("cuda", "hip")
        else:
            match = _PLATFORM.fullmatch(name)
            if match is None:
                return None
            wanted = ({"rocm": "hip", "out_of_tree": "another"}.get(match[1], match[1]),)
        return self.diagrams.map(lambda v: v in wanted, self.new_guard("platform", frame, node, PLATFORMS))

    def unknown(self, text: str, hint: Class | None, frame: Frame, node: ast.AST, number: bool = False) -> Node:
        """A value that isn't known: a member of its Enum if it has one, else opaque."""
        if hint is not None and self.is_enum(hint):
            members = self.enum_members(hint)
            if members:
                return self._member(short(text), hint, members, frame, node)
        if hint is not None:
            made = self.known_instance(text, hint, frame, node)
            if made is not None:
                return made
        return self.leaf(Opaque(short(text), hint, number or bool(_COUNTED.search(text))))

    def told_member(self, text: str, hint: Class) -> Member | None:
        """The member of an Enum that a fact gives something, by its name or by the string that stands for it."""
        told = self.known(text)
        if told is None:
            return None
        members = [Member(hint, name) for name in self.enum_members(hint)]
        wanted = told[1].casefold()
        by_text = [m for m in members if str(self.member_literal(m)).casefold() == wanted]
        by_name = [m for m in members if m.name.casefold().replace("_", "-") == wanted.replace("_", "-")]
        for member in by_text + by_name:
            self.used_facts.add(told[0])
            return member
        return None

    def _member(self, text: str, hint: Class, members: list[str], frame: Frame, node: ast.AST) -> Node:
        """A member of an Enum that isn't known."""
        told = self.told_member(text, hint)
        if told is not None:
            return self.leaf(told)
        chosen = self.new_guard(text, frame, node, tuple(members))
        return self.diagrams.map(lambda name: Member(hint, name), chosen)

    def known_instance(self, text: str, hint: Class, frame: Frame, node: ast.AST) -> Node | None:  # instances
        """An unknown object as an instance of the class that a fact names."""
        raise NotImplementedError

    def is_enum(self, owner: Class) -> bool:
        """Whether a class of the tree is an Enum."""
        return bool(ENUMS & set(owner.base_names))

    def enum_members(self, owner: Class) -> list[str]:
        """An Enum's members, in order."""
        found = []
        for statement in owner.node.body:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if isinstance(target, ast.Name) and not target.id.startswith("_"):
                found.append(target.id)
        return found

    def annotation(self, node: ast.expr | None, frame: Frame) -> tuple[Class | None, bool]:  # noqa: C901 - a branch a form
        """The class of the tree that an annotation names, looking through Optional, and whether it names a number."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except (SyntaxError, ValueError):
                return None, False
        if isinstance(node, ast.BinOp):
            left = self.annotation(node.left, frame)
            return left if left != (None, False) else self.annotation(node.right, frame)
        if isinstance(node, ast.Subscript):
            if last_name(node.value) in ("Optional", "Union", "Final", "ClassVar", "Annotated", "TypeGuard"):
                inner = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
                return self.annotation(inner, frame)
            return None, False
        if isinstance(node, ast.Name | ast.Attribute):
            if last_name(node) in ("int", "float", "bool", "str"):
                return None, last_name(node) in ("int", "float")
            for value, _ in self.diagrams.values(self.evaluate(node, frame, self.diagrams.true)):
                if isinstance(value, Tuple):
                    value = getattr(value.items[0], "value", None)
                if isinstance(value, ClassValue):
                    return value.owner, False
        return None, False

    def truth(self, node: Node, frame: Frame, at: ast.AST) -> Node:
        """When a value counts as true."""
        return self.diagrams.map(lambda value: self._truth(value, frame, at), node)

    def _truth(self, value: Any, frame: Frame, at: ast.AST) -> bool | Node:
        if isinstance(value, Const):
            return bool(value.value)
        if isinstance(value, Tuple):
            return bool(value.items)
        if isinstance(value, Obj) and value.kind == "dict" and not value.open:
            return bool(value.attrs)
        if isinstance(value, Obj) and value.kind == "list":
            if self.is_empty_list(value):
                return False
            return self.atom(f"{value.text} isn't empty", frame, at)
        if isinstance(value, Opaque):
            if value.number or f"{value.text} ? 0" in self.diagrams.guards:
                return self.diagrams.negate(self._sign(value, 0, ("=",), frame, at))
            missing = self.diagrams.guards.get(f"{value.text} is None")
            plain = self.atom(value.text, frame, at)
            return self.diagrams.both(plain, self.diagrams.negate(self.diagrams.test(missing))) if missing else plain
        if isinstance(value, External):
            return self._external_truth(value, frame, at)
        return value is not UNBOUND

    def is_empty_list(self, value: Any) -> bool:
        """Whether nothing was put into a list, and nobody else was handed it."""
        return (
            isinstance(value, Obj)
            and value.kind == "list"
            and not value.open
            and value not in self.registries
            and value.attrs.get("each") is self.unbound
        )

    def _external_truth(self, value: External, frame: Frame, at: ast.AST) -> bool | Node:
        if value.dotted in ("torch.version.hip", "torch.version.cuda"):
            found = self.platform("is_" + value.name, frame, at)
            assert found is not None
            return found
        if value.name == "TYPE_CHECKING":
            # What is imported for annotations tells what unknown values are.
            return True
        if value.name.isupper() or value.name.startswith(("has_", "is_", "HAS_", "use_")):
            return self.atom(value.dotted, frame, at)
        return True

    def compare(self, op: ast.cmpop, a: Any, b: Any, frame: Frame, at: ast.AST) -> bool | Node:
        """When a comparison of two values holds."""
        negative = {ast.NotEq: ast.Eq, ast.IsNot: ast.Is, ast.NotIn: ast.In}.get(type(op))
        if negative is not None:
            found = self.compare(negative(), a, b, frame, at)
            return not found if isinstance(found, bool) else self.diagrams.negate(found)
        if isinstance(op, ast.In):
            return self._contains(a, b, frame, at)
        if isinstance(op, ast.Is):
            return self._same(a, b, frame, at, identical=True)
        if isinstance(op, ast.Eq):
            return self._same(a, b, frame, at, identical=False)
        return self._ordered(op, a, b, frame, at)

    def _contains(self, a: Any, b: Any, frame: Frame, at: ast.AST) -> bool | Node:
        key = self.key_of(self.leaf(a))
        if isinstance(b, Obj) and b.kind == "dict" and key is not None:
            if key in b.attrs:
                return self.diagrams.map(lambda v: v is not UNBOUND, b.attrs[key])
            return self.atom(f"{key} in {b.text}", frame, at) if b.open or "" in b.attrs else False
        if isinstance(b, Const) and isinstance(a, Const):
            try:
                return bool(a.value in b.value)
            except TypeError:
                return False
        items = [leaf for item in b.items for leaf, _ in self.diagrams.values(item)] if isinstance(b, Tuple) else None
        if items is not None and all(isinstance(i, Const | Member | External) for i in items):
            result = self.diagrams.false
            for item in items:
                found = self._same(a, item, frame, at, identical=False)
                found = self.leaf(found) if isinstance(found, bool) else found
                result = self.diagrams.either(result, found)
            return result
        return self.atom(f"{text_of(a)} in {text_of(b)}", frame, at)

    def _same(self, a: Any, b: Any, frame: Frame, at: ast.AST, *, identical: bool) -> bool | Node:  # noqa: C901 - one branch a kind
        if isinstance(a, Const | Power) and not isinstance(b, Const | Power):
            a, b = b, a
        if isinstance(b, Const) and b.value is None:
            return self._is_none(a, frame, at)
        if isinstance(a, Const) and isinstance(b, Const):
            return bool(a.value == b.value and (not identical or a.kind == b.kind))
        if isinstance(a, Member) and isinstance(b, Member):
            return a == b
        if isinstance(a, Member) and isinstance(b, Const):
            literal = self.member_literal(a)
            return literal is not None and literal == b.value
        if isinstance(a, Power):
            return isinstance(b, Power) and a.k == b.k
        if isinstance(a, Obj | ClassValue) and isinstance(b, Obj | ClassValue):
            return a == b
        if isinstance(a, Opaque) and isinstance(b, Const):
            if isinstance(b.value, int | float) and not isinstance(b.value, bool):
                return self._sign(a, b.value, ("=",), frame, at)
            return self._equals_constant(a, b, frame, at)
        if isinstance(b, Power):
            return False
        if isinstance(a, Opaque) and a == b:
            return True
        first, second = sorted((text_of(a), text_of(b)))
        return self.atom(f"{first} == {second}", frame, at)

    def member_literal(self, value: Member) -> Any:
        """The constant behind an Enum's member, None when it isn't written as one."""
        for statement in value.owner.members.get(value.name, []):
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
                return statement.value.value
        return None

    def _equals_constant(self, a: Opaque, b: Const, frame: Frame, at: ast.AST) -> Node:
        """`x == "a"` excludes every other constant that x was compared with."""
        known = self.compared.setdefault(a.text, [])
        if b not in known:
            known.append(b)
        result = self.atom(f"{a.text} == {b.value!r}", frame, at)
        for other in known[: known.index(b)]:
            earlier = self.atom(f"{a.text} == {other.value!r}", frame, at)
            result = self.diagrams.both(result, self.diagrams.negate(earlier))
        return result

    def _is_none(self, value: Any, frame: Frame, at: ast.AST) -> bool | Node:
        if isinstance(value, Const):
            return value.value is None
        if isinstance(value, Opaque):
            return self.atom(f"{value.text} is None", frame, at)
        if isinstance(value, External) and value.dotted in ("torch.version.hip", "torch.version.cuda"):
            found = self.platform("is_" + value.name, frame, at)
            return self.diagrams.negate(found) if found is not None else False
        return False

    def _ordered(self, op: ast.cmpop, a: Any, b: Any, frame: Frame, at: ast.AST) -> bool | Node:
        if isinstance(a, Const) and isinstance(b, Const):
            try:
                return bool(eval(f"a {_SIGN[type(op)]} b", {}, {"a": a.value, "b": b.value}))
            except TypeError:
                return False
        mirrored = isinstance(a, Const)
        kind = _MIRROR.get(type(op), type(op)) if mirrored else type(op)
        known, const = (b, a) if mirrored else (a, b)
        if isinstance(known, Opaque) and isinstance(const, Const) and isinstance(const.value, int | float):
            return self._sign(known, const.value, _ORDER[kind], frame, at)
        if any(isinstance(v, Murky | Tensor) for v in (a, b)):
            return self.atom(f"{ast.unparse(at)} ({frame.module.path}:{getattr(at, 'lineno', 0)})", frame, at)
        return self.atom(f"{text_of(a)} {_SIGN[type(op)]} {text_of(b)}", frame, at)

    def _sign(self, value: Opaque, constant: float, wanted: tuple[str, ...], frame: Frame, at: ast.AST) -> Node:
        """How an unknown number compares with a constant; counts and sizes aren't negative."""
        if constant == 0 and _EXTENT.search(value.text):
            # An empty tensor has nothing that could be counted.
            return self.leaf(">" in wanted)
        sides = ("=", ">") if constant == 0 and _COUNTED.search(value.text) else ("<", "=", ">")
        labels = {side: f"{side} {constant}" for side in sides}
        chosen = self.new_guard(f"{value.text} ? {constant}", frame, at, tuple(labels.values()), value.text)
        return self.diagrams.map(lambda label: label[0] in wanted, chosen)


def is_abstract(function: Function) -> bool:
    """Whether a method only declares: abstract, or nothing but a docstring, `...`, `pass` or NotImplementedError."""
    if function.marks & {"abstractmethod"}:
        return True
    body = getattr(function.node, "body", [])
    if not isinstance(body, list):
        return False
    return all(
        isinstance(s, ast.Pass)
        or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        or (isinstance(s, ast.Raise) and "NotImplemented" in last_name(s.exc))
        for s in body
    )
