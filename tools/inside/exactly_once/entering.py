"""Enter functions of the tree and make objects: parameters, results, what changes in place, constructors."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from .core import Arguments, Frame
from .diagram import Node
from .program import Class, Function
from .returns import Returns
from .sharing import share
from .values import (
    NONE,
    UNBOUND,
    Const,
    External,
    FunctionValue,
    Member,
    Obj,
    Opaque,
    Power,
    Tuple,
)
from .wording import text_of


class Entering(Returns):
    """Enters functions and constructors."""

    def enter(self, callee: FunctionValue, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        """The result of running a function's body on arguments."""
        function = callee.function
        outer = callee.closure or self.module_frame(function.module)
        inner = Frame(function.module, function, {}, outer, self.leaf(NONE), self.diagrams.false)
        self._bind_parameters(callee, arguments, inner, pc)
        self._refuse_missing(callee, arguments, frame, pc)
        self._touch(function, inner, pc)
        self._share_storage(callee, arguments, frame, inner)
        base, self.base = self.base, self.absolute(pc)
        self.stack.append(function)
        try:
            if isinstance(function.node, ast.Lambda):
                return self.evaluate(function.node.body, inner, self.diagrams.true)
            end = self.live(self.execute(function.node.body, inner, self.diagrams.true))
        finally:
            self.stack.pop()
            self.base = base
        self._write_back(inner, arguments, callee, frame, pc)
        if "<yielded>" in inner.env:
            return self.leaf(Obj(None, "list", {"each": inner.env["<yielded>"]}, function.name))
        result = self.diagrams.ite(inner.gone, inner.result, self.leaf(NONE))
        # In worlds that neither returned nor came to the end something was raised: no value there, so any will do.
        ended = self.live(self.diagrams.either(inner.gone, end))
        result = self.diagrams.under(self.diagrams.both(pc, ended), result)
        return self.as_returned(result, function, frame, callee.bound is None)

    def _touch(self, function: Function, inner: Frame, pc: Node) -> None:
        """Note the worlds in which code that is watched makes a difference."""
        if not self.focus.functions:
            return
        at = function.owner
        names = [(c.module.path, f"{c.name}.{function.name}") for c in self.lineage(at)] if at else []
        for key in names or [(function.module.path, function.name)]:
            if key in self.focus.functions:
                self.touched = self.diagrams.either(self.touched, self._difference(key, inner, pc))

    def _difference(self, key: tuple[str, str], inner: Frame, pc: Node) -> Node:
        """The worlds in which a function that is watched makes a difference, its parameters being what they are."""
        pc = self.diagrams.both(self.absolute(pc), self.alive)
        cubes = self.focus.functions[key]
        if cubes is None:
            return pc
        found = self.diagrams.false
        for cube in cubes:
            holds = pc
            for name, values in cube.items():
                truth = (
                    self.truth(inner.env[name], inner, inner.function.node) if inner.function else self.diagrams.true
                )
                if values == ("false",):
                    truth = self.diagrams.negate(truth)
                holds = self.diagrams.both(holds, truth)
            found = self.diagrams.either(found, holds)
        return found

    def _bind_parameters(self, callee: FunctionValue, arguments: Arguments, inner: Frame, pc: Node) -> None:
        spec = callee.function.node.args
        names = [a.arg for a in [*spec.posonlyargs, *spec.args]]
        given: list[Node] = [self.leaf(callee.bound)] if callee.bound is not None else []
        given += arguments.positional
        named = dict(arguments.named)
        defaults = (
            dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=True)) if spec.defaults else {}
        )
        defaults |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}
        for name, first in zip(names, given, strict=False):
            inner.env[name] = first
        for parameter in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]:
            if parameter.arg in named:
                inner.env[parameter.arg] = named.pop(parameter.arg)
            missing = parameter.arg not in inner.env
            partly = not missing and any(v is UNBOUND for v, _ in self.values(inner.env[parameter.arg], pc))
            if missing or partly:
                default = self._default(parameter, defaults.get(parameter.arg), callee, arguments, inner)
                held = inner.env.get(parameter.arg, self.unbound)
                inner.env[parameter.arg] = self.filled(held, default)
            inner.env[parameter.arg] = self.tidy(inner.env[parameter.arg], parameter.arg)
            inner.env[parameter.arg] = self._promised(
                self.marked(parameter.arg, inner.env[parameter.arg]), parameter, inner
            )
        if spec.vararg:
            inner.env[spec.vararg.arg] = self.leaf(Tuple(tuple(given[len(names) :])))
        if spec.kwarg:
            rest = {repr(name): value for name, value in named.items()}
            made = Obj(None, "dict", rest, spec.kwarg.arg, open=bool(arguments.unknown))
            inner.env[spec.kwarg.arg] = self.leaf(made)
        for name in inner.env:
            inner.aliases[name] = {}

    def _refuse_missing(self, callee: FunctionValue, arguments: Arguments, frame: Frame, pc: Node) -> None:
        """A call that is seen to leave out an argument which it must give raises."""
        function, node = callee.function, arguments.node
        if arguments.entry or arguments.unknown or not isinstance(node, ast.Call) or function.marks:
            return
        given = len(arguments.positional) + len(arguments.named)
        if isinstance(function.node, ast.Lambda) or given != len(node.args) + len(node.keywords):
            return
        spec = function.node.args
        names = [a.arg for a in [*spec.posonlyargs, *spec.args]]
        first = len(arguments.positional) + (callee.bound is not None)
        required = names[first : len(names) - len(spec.defaults)]
        missing = [name for name in required if name not in arguments.named]
        if missing and not frame.caught:
            self.end(frame, node, f"TypeError: {function.qualname}() misses the argument {', '.join(missing)}", pc)

    def _promised(self, value: Node, parameter: ast.arg, inner: Frame) -> Node:
        """An opaque argument takes on the class that the parameter's annotation promises."""
        found = self.diagrams.values(value)
        if parameter.annotation is None or not any(isinstance(v, Opaque) for v, _ in found):
            return value
        hint, number = self.annotation(parameter.annotation, self.module_frame(inner.module))
        if hint is None and not number:
            return value

        def with_hint(v: Any) -> Any:
            return Opaque(v.text, self.narrower(hint, v.hint), v.number or number) if isinstance(v, Opaque) else v

        return self.diagrams.map(with_hint, value)

    def _default(
        self, parameter: ast.arg, default: ast.expr | None, callee: FunctionValue, arguments: Arguments, inner: Frame
    ) -> Node:
        if default is None or arguments.unknown or arguments.entry:
            return self.parameter(parameter, inner, arguments.unknown)
        return self.evaluate(default, callee.closure or self.module_frame(callee.function.module), self.diagrams.true)

    def parameter(self, parameter: ast.arg, inner: Frame, unknown: str) -> Node:
        """A parameter nobody gave: the factor if it goes by its name, else unknown."""
        if parameter.arg == self.factor and not unknown:
            return self.leaf(Power(1))
        (self.guessed if self.guessing else self.given).add(parameter.arg)
        hint, number = self.annotation(parameter.annotation, self.module_frame(inner.module))
        return self.unknown(parameter.arg, hint, inner, parameter, number)

    def _share_storage(self, callee: FunctionValue, arguments: Arguments, frame: Frame, inner: Frame) -> None:
        """Parameters that are handed one tensor, or views of one, share its storage."""
        given = [(name, self.storage_of(source)) for name, source in self._given(callee, arguments)]
        stored = [(name, storage) for name, storage in given if storage is not None and name in inner.env]
        for index, (name, storage) in enumerate(stored):
            for other, at in stored[:index]:
                when = self.diagrams.true if at == storage else frame.aliases.get(storage, {}).get(at)
                if when is not None:
                    share(inner.aliases, name, other, when, self.diagrams)

    @staticmethod
    def _given(callee: FunctionValue, arguments: Arguments) -> Iterator[tuple[str, ast.expr]]:
        """Each parameter with the expression it is given."""
        spec = callee.function.node.args
        names = [a.arg for a in [*spec.posonlyargs, *spec.args]]
        shift = 1 if callee.bound is not None else 0
        for key, source in arguments.sources.items():
            if isinstance(key, str) or key + shift < len(names):
                yield key if isinstance(key, str) else names[key + shift], source

    def storage_of(self, source: ast.expr) -> str | None:  # storing
        """The variable whose storage an expression is, or is a view of; None for a fresh value."""
        raise NotImplementedError

    def _write_back(self, inner: Frame, arguments: Arguments, callee: FunctionValue, frame: Frame, pc: Node) -> None:
        """Arguments that the function changed in place are changed in the caller."""
        for name, source in self._given(callee, arguments):
            if name in inner.changed and name in inner.env:
                value = inner.env[name]
                old = self.evaluate(source, frame, pc) if not isinstance(source, ast.Call) else self.unbound
                self.change(source, self.diagrams.ite(self.live(pc), value, old), frame, pc)

    def construct(self, owner: Class, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        """`Class(…)`."""
        if self.is_enum(owner):
            return self._enum_call(owner, arguments, frame, pc)
        made = Obj(owner, "instance", {}, owner.name)
        init = self.method(owner, "__init__")
        watched = any((c.module.path, c.name) in self.focus.classes for c in self.lineage(owner))
        if watched:
            self.touched = self.diagrams.either(self.touched, self.diagrams.both(self.absolute(pc), self.alive))
        if owner.is_record and init is None:
            self._fill_record(made, owner, arguments, pc)
            return self.leaf(made)
        if init is None:
            made.open = self.has_external_base(owner)
            self._keep_extra(made, arguments)
            return self.leaf(made)
        cold = not any(map(self.is_hot, arguments.all())) and self.factor not in self.class_text(owner)
        if cold and not watched:
            made.open = True
            made.pending = (init, arguments, frame, self.absolute(pc))
            return self.leaf(made)
        self.enter(FunctionValue(init, made), arguments, frame, pc)
        return self.leaf(made)

    def finish(self, value: Obj) -> None:
        """Run the constructor that was put off; what was set meanwhile stays."""
        init, arguments, frame, pc = value.pending
        value.pending = None
        later = dict(value.attrs)
        with self.aside():
            self.enter(FunctionValue(init, value), arguments, frame, pc)
        value.attrs.update(later)

    def _keep_extra(self, made: Obj, arguments: Arguments) -> None:
        for name, value in arguments.named.items():
            made.attrs[name] = value

    def _fill_record(self, made: Obj, owner: Class, arguments: Arguments, pc: Node) -> None:
        names: list[str] = []
        for at in reversed(self.lineage(owner)):
            for field in at.fields:
                assert isinstance(field.target, ast.Name)
                if field.target.id in names:
                    names.remove(field.target.id)
                names.append(field.target.id)
                if field.value is not None:
                    default = self.evaluate(field.value, self.module_frame(at.module), self.diagrams.true)
                    value = getattr(default, "value", None)
                    made.attrs[field.target.id] = (
                        self.leaf(Opaque(f"{owner.name}.{field.target.id}"))
                        if isinstance(value, Opaque | External)
                        else default
                    )
        for name, value in zip(names, arguments.positional, strict=False):
            made.attrs[name] = self.marked(name, value)
        for name, value in arguments.named.items():
            made.attrs[name] = self.marked(name, value)
        made.open = bool(arguments.unknown)
        post = self.method(owner, "__post_init__")
        if post is not None:
            self.enter(FunctionValue(post, made), Arguments([], {}), self.module_frame(owner.module), pc)

    def _enum_call(self, owner: Class, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        members = {self.member_literal(Member(owner, m)): m for m in self.enum_members(owner)}

        def one(value: Any, where: Node) -> Node:
            if isinstance(value, Const) and value.value in members:
                return self.leaf(Member(owner, members[value.value]))
            if isinstance(value, Member):
                return self.leaf(value)
            return self.unknown(text_of(value), owner, frame, arguments.node or owner.node)

        return self.each(arguments.positional[0], pc, one) if arguments.positional else self.leaf(Opaque(owner.name))

    def fill_unknown(self, value: Obj) -> None:
        """Run the constructor of an instance that came from nowhere, with unknown arguments."""
        assert value.owner is not None
        init = self.method(value.owner, "__init__")
        if init is None or length(init) > 120:
            return
        frame = self.module_frame(value.owner.module)
        # Whether its arguments were fit isn't known, so what it refuses doesn't count.
        self.guessing += 1
        with self.aside():
            self.enter(FunctionValue(init, value), Arguments([], {}, entry=True), frame, self.diagrams.true)
        self.guessing -= 1


def length(function: Function) -> int:
    """Lines of a function."""
    return (function.node.end_lineno or 0) - function.node.lineno + 1
