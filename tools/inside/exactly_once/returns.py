"""What a function's return annotation promises about its result."""

from __future__ import annotations

import ast
from typing import Any

from .core import Frame
from .diagram import Node
from .program import Class, Function, last_name
from .sinking import Sinking
from .values import ClassValue, Const, Opaque, Tuple
from .wording import text_of


class Returns(Sinking):
    """Gives results the class that they are promised to have."""

    def as_returned(self, result: Node, function: Function, frame: Frame, free: bool) -> Node:
        """A function's result, where something unknown in it has the class that the function promises.

        The one unknown result of a function that takes nothing (`get_backend()`) goes by the function's name.
        """
        unknown = [v for v, _ in self.diagrams.values(result) if isinstance(v, Opaque)]
        if not unknown or getattr(function.node, "returns", None) is None:
            return result
        if free and len(unknown) == 1 and not function.node.args.args:
            names = self.nicknames.setdefault(unknown[0].text, [])
            name = function.name.removeprefix("get_")
            names += [name] if name not in names else []
        hint, surely = self._promise(function)
        if hint is None:
            return result
        if free and not function.node.args.args and self.is_enum(hint):
            # A fact about what a getter gives holds however the getter comes by it.
            told = self.told_member(function.name.removeprefix("get_"), hint)
            if told is not None:
                return self.leaf(told)

        def promised(value: Any) -> Any:
            if not isinstance(value, Opaque):
                return value
            if surely and (value.hint is None or value.hint is hint) and self.is_enum(hint):
                return self.unknown(value.text, hint, frame, function.node)
            return Opaque(value.text, self.narrower(hint, value.hint), value.number)

        return self.diagrams.map(promised, result)

    def _promise(self, function: Function) -> tuple[Class | None, bool]:
        """The class that a return annotation names, and whether it excludes None.

        Of several classes an Enum is taken for what the others extend, which is noted; else nothing is promised.
        """
        if function not in self._returns:
            self._returns[function] = (None, False)
            returns = getattr(function.node, "returns", None)
            named = list(dict.fromkeys(self._named(returns, self.module_frame(function.module))))
            classes = [c for c in named if isinstance(c, Class)]
            choices = [c for c in classes if self.is_enum(c)]
            if len(classes) > 1 and choices:
                self.assume(f"what {function.name} gives is a {choices[0].name}")
            told = classes[0] if len(classes) == 1 and len(classes) == len([n for n in named if n]) else None
            self._returns[function] = (told or (choices[0] if len(classes) > 1 and choices else None), "" not in named)
        return self._returns[function]

    def _named(self, node: ast.expr | None, frame: Frame) -> list[Class | str]:
        """What an annotation allows: classes of the tree, the text of anything else, "" for None."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except (SyntaxError, ValueError):
                return ["?"]
        if node is None or (isinstance(node, ast.Constant) and node.value is None):
            return [""]
        if isinstance(node, ast.BinOp):
            return [*self._named(node.left, frame), *self._named(node.right, frame)]
        if isinstance(node, ast.Subscript) and last_name(node.value) in ("Optional", "Union"):
            inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            found = [name for item in inner for name in self._named(item, frame)]
            return [*found, ""] if last_name(node.value) == "Optional" else found
        if not isinstance(node, ast.Name | ast.Attribute):
            return [ast.unparse(node)]
        return [n for v, _ in self.diagrams.values(self.evaluate(node, frame, self.diagrams.true)) for n in self._of(v)]

    def _of(self, value: Any) -> list[Class | str]:
        if isinstance(value, Tuple):
            return [n for item in value.items for v, _ in self.diagrams.values(item) for n in self._of(v)]
        if isinstance(value, ClassValue):
            return [value.owner]
        return ["" if isinstance(value, Const) and value.value is None else text_of(value)]
