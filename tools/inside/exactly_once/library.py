"""What isn't the tree's own: builtins, containers, torch, sinks, and calls nobody knows."""

from __future__ import annotations

import ast
import re
from typing import Any

from . import algebra
from .core import Arguments, Frame
from .diagram import Node
from .operations import SAME_SHAPE, Operations
from .sinks import Sink
from .values import (
    FALSE,
    NONE,
    TRUE,
    UNBOUND,
    Bound,
    ClassValue,
    Const,
    External,
    FunctionValue,
    Member,
    Murky,
    Obj,
    Opaque,
    Partial,
    Power,
    Tensor,
    Tuple,
)
from .wording import short, text_of

_ROUTER = re.compile(
    r"top_?k(?!.*(config|ids|output_format))|select_experts|(?<!_)rout(e|ing)(?!.*(config|type|method))|moe_(\w+_)?gate$",
    re.IGNORECASE,
)
_TORCH = ("torch.", "F.", "nn.functional.", "mx.", "mlx.", "tl.", "triton.language.", "jnp.", "np.", "numpy.")
HARMLESS = {
    "print",
    "isinstance",
    "len",
    "repr",
    "str",
    "id",
    "hash",
    "format",
    "warn",
    "info",
    "debug",
    "warning",
    "error",
    "info_once",
    "warning_once",
    "register_buffer",
    "register_parameter",
    "Parameter",
    "set_weight_attrs",
    "log_info_on_rank0",
}


_UNSEEN = {"locals", "globals", "vars", "eval", "exec", "__import__"}
_SPECIAL = {"isinstance", "hasattr", "getattr", "setattr", "super"} | _UNSEEN


