"""Calls: arguments, entering functions of the tree, making objects, dispatch on what isn't known."""

from __future__ import annotations

import ast
import re
from typing import Any

from .core import DEEPEST, Arguments, Frame
from .diagram import Node
from .dispatch import DEEPEST_COLD, LONGEST_COLD, Dispatch
from .entering import length
from .guards import is_abstract
from .program import Function
from .values import (
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
    Partial,
    Tuple,
)
from .wording import short, text_of

_ENVIRONMENT = re.compile(r"os\.environ|os\.getenv|getenv\(")
_READER = re.compile(r"env|^get", re.IGNORECASE)
_ENDS = re.compile(r"^\s+(raise|assert)\b", re.MULTILINE)
_COLLECTIVE = re.compile(r"all_?reduce|reduce_scatter|all_?gather|broadcast|dp_scatter|dp_gather")
WIDEST_COLD = 60
"""Nodes of the condition under which such a function is still entered."""


class Calls(Dispatch):
    """Calls values."""

    def _on_call(self, node: ast.Call, frame: Frame, pc: Node) -> Node:
        special = self.special_form(node, frame, pc)
        if special is not None:
            return special
        if isinstance(node.func, ast.Attribute):
            return self._method_call(node, node.func, frame, pc)
        computed = self._computed_method(node, frame, pc)
        if computed is not None:
            return computed
        callee = self.evaluate(_launched(node.func), frame, pc)
        arguments = self.arguments(node, frame, pc)
        return self.each_callee(callee, arguments, frame, pc)

    def _computed_method(self, node: ast.Call, frame: Frame, pc: Node) -> Node | None:
        """`getattr(x, name)(…)` with a name that isn't known: where x leads to the factor, so may the result."""
        func = node.func
        if not (isinstance(func, ast.Call) and isinstance(func.func, ast.Name) and func.func.id == "getattr"):
            return None
        if len(func.args) < 2 or isinstance(func.args[1], ast.Constant):
            return None
        base, found = self.evaluate(func.args[0], frame, pc), self.evaluate(func, frame, pc)
        arguments = self.arguments(node, frame, pc)
        if not self.is_hot(base):
            return self.each_callee(found, arguments, frame, pc)
        line = f"{frame.module.path}:{node.lineno}"
        murky = self.leaf(Murky(f"it can't be seen which method `{short(ast.unparse(func), 80)}` is ({line})"))
        parts: list[tuple[Node, Node]] = []
        for value, where in self.values(found, pc):
            where = self.live(where)
            if where is not self.diagrams.false:
                clear = not isinstance(value, Opaque)
                parts.append((where, self.call(value, arguments, frame, where) if clear else murky))
        return self.join(parts)

    def each_callee(self, callee: Node, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        """The result of calling whatever a diagram holds."""
        parts: list[tuple[Node, Node]] = []
        for value, where in self.values(callee, pc):
            where = self.live(where)
            if where is not self.diagrams.false:
                parts.append((where, self.call(value, arguments, frame, where)))
        return self.join(parts)

    def _method_call(self, node: ast.Call, func: ast.Attribute, frame: Frame, pc: Node) -> Node:
        if isinstance(func.value, ast.Call) and isinstance(func.value.func, ast.Name) and func.value.func.id == "super":
            return self._super_call(node, func.attr, frame, pc)
        base = self.evaluate(func.value, frame, pc)
        found = self.values(base, pc)
        # What `*` spreads may have another length for each receiver.
        apart = len(found) > 1 and any(isinstance(a, ast.Starred) for a in node.args)
        arguments = self.arguments(node, frame, pc) if not apart else Arguments([], {})
        parts: list[tuple[Node, Node]] = []
        for value, where in found:
            where = self.live(where)
            if where is not self.diagrams.false:
                arguments = self.arguments(node, frame, where) if apart else arguments
                parts.append((where, self.call_method(value, func.attr, arguments, frame, where)))
        return self.join(parts)

    def _super_call(self, node: ast.Call, name: str, frame: Frame, pc: Node) -> Node:
        at: Frame | None = frame
        while at is not None and (at.function is None or at.function.owner is None):
            at = at.outer
        arguments = self.arguments(node, frame, pc)
        if at is None or at.function is None or at.function.owner is None:
            return self.leaf(Opaque("super()"))
        first = next(iter(at.env.values()), self.unbound)

        def one(value: Any, where: Node) -> Node:
            assert at.function is not None and at.function.owner is not None
            if not isinstance(value, Obj | ClassValue) or value.owner is None:
                return self.leaf(Opaque("super()"))
            function = self.method(value.owner, name, at.function.owner)
            if function is None:
                return self.outside_method(value, name, arguments, frame, where)
            return self.call(FunctionValue(function, value), arguments, frame, where)

        return self.each(first, pc, one)

    def arguments(self, node: ast.Call, frame: Frame, pc: Node) -> Arguments:
        """A call's arguments, `*` and `**` unpacked where their content is known."""
        made = Arguments([], {}, {}, node)
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                self._spread(made, self.evaluate(argument.value, frame, pc), ast.unparse(argument), pc)
                continue
            made.sources[len(made.positional)] = argument
            made.positional.append(self.evaluate(argument, frame, pc))
        for keyword in node.keywords:
            value = self.evaluate(keyword.value, frame, pc)
            if keyword.arg is not None:
                made.sources[keyword.arg] = keyword.value
                made.named[keyword.arg] = value
            else:
                self._spread_named(made, value, ast.unparse(keyword.value), frame, node, pc)
        return made

    def _spread(self, made: Arguments, value: Node, text: str, pc: Node) -> None:
        found = [(v, where) for v, where in self.values(value, pc)]
        lengths = {len(v.items) if isinstance(v, Tuple) else -1 for v, _ in found}
        if len(lengths) == 1 and -1 not in lengths:
            for index in range(lengths.pop()):
                made.positional.append(self.join([(where, v.items[index]) for v, where in found]))
        else:
            made.unknown = short(f"*{text}", 40)

    def _spread_named(self, made: Arguments, value: Node, text: str, frame: Frame, node: ast.AST, pc: Node) -> None:
        for inner, where in self.values(value, pc):
            if isinstance(inner, Obj) and inner.kind == "dict":
                if inner.open:
                    made.unknown = short(f"**{text}", 40)
                for key, item in inner.attrs.items():
                    name = key.strip("'\"")
                    if name.isidentifier():
                        old = made.named.get(name, self.unbound)
                        made.named[name] = self.diagrams.ite(where, item, old)
            else:
                made.unknown = short(f"**{text_of(inner)}", 40)
                if "kwargs" not in text:
                    self.note_blind(frame, node, f"the keywords of `**{short(text, 60)}` aren't known")

    def call(self, callee: Any, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        """The result of calling a value."""
        self.spend()
        if isinstance(callee, FunctionValue):
            return self._function(callee, arguments, frame, pc)
        if isinstance(callee, ClassValue):
            return self.construct(callee.owner, arguments, frame, pc)
        if isinstance(callee, Obj) and callee.owner is not None:
            return self._instance_call(callee, arguments, frame, pc)
        if isinstance(callee, Bound):
            return self.call_method(callee.base, callee.name, arguments, frame, pc)
        if isinstance(callee, Partial):
            named = {**dict(callee.named), **arguments.named}
            whole = Arguments([*callee.first, *arguments.positional], named, {}, arguments.node, arguments.unknown)
            return self.call(callee.callee, whole, frame, pc)
        if isinstance(callee, External):
            return self.external(callee.dotted, arguments, frame, pc)
        if isinstance(callee, ModuleValue):
            return self.unlisted(callee.module.dotted, arguments, frame, pc)
        if isinstance(callee, Opaque) and callee.hint is not None:
            found = self.instances(callee, frame, pc, arguments.node or ast.Pass())
            if found is not None:
                return self.each_callee(found, arguments, frame, pc)
        return self.unlisted(text_of(callee), arguments, frame, pc)

    def is_collective(self, function: Function) -> bool:
        """Whether a function exchanges a tensor between ranks, and hands on what it got as far as the factor goes."""
        return bool(_COLLECTIVE.search(function.name)) and self.factor not in function.text

    def _instance_call(self, callee: Obj, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        assert callee.owner is not None
        for name in ("__call__", "forward", "call"):
            if (callee.attrs.get(name) is not None) or self.method(callee.owner, name) is not None:
                return self.call_method(callee, name, arguments, frame, pc)
        return self.unlisted(callee.text, arguments, frame, pc)

    def call_method(self, value: Any, name: str, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        """`value.name(…)`."""
        if isinstance(value, Obj) and value.owner is not None:
            found = self.get_attribute(value, name, frame, pc)
            if found is self.unbound or isinstance(getattr(found, "value", None), Opaque):
                return self.outside_method(value, name, arguments, frame, pc)
            return self.each_callee(found, arguments, frame, pc)
        if isinstance(value, Obj):
            return self.container_method(value, name, arguments, frame, pc)
        if isinstance(value, Opaque):
            return self._opaque_method(value, name, arguments, frame, pc)
        if isinstance(value, Member | ClassValue | ModuleValue):
            found = self.get_attribute(value, name, frame, pc)
            if found is self.unbound:
                return self.unlisted(f"{text_of(value)}.{name}", arguments, frame, pc)
            return self.each_callee(found, arguments, frame, pc)
        return self.value_method(value, name, arguments, frame, pc)

    @staticmethod
    def _refuses(function: Function) -> bool:
        """Whether a function can end the run: one that only reads a variable is better known by its call."""
        return not _READER.search(function.name) and bool(_ENDS.search(function.text))

    def _function(self, callee: FunctionValue, arguments: Arguments, frame: Frame, pc: Node) -> Node:  # noqa: C901 - one branch a kind
        function = callee.function
        if callee.frozen:
            first, named = callee.frozen
            arguments = Arguments(
                [*first, *arguments.positional],
                {**dict(named), **arguments.named},
                {},
                arguments.node,
                arguments.unknown,
            )
            callee = FunctionValue(function, callee.bound, callee.closure)
        if not arguments.all() and callee.bound is None:
            platform = self.platform(function.name, frame, arguments.node or function.node)
            if platform is not None:
                return self.diagrams.map(Const.of, platform)
        sink = self.sinks.of_kernel(function.name, _parameters(function)) if function.is_kernel else None
        if sink is not None:
            return self.apply_sink(sink, arguments, frame, pc)
        if self.is_collective(function):
            handed = next((v for v in arguments.all() if self.is_hot(v)), None)
            if handed is not None:
                return handed
        hot = any(map(self.is_hot, arguments.all())) or (
            callee.bound is not None and self.is_hot(self.leaf(callee.bound))
        )
        if callee.closure is not None:
            hot = True
        depth = len(self.stack)
        if function.marks & {"contextmanager", "asynccontextmanager"} and not hot:
            return self.leaf(Opaque(function.name))
        too_deep = depth >= DEEPEST or self.stack.count(function) >= 2
        cold = not hot and (length(function) > LONGEST_COLD or (self.cold >= DEEPEST_COLD and length(function) > 8))
        if hot and self._lukewarm(callee, arguments, pc):
            return self._passed_through(callee, arguments, frame, pc)
        cold = cold or (not hot and self.diagrams.is_bigger(pc, WIDEST_COLD))
        reads_environment = not hot and _ENVIRONMENT.search(function.text) and not self._refuses(function)
        if too_deep or cold or is_abstract(function) or reads_environment or self._effect_only(callee, arguments, pc):
            return self._skipped(callee, arguments, frame, pc, too_deep and hot)
        before, self.cold = self.cold, 0 if hot else self.cold + 1
        try:
            return self.enter(callee, arguments, frame, pc)
        finally:
            self.cold = before


def _parameters(function: Function) -> tuple[str, ...]:
    spec = function.node.args
    return tuple(a.arg for a in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs])


def _launched(node: ast.expr) -> ast.expr:
    """`kernel[grid](…)` calls the kernel."""
    return node.value if isinstance(node, ast.Subscript) else node
