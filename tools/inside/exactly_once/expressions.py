"""Expressions."""

from __future__ import annotations

import ast
from typing import Any

from . import algebra
from .containers import Containers
from .core import Arguments, Frame
from .diagram import Branch, Node
from .program import Function
from .values import (
    NONE,
    UNBOUND,
    ClassValue,
    Const,
    External,
    FunctionValue,
    Murky,
    Obj,
    Opaque,
    Power,
    Tensor,
    Tuple,
)
from .wording import short, text_of

_SYMBOL = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip


class Expressions(Containers):
    """Evaluates expressions."""

    def evaluate(self, node: ast.expr, frame: Frame, pc: Node) -> Node:
        """The value of an expression in the worlds of `pc`."""
        self.spend()
        if pc is self.diagrams.false:
            return self.unbound
        method = getattr(self, "_on_" + type(node).__name__.lower(), None)
        if method is None:
            return self.leaf(Opaque(short(ast.unparse(node))))
        found: Node = method(node, frame, pc)
        return found

    def _on_constant(self, node: ast.Constant, frame: Frame, pc: Node) -> Node:
        return self.leaf(Const.of(node.value))

    def _on_name(self, node: ast.Name, frame: Frame, pc: Node) -> Node:
        found = self.lookup(node.id, frame, pc)
        if found is self.unbound:
            return self.leaf(Power(1)) if node.id == self.factor else self.leaf(Opaque(node.id))
        # Where nothing bound it a NameError ends the run: no value there, so any will do.
        bound = self.diagrams.map(lambda v: v is not UNBOUND, found)
        return self.possible(self.diagrams.under(self.diagrams.both(pc, bound), found))

    def _on_attribute(self, node: ast.Attribute, frame: Frame, pc: Node) -> Node:
        base = self.evaluate(node.value, frame, pc)

        def read(value: Any, where: Node) -> Node:
            found = self.get_attribute(value, node.attr, frame, where)
            fallback = Power(1) if node.attr == self.factor else Opaque(short(f"{text_of(value)}.{node.attr}"))
            return self.diagrams.map(lambda v: fallback if v is UNBOUND else v, found)

        return self.possible(self.each(base, pc, read))

    def _on_tuple(self, node: ast.Tuple | ast.List, frame: Frame, pc: Node) -> Node:
        items: list[Node] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                inner = self.evaluate(element.value, frame, pc)
                known = [v for v, _ in self.values(inner, pc)]
                if len(known) == 1 and isinstance(known[0], Tuple):
                    items += known[0].items
                    continue
                return self.leaf(self.new_list([inner], ast.unparse(node)))
            items.append(self.evaluate(element, frame, pc))
        return self._alternatives(items) if isinstance(node, ast.Tuple) else self.leaf(Tuple(tuple(items)))

    def _on_list(self, node: ast.List, frame: Frame, pc: Node) -> Node:
        return self._on_tuple(node, frame, pc) if node.elts else self.leaf(self.new_list([], ast.unparse(node)))

    _on_set = _on_tuple

    def _on_dict(self, node: ast.Dict, frame: Frame, pc: Node) -> Node:
        made = Obj(None, "dict", {}, short(ast.unparse(node), 40))
        for key, value in zip(node.keys, node.values, strict=True):
            found = self.evaluate(value, frame, pc)
            if key is None:
                self.merge_dicts(made, found, pc)
                continue
            name = self.key_of(self.evaluate(key, frame, pc))
            if name is None:
                made.open = True
                made.attrs[""] = found
            else:
                made.attrs[name] = found
        return self.leaf(made)

    def _on_joinedstr(self, node: ast.JoinedStr, frame: Frame, pc: Node) -> Node:
        return self.leaf(Opaque(short(ast.unparse(node), 60)))

    def _on_lambda(self, node: ast.Lambda, frame: Frame, pc: Node) -> Node:
        return self.leaf(FunctionValue(Function(frame.module, node), closure=frame))

    def _on_namedexpr(self, node: ast.NamedExpr, frame: Frame, pc: Node) -> Node:
        value = self.evaluate(node.value, frame, pc)
        self.bind(frame, node.target.id, value, pc)
        return value

    def _on_await(self, node: ast.Await, frame: Frame, pc: Node) -> Node:
        return self.evaluate(node.value, frame, pc)

    def _on_starred(self, node: ast.Starred, frame: Frame, pc: Node) -> Node:
        return self.evaluate(node.value, frame, pc)

    def _on_yield(self, node: ast.Yield, frame: Frame, pc: Node) -> Node:
        value = self.evaluate(node.value, frame, pc) if node.value else self.leaf(NONE)
        before = frame.env.get("<yielded>", self.unbound)
        frame.env["<yielded>"] = self.diagrams.map2(self.pooled, before, value)
        return self.leaf(Opaque("yield"))

    def _on_ifexp(self, node: ast.IfExp, frame: Frame, pc: Node) -> Node:
        test = self.diagrams.under(pc, self.condition(node.test, frame, pc))
        yes, no = self.diagrams.both(pc, test), self.diagrams.both(pc, self.diagrams.negate(test))
        then = self.evaluate(node.body, frame, yes) if yes is not self.diagrams.false else None
        other = self.evaluate(node.orelse, frame, no) if no is not self.diagrams.false else None
        if then is None or other is None:
            return then or other or self.unbound
        return self.diagrams.ite(test, then, other)

    def condition(self, node: ast.expr, frame: Frame, pc: Node) -> Node:
        """When an expression counts as true, in the worlds of `pc`."""
        if isinstance(node, ast.BoolOp):
            return self._connected(node, frame, pc)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.diagrams.negate(self.condition(node.operand, frame, pc))
        return self.diagrams.under(pc, self.possible(self.truth(self.evaluate(node, frame, pc), frame, node)))

    def _connected(self, node: ast.BoolOp, frame: Frame, pc: Node) -> Node:
        d = self.diagrams
        conjunction = isinstance(node.op, ast.And)
        result: Node = d.leaf(conjunction)
        for operand in node.values:
            open_still = d.both(pc, result if conjunction else d.negate(result))
            if open_still is d.false:
                break
            found = self.condition(operand, frame, open_still)
            result = d.both(result, found) if conjunction else d.either(result, found)
        return result

    def _on_boolop(self, node: ast.BoolOp, frame: Frame, pc: Node) -> Node:
        d = self.diagrams
        conjunction = isinstance(node.op, ast.And)
        parts: list[tuple[Node, Node]] = []
        going = pc
        for index, operand in enumerate(node.values):
            if going is d.false:
                break
            value = self.evaluate(operand, frame, going)
            if index == len(node.values) - 1:
                parts.append((going, value))
                break
            holds = d.under(going, self.truth(value, frame, operand))
            stops = d.negate(holds) if conjunction else holds
            parts.append((d.both(going, stops), value))
            going = d.both(going, d.negate(stops))
        return d.under(pc, self.join(parts))

    def _on_unaryop(self, node: ast.UnaryOp, frame: Frame, pc: Node) -> Node:
        if isinstance(node.op, ast.Not):
            return self.diagrams.map(Const.of, self.condition(node, frame, pc))
        value = self.evaluate(node.operand, frame, pc)
        if isinstance(node.op, ast.USub):
            return self.diagrams.map(lambda v: self._negated(v), value)
        return value

    @staticmethod
    def _negated(value: Any) -> Any:
        if isinstance(value, Const) and value.kind in ("int", "float"):
            return Const.of(-value.value)
        return Opaque(f"-{value.text}", number=value.number) if isinstance(value, Opaque) else value

    def _on_compare(self, node: ast.Compare, frame: Frame, pc: Node) -> Node:
        result: Node = self.diagrams.true
        left = self.evaluate(node.left, frame, pc)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(right_node, frame, pc)
            result = self.diagrams.both(result, self._comparison(op, left, right, frame, pc, node))
            left = right
        return self.diagrams.map(Const.of, result)

    def _comparison(self, op: ast.cmpop, left: Node, right: Node, frame: Frame, pc: Node, at: ast.AST) -> Node:
        under = self.diagrams.under
        return self.diagrams.map2(lambda a, b: self.compare(op, a, b, frame, at), under(pc, left), under(pc, right))

    def _on_binop(self, node: ast.BinOp, frame: Frame, pc: Node) -> Node:
        left, right = self.evaluate(node.left, frame, pc), self.evaluate(node.right, frame, pc)
        under = self.diagrams.under
        found = self.diagrams.map2(
            lambda a, b: self.arithmetic(node.op, a, b, frame, node), under(pc, left), under(pc, right)
        )
        return self.tidy(found, short(ast.unparse(node), 40)) if isinstance(found, Branch) else found

    def arithmetic(self, op: ast.operator, a: Any, b: Any, frame: Frame, at: ast.AST, kind: str = "multiply") -> Any:  # noqa: C901 - one branch a kind
        """The result of a binary operator on two values."""
        if isinstance(a, Const) and isinstance(b, Const):
            return self._constants(op, a, b)
        sign = _SYMBOL[type(op)]
        text = short(f"{text_of(a)} {sign} {text_of(b)}")

        def site(kind: str) -> int:
            return self.site(frame, at, kind)

        if isinstance(op, ast.BitOr) and any(isinstance(v, ClassValue) for v in (a, b)):
            return Tuple(tuple(i for v in (a, b) for i in (v.items if isinstance(v, Tuple) else (self.leaf(v),))))
        if isinstance(op, ast.Mult | ast.MatMult):
            return algebra.multiply(a, b, site, kind, text)
        if isinstance(op, ast.Div):
            return algebra.divide(a, b, site, text)
        if isinstance(op, ast.Add | ast.Sub):
            if isinstance(a, Tuple) and isinstance(b, Tuple):
                return Tuple(a.items + b.items)
            if self._is_list(a) or self._is_list(b):
                return self._pooled_list(a, b)
            if (
                frame.function is not None
                and frame.function.is_kernel
                and isinstance(b, Opaque)
                and isinstance(a, Tensor)
            ):
                return a  # an address: a pointer and an offset
            return algebra.add(a, b, text)
        hot = next((v for v in (a, b) if isinstance(v, Tensor | Power | Murky)), None)
        if hot is None:
            return Opaque(text, number=algebra.is_number(a) and algebra.is_number(b))
        if isinstance(hot, Murky):
            return hot
        if isinstance(hot, Power) or any(t.k and not t.part for t in hot.terms):
            return Murky(f"the factor goes through `{sign}`")
        return hot

    @staticmethod
    def _is_list(value: Any) -> bool:
        return isinstance(value, Tuple) or (isinstance(value, Obj) and value.kind == "list")

    def _pooled_list(self, a: Any, b: Any) -> Any:
        items = [i for v in (a, b) for i in (v.items if isinstance(v, Tuple) else [])]
        items += [v.attrs["each"] for v in (a, b) if isinstance(v, Obj) and v.kind == "list"]
        return self.new_list(items, f"{text_of(a)} + {text_of(b)}")

    def _constants(self, op: ast.operator, a: Const, b: Const) -> Any:
        small = all(isinstance(v.value, int | float | bool) and abs(v.value) < 1e9 for v in (a, b))
        if not small and not (isinstance(op, ast.Add) and a.kind == b.kind == "str"):
            return Opaque(short(f"{a.value!r} {_SYMBOL[type(op)]} {b.value!r}"))
        if isinstance(op, ast.Pow | ast.LShift) and abs(b.value) > 64:
            return Opaque(f"{a.value!r} {_SYMBOL[type(op)]} {b.value!r}", number=True)
        try:
            return Const.of(eval(f"a {_SYMBOL[type(op)]} b", {}, {"a": a.value, "b": b.value}))
        except (ArithmeticError, TypeError, ValueError):
            return Opaque(f"{a.value!r} {_SYMBOL[type(op)]} {b.value!r}", number=True)

    def _on_subscript(self, node: ast.Subscript, frame: Frame, pc: Node) -> Node:
        base = self.evaluate(node.value, frame, pc)
        index = (
            self.leaf(Opaque(ast.unparse(node.slice)))
            if _is_slice(node.slice)
            else self.evaluate(node.slice, frame, pc)
        )
        return self.each(base, pc, lambda value, where: self.item(value, index, frame, where, node))

    def item(self, value: Any, index: Node, frame: Frame, pc: Node, at: ast.AST) -> Node:  # noqa: C901 - one branch a kind
        """`value[index]`."""
        if isinstance(value, Tuple):
            return self.each(index, pc, lambda i, where: self._item_of_tuple(value, i))
        if isinstance(value, Obj) and value.kind == "list":
            self.fill_registry(value)
            each = value.attrs["each"]
            return self.leaf(Opaque(f"{value.text}[…]")) if each is self.unbound else each
        if isinstance(value, Obj) and value.kind == "dict":
            self.fill_registry(value)
            return self.each(index, pc, lambda i, where: self.dict_item(value, self.leaf(i), None))
        if isinstance(value, Obj) and value.owner is not None:
            function = self.method(value.owner, "__getitem__")
            if function is not None:
                return self.call(FunctionValue(function, value), Arguments([index], {}), frame, pc)
            fields = value.owner.fields
            position = getattr(getattr(index, "value", None), "value", None)
            if value.owner.is_record and isinstance(position, int) and -len(fields) <= position < len(fields):
                target = fields[position].target
                assert isinstance(target, ast.Name)
                return self.get_attribute(value, target.id, frame, pc)
        if isinstance(value, Tensor | Power | Murky):
            return self.leaf(value)
        if isinstance(value, Opaque):
            key = self.key_of(index)
            if key is not None and key.strip("'") == self.factor:
                return self.leaf(Power(1))
            known = self.extras.get(value.text, {}).get(key.strip("'")) if key else None
            return known or self.leaf(Opaque(short(f"{value.text}[{self._index_text(index)}]")))
        if isinstance(value, External | ClassValue):
            return self.leaf(value)
        return self.leaf(Opaque(short(f"{text_of(value)}[{self._index_text(index)}]")))

    def _comprehended(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, frame: Frame, pc: Node) -> Node:
        inner = self._comprehension_frame(node.generators, frame, pc)
        return self.leaf(self.new_list([self.evaluate(node.elt, inner, pc)], ast.unparse(node)))

    _on_listcomp = _on_setcomp = _on_generatorexp = _comprehended

    def _on_dictcomp(self, node: ast.DictComp, frame: Frame, pc: Node) -> Node:
        inner = self._comprehension_frame(node.generators, frame, pc)
        made = Obj(None, "dict", {"": self.evaluate(node.value, inner, pc)}, short(ast.unparse(node), 40), open=True)
        return self.leaf(made)

    def _comprehension_frame(self, generators: list[ast.comprehension], frame: Frame, pc: Node) -> Frame:
        inner = Frame(frame.module, frame.function, dict(frame.env), frame.outer, self.unbound, self.diagrams.false)
        for generator in generators:
            over = self.evaluate(generator.iter, inner, pc)
            self.assign(generator.target, self.element(over, inner, pc, generator.iter), inner, pc)
        return inner

    def element(self, over: Node, frame: Frame, pc: Node, at: ast.expr) -> Node:
        """What stands for each item of something iterable."""

        def one(value: Any, where: Node) -> Node:
            if isinstance(value, Tuple):
                return self.new_list(list(value.items), "tuple").attrs["each"]
            if isinstance(value, Obj) and value.kind in ("list", "dict"):
                return self.item(value, self.leaf(Opaque("i")), frame, where, at)
            if isinstance(value, Tensor | Murky):
                return self.leaf(value)
            return self.leaf(Opaque(short(f"each of {text_of(value)}")))

        return self.each(over, pc, one)


def _is_slice(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) or (isinstance(node, ast.Tuple) and any(map(_is_slice, node.elts)))