class Library(Operations):
    """Answers calls that lead out of the tree."""

    def special_form(self, node: ast.Call, frame: Frame, pc: Node) -> Node | None:  # noqa: C901 - one branch a kind
        """Calls whose arguments mean more than their values: isinstance, hasattr, getattr and their kin."""
        if not isinstance(node.func, ast.Name) or node.func.id not in _SPECIAL:
            return None
        name = node.func.id
        if name in _UNSEEN:
            self.note_blind(frame, node, f"`{short(ast.unparse(node), 80)}`: what it reaches isn't seen")
        if name in _UNSEEN or name == "super" or len(node.args) < 2:
            return self.leaf(Opaque(ast.unparse(node)))
        base = self.evaluate(node.args[0], frame, pc)
        if name == "isinstance":
            classes = self.evaluate(node.args[1], frame, pc)
            return self.each(base, pc, lambda v, where: self._is_instance(v, classes, frame, where, node))
        key = getattr(self.evaluate(node.args[1], frame, pc), "value", None)
        if not isinstance(key, Const) or not isinstance(key.value, str):
            if name != "hasattr":
                self.note_blind(frame, node, f"`{short(ast.unparse(node), 80)}`: the attribute's name is computed")
            return self.leaf(Opaque(short(ast.unparse(node))))
        if name == "hasattr":
            return self.each(base, pc, lambda v, where: self._has(v, key.value, frame, where, node))
        if name == "setattr":
            value = self.evaluate(node.args[2], frame, pc) if len(node.args) > 2 else self.unbound
            for inner, where in self.values(base, pc):
                self.set_attribute(inner, key.value, value, where)
            return self.leaf(NONE)
        default = (
            self.evaluate(node.args[2], frame, pc)
            if len(node.args) > 2
            else self.leaf(Opaque(short(ast.unparse(node))))
        )

        def read(value: Any, where: Node) -> Node:
            found = self.get_attribute(value, key.value, frame, where)
            return self.diagrams.map(lambda v: default if v is UNBOUND else v, found)

        return self.each(base, pc, read)

    def _is_instance(self, value: Any, classes: Node, frame: Frame, pc: Node, at: ast.AST) -> Node:  # noqa: C901 - one branch a kind
        wanted = [v for v, _ in self.diagrams.values(classes)]
        flat: list[Any] = []
        for item in wanted:
            flat += [v for i in item.items for v, _ in self.diagrams.values(i)] if isinstance(item, Tuple) else [item]
        if isinstance(value, Opaque) and value.hint is not None and not self.is_enum(value.hint):
            found = self.instances(value, frame, pc, at)
            if found is not None:
                return self.each(found, pc, lambda v, where: self._is_instance(v, classes, frame, where, at))
        if isinstance(value, Obj) and value.owner is not None:
            line = self.lineage(value.owner)
            outside = {b.name for c in line for b in self.bases(c) if isinstance(b, External)}
            names = {c.name for c in line} | outside
            holds = any(
                (isinstance(w, ClassValue) and w.owner.name in names) or (isinstance(w, External) and w.name in names)
                for w in flat
            )
            return self.leaf(Const.of(holds))
        if isinstance(value, Member):
            return self.leaf(Const.of(any(isinstance(w, ClassValue) and w.owner is value.owner for w in flat)))
        if isinstance(value, Const):
            return self.leaf(Const.of(any(getattr(w, "name", "") == value.kind for w in flat)))
        names = {text_of(w).rsplit(".", 1)[-1] for w in flat}
        if isinstance(value, Tuple):
            return self.leaf(Const.of(bool(names & {"tuple", "list"})))
        if isinstance(value, Obj):
            return self.leaf(Const.of(value.kind in names))
        if isinstance(value, Power):
            return self.leaf(Const.of(bool(names & {"float", "int", "Number"})))
        if isinstance(value, Tensor) and names == {"Tensor"}:
            return self.leaf(TRUE)
        test = self.atom(f"isinstance({text_of(value)}, {' | '.join(sorted(names))})", frame, at)
        return self.diagrams.map(Const.of, test)

    def _has(self, value: Any, name: str, frame: Frame, pc: Node, at: ast.AST) -> Node:
        if isinstance(value, Opaque):
            if name in self.extras.get(value.text, {}):
                return self.leaf(TRUE)
            if value.hint is not None and self.method(value.hint, name) is not None:
                return self.leaf(TRUE)
            if name == self.factor:
                return self.leaf(TRUE)
        if isinstance(value, Obj):
            found = self.get_attribute(value, name, frame, pc)
            surely = not any(
                isinstance(v, Opaque) and v.text == f"{value.text}.{name}" for v, _ in self.diagrams.values(found)
            )
            if surely:
                return self.diagrams.map(lambda v: FALSE if v is UNBOUND else TRUE, found)
        if isinstance(value, Obj | Opaque):
            return self.diagrams.map(Const.of, self.atom(f"hasattr({text_of(value)}, {name!r})", frame, at))
        return self.leaf(Const.of(isinstance(value, External | Tensor)))

    def is_router(self, name: str) -> bool:
        """Whether a function's name says that it makes routing weights."""
        return bool(_ROUTER.search(name.rsplit(".", 1)[-1]))

    def container_method(self, value: Obj, name: str, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        """A method of a dict or a list."""
        first = arguments.positional[0] if arguments.positional else None
        if name in ("append", "extend", "insert", "add") and arguments.positional:
            item = arguments.positional[-1]
            self.escapes(item)
            item = self.element(item, frame, pc, ast.Name("items")) if name == "extend" else item
            value.attrs["each"] = self.diagrams.map2(self.pooled, value.attrs.get("each", self.unbound), item)
            return self.leaf(NONE)
        if name in ("get", "pop", "setdefault") and first is not None and value.kind == "dict":
            self.fill_registry(value)
            default = arguments.positional[1] if len(arguments.positional) > 1 else self.leaf(NONE)
            return self.each(first, pc, lambda k, where: self.dict_item(value, self.leaf(k), default))
        if name == "update":
            for given in arguments.positional:
                self.merge_dicts(value, given, pc)
            for key, item in arguments.named.items():
                value.attrs[repr(key)] = self.diagrams.ite(
                    self.absolute(pc), item, value.attrs.get(repr(key), self.unbound)
                )
            return self.leaf(NONE)
        if name in ("values", "pop", "copy", "items", "keys"):
            if name == "copy":
                return self.leaf(Obj(None, value.kind, dict(value.attrs), value.text, value.open))
            return self.leaf(
                Obj(None, "list", {"each": self.item(value, self.leaf(Opaque("i")), frame, pc, ast.Pass())}, value.text)
            )
        return self.unlisted(f"{value.text}.{name}", arguments, frame, pc)

    def value_method(self, value: Any, name: str, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        """A method of a tensor, a constant, or an object that isn't known."""
        dotted = f"{text_of(value)}.{name}"
        if isinstance(value, External):
            return self.external(f"{value.dotted}.{name}", arguments, frame, pc)
        if isinstance(value, Const):
            if isinstance(value.value, str) and name in ("lower", "upper", "strip") and not arguments.all():
                return self.leaf(Const.of(getattr(value.value, name)()))
            if isinstance(value.value, str) and name in ("startswith", "endswith") and arguments.positional:
                other = getattr(arguments.positional[0], "value", None)
                if isinstance(other, Const) and isinstance(other.value, str):
                    return self.leaf(Const.of(getattr(value.value, name)(other.value)))
            return self.leaf(Opaque(short(f"{dotted}(…)")))
        sink = self.sink_for(dotted if isinstance(value, Opaque) else name, arguments)
        func = getattr(arguments.node, "func", None)
        if sink is None and isinstance(value, Opaque) and isinstance(func, ast.Attribute):
            sink = self.sink_for(ast.unparse(func), arguments)
        if sink is not None and not isinstance(value, Tensor):
            return self.apply_sink(sink, arguments, frame, pc)
        hot = isinstance(value, Tensor | Power | Murky) or any(map(self.is_hot, arguments.all()))
        if hot and (isinstance(value, Tensor | Power | Murky) or self._is_operation(name)):
            source = (
                arguments.node.func.value
                if isinstance(arguments.node, ast.Call) and isinstance(arguments.node.func, ast.Attribute)
                else None
            )
            return self.operation(name, [self.leaf(value), *arguments.positional], arguments, source, frame, pc)
        return self.unlisted(dotted, arguments, frame, pc, held_by=text_of(value))

    # Calls that leave the tree

    def external(self, dotted: str, arguments: Arguments, frame: Frame, pc: Node) -> Node:  # noqa: C901 - one branch a kind
        """A call of something that isn't in the tree."""
        name = dotted.rsplit(".", 1)[-1]
        if dotted.startswith("builtins."):
            return self.builtin(name, arguments, frame, pc)
        platform = self.platform(name, frame, arguments.node or ast.Pass()) if not arguments.all() else None
        if platform is not None:
            return self.diagrams.map(Const.of, platform)
        if name in ("OrderedDict", "defaultdict", "Counter", "WeakValueDictionary"):
            return self.builtin("dict", Arguments([], arguments.named), frame, pc)
        if dotted.split(".")[-1] == "deque":
            return self.leaf(self.new_list([], "deque"))
        if name in ("partial", "partialmethod") and arguments.positional:
            return self._partial(arguments, pc)
        if name in ("copy", "deepcopy", "replace", "asdict") and dotted.split(".")[0] in ("copy", "dataclasses"):
            return self._copied(arguments, pc)
        if name in ("get_type_hints", "cast"):
            return arguments.positional[-1] if arguments.positional else self.leaf(NONE)
        if name in ("store", "atomic_add") and dotted.startswith(("tl.", "triton.")) and len(arguments.positional) > 1:
            return self._store_in_kernel(arguments, frame, pc)
        sink = self.sink_for(dotted, arguments)
        if sink is not None:
            return self.apply_sink(sink, arguments, frame, pc)
        if name in SAME_SHAPE:
            return self.leaf(Opaque(short(ast.unparse(arguments.node)) if arguments.node else name))
        if (
            dotted.startswith(_TORCH)
            and not dotted.startswith(("torch.ops.", "torch.distributed."))
            and arguments.positional
        ):
            source = arguments.sources.get(0)
            return self.operation(name, list(arguments.positional), arguments, source, frame, pc)
        return self.unlisted(dotted, arguments, frame, pc)

    def _store_in_kernel(self, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        """`tl.store(pointer + offsets, value)` in a GPU kernel writes to what the pointer stands for."""
        address = arguments.sources.get(0)
        while isinstance(address, ast.BinOp):
            address = address.left
        if isinstance(address, ast.Name):
            old = self.evaluate(address, frame, pc)
            value = arguments.positional[1]
            new = self.diagrams.map2(lambda a, b: algebra.store(a, b, self.is_reciprocal), old, value)
            self.change(address, new, frame, pc)
        return self.leaf(NONE)

    def builtin(self, name: str, arguments: Arguments, frame: Frame, pc: Node) -> Node:  # noqa: C901 - one branch a kind
        """A builtin function."""
        first = arguments.positional[0] if arguments.positional else None
        if name in ("float", "abs", "sum", "round", "sorted", "reversed", "iter", "next") and first is not None:
            if name in ("sum", "next", "iter", "sorted", "reversed"):
                return self.element(first, frame, pc, ast.Name("x")) if name in ("sum", "next") else first
            return first
        if name == "int" and first is not None:
            return self.diagrams.map(
                lambda v: (
                    Murky("the factor is rounded by int()")
                    if isinstance(v, Power)
                    else Opaque(v.text, v.hint, True)
                    if isinstance(v, Opaque)
                    else v
                ),
                first,
            )
        if name == "bool" and first is not None:
            return self.diagrams.map(Const.of, self.truth(first, frame, arguments.node or ast.Pass()))
        if name == "dict":
            made = Obj(
                None, "dict", {repr(k): v for k, v in arguments.named.items()}, "dict", open=bool(arguments.unknown)
            )
            for value in arguments.positional:
                self.merge_dicts(made, value, pc)
            return self.leaf(made)
        if name in ("tuple", "list", "set", "frozenset", "enumerate", "zip", "map", "filter") and first is not None:
            if name in ("enumerate", "zip"):
                items = [self.element(v, frame, pc, ast.Name("x")) for v in arguments.positional]
                items = [self.leaf(Opaque("i", number=True)), *items] if name == "enumerate" else items
                return self.leaf(Obj(None, "list", {"each": self.leaf(Tuple(tuple(items)))}, name))
            return first
        if name in ("list", "set"):
            return self.leaf(self.new_list([], name))
        if name == "len" and first is not None:
            held = getattr(first, "value", None)
            if isinstance(held, Tuple):
                return self.leaf(Const.of(len(held.items)))
            return self.leaf(Opaque(short(f"len({text_of(held)})"), number=True))
        if name == "type" and first is not None:
            return self.diagrams.map(
                lambda v: ClassValue(v.owner) if isinstance(v, Obj) and v.owner else Opaque(f"type({text_of(v)})"),
                first,
            )
        if name in ("max", "min"):
            return (
                self._union(list(arguments.positional), pc)
                if any(map(self.is_hot, arguments.positional))
                else self._text(name, arguments, frame)
            )
        if name in ("any", "all"):
            return self._text(name, arguments, frame)
        return self._text(name, arguments, frame)

    def _text(self, name: str, arguments: Arguments, frame: Frame) -> Node:
        inside = ", ".join(text_of(getattr(v, "value", None)) for v in arguments.all())
        number = name in ("max", "min", "len", "round", "ord")
        return self.leaf(Opaque(short(f"{name}({inside})"), number=number))

    def _partial(self, arguments: Arguments, pc: Node) -> Node:
        def one(value: Any, where: Node) -> Node:
            if isinstance(value, FunctionValue):
                frozen = (tuple(arguments.positional[1:]), tuple(arguments.named.items()))
                return self.leaf(FunctionValue(value.function, value.bound, value.closure, frozen))
            return self.leaf(Partial(value, tuple(arguments.positional[1:]), tuple(arguments.named.items())))

        return self.each(arguments.positional[0], pc, one)

    def _copied(self, arguments: Arguments, pc: Node) -> Node:
        def one(value: Any, where: Node) -> Node:
            if not isinstance(value, Obj):
                return self.leaf(value)
            attrs = {**value.attrs, **arguments.named}
            return self.leaf(Obj(value.owner, value.kind, attrs, value.text, value.open))

        return self.each(arguments.positional[0], pc, one) if arguments.positional else self.leaf(NONE)

    def outside_method(self, value: Any, name: str, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        """A method that an object has from a base outside the tree."""
        if name == "_replace" and isinstance(value, Obj):
            return self.leaf(Obj(value.owner, value.kind, {**value.attrs, **arguments.named}, value.text, value.open))
        if name == "_asdict" and isinstance(value, Obj):
            return self.leaf(Obj(None, "dict", {repr(k): v for k, v in value.attrs.items()}, value.text))
        if name == "register_buffer" and len(arguments.positional) > 1 and isinstance(value, Obj):
            key = getattr(arguments.positional[0], "value", None)
            if isinstance(key, Const):
                self.set_attribute(value, str(key.value), arguments.positional[1], pc)
            return self.leaf(NONE)
        if name == "__init__":
            return self.leaf(NONE)
        return self.unlisted(f"{text_of(value)}.{name}", arguments, frame, pc, held_by=text_of(value))

    def sink_for(self, dotted: str, arguments: Arguments) -> Sink | None:
        """What the data says of a call that leaves Python."""
        if arguments.unknown.startswith("*") and not arguments.unknown.startswith("**"):
            return None
        if dotted.rsplit(".", 1)[-1] not in self.sinks.by_name:
            return None
        harmless = {name for name, value in arguments.named.items() if not self.is_hot(value)}
        return self.sinks.find(dotted, len(arguments.positional), set(arguments.named), harmless)

    def apply_sink(self, sink: Sink, arguments: Arguments, frame: Frame, pc: Node) -> Node:  # sinking
        """The result of a call that the sinks' data describes."""
        raise NotImplementedError

    def unlisted(self, name: str, arguments: Arguments, frame: Frame, pc: Node, held_by: str = "") -> Node:  # sinking
        """The result of a call that nothing is known of."""
        raise NotImplementedError


__all__ = ["Bound", "Library"]
