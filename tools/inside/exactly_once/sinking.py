"""Calls that leave Python: described by the sinks' data, or unknown."""

from __future__ import annotations

import ast
import re
from typing import Any

from . import algebra
from .core import Arguments, Frame
from .diagram import Node, leaves
from .library import HARMLESS, Library
from .sinks import Sink
from .values import UNBOUND, Const, Murky, Obj, Opaque, Power, Tensor, Term, Tuple
from .wording import short, text_of

_DEF = re.compile(rb"^\s+def[ \t]+(\w+)", re.MULTILINE)


class Sinking(Library):
    """Answers calls by what is known of the callee."""

    def apply_sink(self, sink: Sink, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        """The result of a call that the sinks' data describes; what it writes in place is written."""
        at = arguments.node or ast.Pass()
        given = {**dict(zip(sink.params, arguments.positional, strict=False)), **arguments.named}
        carried = self._carried(sink, given, frame, pc, at)
        factor = given.get(sink.factor) if sink.factor else None
        if factor is not None:
            carried = self._with_factor(sink, carried, factor, given, frame, pc, at)
        for name in sink.writes:
            source = self._source(sink, arguments, name)
            if source is not None:
                self.change(source, self.diagrams.ite(pc, carried, given.get(name, carried)), frame, pc)
        return self._returned(sink, carried, at)

    def _carried(self, sink: Sink, given: dict[str, Node], frame: Frame, pc: Node, at: ast.AST) -> Node:
        # What combines is routed when something that it combines is; what takes nothing routed makes the weights.
        routed = not sink.linear_in and ("routed" in sink.returns or bool(sink.writes))
        result: Node = self.routed() if routed else self.leaf(Opaque(sink.name))
        for name in sink.linear_in:
            if name in given:
                operand = self.diagrams.map(self._summed, self.diagrams.under(pc, given[name]))
                result = self.diagrams.map2(
                    lambda a, b: algebra.multiply(a, b, lambda k: self.site(frame, at, k)), result, operand
                )
        if sink.renormalises:
            when = self._flag(sink.renormalises, given, frame, pc, at)
            even = self.diagrams.map(lambda v: self._renormalised(v, frame, at), result)
            result = self.diagrams.ite(when, even, result)
        return result

    def _summed(self, value: Any) -> Any:
        if isinstance(value, Obj) and value.kind == "list":
            return self.diagrams.map(lambda v: Opaque("[]") if v is UNBOUND else v, value.attrs["each"])
        return value

    def _renormalised(self, value: Any, frame: Frame, at: ast.AST) -> Any:
        if not isinstance(value, Tensor):
            return value
        site = self.site(frame, at, "renormalised")
        return Tensor(frozenset(Term(t.routed, 0, (*t.sites, site), t.part) if t.k else t for t in value.terms))

    def _flag(self, text: str, given: dict[str, Node], frame: Frame, pc: Node, at: ast.AST) -> Node:
        if text == "true":
            return self.diagrams.true
        name = text.removeprefix("not ").strip()
        if name not in given:
            return self.diagrams.leaf(text.startswith("not "))
        holds = self.diagrams.under(pc, self.truth(given[name], frame, at))
        return self.diagrams.negate(holds) if text.startswith("not ") else holds

    def _with_factor(
        self, sink: Sink, carried: Node, factor: Node, given: dict[str, Node], frame: Frame, pc: Node, at: ast.AST
    ) -> Node:
        if sink.effect in ("ignores", "reciprocal_on_shared") or not self.is_hot(factor):
            return carried
        applied = self.diagrams.map2(
            lambda a, b: algebra.multiply(
                a, b if isinstance(b, Power | Murky | Tensor) else Opaque("1"), lambda k: self.site(frame, at, "kernel")
            ),
            carried,
            self.diagrams.under(pc, factor),
        )
        if sink.effect == "applies":
            return applied
        if sink.when == "?":
            why = sink.note or f"what {sink.name} does with it depends on more than its arguments"
            unclear = self.leaf(Murky(f"{sink.name} takes the factor: {short(why, 160)}"))
            return self.diagrams.map2(lambda f, c: unclear if isinstance(f, Power | Murky) else c, factor, carried)
        return self.diagrams.ite(self._flag(sink.when, given, frame, pc, at), applied, carried)

    @staticmethod
    def _source(sink: Sink, arguments: Arguments, name: str) -> ast.expr | None:
        if name in arguments.sources:
            return arguments.sources[name]
        return arguments.sources.get(sink.params.index(name))

    def _returned(self, sink: Sink, carried: Node, at: ast.AST) -> Node:
        def part(role: str) -> Node:
            return carried if role == "routed" else self.leaf(Opaque(short(f"{sink.name}() {role}")))

        if isinstance(sink.returns, tuple):
            return self.leaf(Tuple(tuple(map(part, sink.returns))))
        return part(sink.returns)

    def unlisted(self, name: str, arguments: Arguments, frame: Frame, pc: Node, held_by: str = "") -> Node:
        """The result of a call that nothing is known of.

        One argument that carries the factor is passed on, which is an assumption; the factor itself, or two
        such arguments, make the result unknown. An object that was handed a tensor may give it back later.
        """
        last = name.rsplit(".", 1)[-1]
        if last in HARMLESS:
            return self.leaf(Opaque(short(name)))
        for given in arguments.all():
            for value in leaves(given):
                if isinstance(value.value, Obj) and value.value.kind in ("list", "dict"):
                    value.value.open = True  # it may be filled there
        handed = self._handed_together(arguments.all(), pc)
        if held_by and all(not values for values, _ in self.values(handed, pc)):
            handed = self._handed_together([self.held.get(held_by, self.unbound)], pc)
        inside = ", ".join(text_of(getattr(v, "value", None)) for v in arguments.all())
        at = arguments.node or ast.Pass()
        nothing = self.routed() if self.is_router(name) else self.unknown(f"{name}({inside})", None, frame, at)

        def answer(values: frozenset[Any]) -> Any:
            found = self._pass_on(name, values, arguments, frame)
            if isinstance(found, Tensor) and held_by and self.is_defined_here(last):
                line = getattr(arguments.node, "lineno", 0)
                return Murky(f"it can't be seen which `{last}` {short(name, 60)} is ({frame.module.path}:{line})")
            return nothing if found is None else found

        result = self.diagrams.map(answer, handed)
        if held_by and any(values for values, _ in self.values(handed, pc)):
            self.held[held_by] = self.diagrams.ite(self.absolute(pc), result, self.held.get(held_by, self.unbound))
        return result

    def _handed_together(self, nodes: list[Node], pc: Node) -> Node:
        """What carries something among a call's arguments, world by world."""
        result: Node = self.leaf(frozenset())
        for node in nodes:
            carried = self.diagrams.map(self._carried_by, self.diagrams.under(pc, node))
            result = self.diagrams.map2(lambda a, b: a | b, result, carried)
        return result

    def _carried_by(self, value: Any) -> Any:
        if isinstance(value, Power | Tensor | Murky):
            return frozenset([value])
        if isinstance(value, Tuple):
            return self._handed_together(list(value.items), self.diagrams.true)
        if isinstance(value, Obj):
            # An object is looked into one level deep: what its attributes hold in any world.
            return frozenset(v for item in value.attrs.values() for v in self._shallow(item))
        return frozenset()

    def is_defined_here(self, name: str) -> bool:
        """Whether a file of the tree that mentions the factor defines a function of that name."""
        found: set[str] | None = self.program.shared.get(f"defined beside {self.factor}")
        if found is None:
            found = set()
            word = re.compile(rb"\b" + re.escape(self.factor).encode() + rb"\b")
            for path in self.program.texts.holding(self.factor.encode()):
                data = self.program.texts.data(path)
                if word.search(data):
                    found |= {m.decode("ascii", "replace") for m in _DEF.findall(data)}
            self.program.shared[f"defined beside {self.factor}"] = found
        return name in found

    def _shallow(self, node: Node) -> list[Any]:
        return [v for v, _ in self.diagrams.values(node) if isinstance(v, Power | Tensor | Murky)]

    def _pass_on(self, name: str, values: frozenset[Any], arguments: Arguments, frame: Frame) -> Any:
        murky = min((v for v in values if isinstance(v, Murky)), key=repr, default=None)
        if murky is not None:
            return murky
        if any(isinstance(v, Power) for v in values):
            line = getattr(arguments.node, "lineno", 0)
            return Murky(f"{name} takes the factor ({frame.module.path}:{line}); what it does with it isn't known")
        tensors = {v for v in values if isinstance(v, Tensor)}
        carrying = {v for v in tensors if any(t.k and not t.part for t in v.terms)}
        if len(carrying) > 1 or (carrying and len(tensors) > 1 and len(carrying | tensors) > 2):
            return Murky(f"{name} takes several tensors that carry the factor; it isn't known how it combines them")
        if carrying:
            self.assume(
                f"{name} passes on what it is handed, once ({frame.module.path}:{getattr(arguments.node, 'lineno', 0)})"
            )
            return min(carrying, key=_in_order)
        return min(tensors, key=_in_order, default=None)


def _in_order(value: Tensor) -> list[str]:
    """Something to choose one of several by that is the same in every run."""
    return sorted(map(repr, value.terms))


__all__ = ["Const", "Sinking"]
