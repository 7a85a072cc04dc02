"""Which calls can matter to the count: the rest is answered without being entered."""

from __future__ import annotations

import ast
import re

from .core import Arguments, Frame
from .diagram import Node
from .entering import Entering, length
from .program import Function, last_name
from .values import (
    NONE,
    FunctionValue,
    Murky,
    Obj,
    Opaque,
    Tensor,
)
from .wording import text_of

_OUTPUT = re.compile(r"out|cache|buf|result|dst|dest", re.IGNORECASE)


SMALL_KERNEL = 40
"""Lines of a GPU kernel that is run, rather than taken to pass on what it is handed."""


class Relevance(Entering):
    """Tells calls that can be skipped."""

    def _effect_only(self, callee: FunctionValue, arguments: Arguments, pc: Node) -> bool:
        """Whether a call whose result nobody reads can't reach the factor through the objects it is handed."""
        if not isinstance(arguments.node, ast.Call) or arguments.node not in self.statements_called:
            return False
        given = [v for node in arguments.all() for v, _ in self.values(node, pc)]
        given += [callee.bound] if callee.bound is not None else []
        hot = [v for v in given if self._hot_value(v, set())]
        if callee.closure is not None or not hot or not all(isinstance(v, Obj) for v in hot):
            return False
        words = {self.factor} | {name for v in hot for name, item in v.attrs.items() if self.is_hot(item)}
        return not (words | {"*"}) & self.words_handed(callee.function)

    def words_handed(self, function: Function) -> set[str]:
        """What a function could get at the factor by: attributes that it reads, `*` for a parameter handed on whole."""
        cache: dict[Function, set[str]] = self.program.shared.setdefault("handed", {})
        if function not in cache:
            spec = function.node.args
            names = {a.arg for a in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]}
            found: set[str] = set()
            held: set[int] = set()
            for node in ast.walk(function.node):
                if isinstance(node, ast.Attribute):
                    found.add(node.attr)
                    held.add(id(node.value))
                elif isinstance(node, ast.Name) and node.id in names and id(node) not in held:
                    found.add("*")
                elif isinstance(node, ast.Constant) and node.value == self.factor:
                    found.add(self.factor)
            cache[function] = found | ({"*"} if spec.vararg or spec.kwarg else set())
        return cache[function]

    def _lukewarm(self, callee: FunctionValue, arguments: Arguments, pc: Node) -> bool:
        """Whether a function is handed only routed tensors, still without the factor, and can't get at the factor."""
        function = callee.function
        small = function.is_kernel and length(function) <= SMALL_KERNEL
        if small or callee.closure is not None or self._reaches_factor(function):
            return False
        given = [v for node in arguments.all() for v, _ in self.values(node, pc)]
        given += [callee.bound] if callee.bound is not None else []
        hot = [v for v in given if self._hot_value(v, set())]
        return all(isinstance(v, Murky) or (isinstance(v, Tensor) and not any(t.k for t in v.terms)) for v in hot)

    def _reaches_factor(self, function: Function) -> bool:
        """Whether a function, or one of its file that it names, directly or not, mentions the factor."""
        cache = self._reaching
        if function not in cache:
            cache[function] = self.factor in function.module.text and self._mentions(function)
        return cache[function]

    def _mentions(self, function: Function) -> bool:
        chunks = function.module.chunks
        texts = [self.class_text(function.owner) if function.owner else function.text]
        seen: set[str] = set()
        while texts:
            text = texts.pop()
            if self.factor in text:
                return True
            for name in set(re.findall(r"\w+", text)) & set(chunks) - seen:
                seen.add(name)
                texts += [chunk.text for chunk in chunks[name]]
        return False

    def _passed_through(self, callee: FunctionValue, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        """What such a function returns and fills is routed, and still without the factor; or as unclear as it was."""
        routed: Node = self.routed()
        for given in arguments.all():
            routed = self.diagrams.map2(
                lambda r, v: v if isinstance(v, Murky) else r, routed, self.diagrams.under(pc, given)
            )
        if arguments.node in self.statements_called:
            for key, source in arguments.sources.items():
                name = key if isinstance(key, str) else ast.unparse(source)
                if _OUTPUT.search(name) and isinstance(
                    source, ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.IfExp
                ):
                    self.change(source, routed, frame, pc)
            return self.leaf(NONE)
        returns = last_name(getattr(callee.function.node, "returns", None))
        return (
            self.leaf(Opaque(f"{callee.function.name}(…)", number=True))
            if returns in ("int", "bool", "float", "str")
            else routed
        )

    def _skipped(self, callee: FunctionValue, arguments: Arguments, frame: Frame, pc: Node, murky: bool) -> Node:
        function = callee.function
        for value in arguments.all():
            for inner, _ in self.values(value, pc):
                if isinstance(inner, Obj):
                    inner.open = True
        if murky or any(map(self.is_hot, arguments.all())):
            return self.unlisted(function.qualname, arguments, frame, pc)
        hint, number = self.annotation(getattr(function.node, "returns", None), self.module_frame(function.module))
        inside = ", ".join(text_of(getattr(v, "value", None)) for v in arguments.all())
        base = f"{text_of(callee.bound)}.{function.name}" if isinstance(callee.bound, Obj | Opaque) else function.name
        if self.is_router(function.name):
            return self.routed()
        return self.unknown(f"{base}({inside})", hint, frame, arguments.node or function.node, number)
