"""The tracer's engine, counting other things: sums over ranks, and how often a scale reaches who computes with it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Any

from ..exactly_once.core import DEEPEST, Arguments, Frame
from ..exactly_once.diagram import Node, leaves
from ..exactly_once.engine import Engine
from ..exactly_once.entering import length
from ..exactly_once.guards import is_abstract
from ..exactly_once.program import Function
from ..exactly_once.sinks import Sink
from ..exactly_once.table import Outcome, flat, outcome_of
from ..exactly_once.values import (
    NONE,
    Const,
    External,
    FunctionValue,
    Member,
    Murky,
    Obj,
    Opaque,
    Tensor,
    Term,
    Tuple,
)
from ..exactly_once.wording import short
from . import groups

_METHOD = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)
SUMS = ("all-reduce", "combine")
"""Kinds of places that sum over ranks."""


_FACTORY = re.compile(r"_*(create|make|build)_")
LONGEST_FACTORY = 120
"""Lines of a function that makes an object, and is run to see of which class."""
_CLASS = re.compile(r"^class[ \t]+(\w+)", re.MULTILINE)


_FLAG = re.compile(r"^_*(is|has|use|should|can|enable|disable|skip|need|needs|apply|do|with|allow|reduce)_|_enabled$")


def _is_flag(node: ast.expr, frame: Frame) -> bool:
    """Whether an expression is true or false by its form, its annotation or its name."""
    if isinstance(node, ast.BoolOp):
        return all(_is_flag(operand, frame) for operand in node.values)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    if isinstance(node, ast.Name) and frame.function is not None:
        spec = frame.function.node.args
        for parameter in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]:
            if parameter.arg == node.id and parameter.annotation is not None:
                return ast.unparse(parameter.annotation) == "bool"
    if isinstance(node, ast.Call):
        node = node.func
    name = getattr(node, "id", getattr(node, "attr", ""))
    return isinstance(node, ast.Compare) or bool(_FLAG.search(name)) or getattr(node, "value", None) in (True, False)


def _whose_text(heads: re.Pattern[str], text: str) -> set[str]:
    """Of the definitions that a pattern finds, the names of those whose text calls a reduction."""
    found = list(heads.finditer(text))
    ends = [*(head.start() for head in found[1:]), len(text)]
    return {h[1] for h, end in zip(found, ends, strict=False) if groups.called_in(text[h.end() : end])}


@dataclass(frozen=True)
class Summed(Outcome):
    """An outcome with the groups of ranks that were summed over."""

    over: tuple[str, ...] = ()


@dataclass
class Watching(Engine):
    """An engine that remembers which functions it ran.

    Attributes:
        begin: the function that is entered; `source` names its parameter that is followed, if one is.
        asked: keys of the guards that were met.
        handed_to: calls of unknown effect that what is followed was handed to.
        handed_how: the same and others in which order matters, each with the argument and its count there.
    """

    begin: Function | None = None
    source: str = ""
    entered: set[tuple[str, str, int]] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    handed_to: dict[str, None] = field(default_factory=dict)
    handed_how: set[str] = field(default_factory=set)

    def enter(self, callee: Any, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        """See `Core.enter`."""
        function = callee.function
        self.entered.add((function.module.path, function.qualname, function.node.lineno))
        return super().enter(callee, arguments, frame, pc)

    def _function(self, callee: FunctionValue, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        function = callee.function
        followable = len(self.stack) < DEEPEST and self.stack.count(function) < 2 and not callee.frozen
        if followable and not is_abstract(function) and self.tells(function):
            return self.enter(callee, arguments, frame, pc)
        return super()._function(callee, arguments, frame, pc)

    def tells(self, function: Function) -> bool:
        """Whether a function is run whatever it is handed: its own body decides what is counted."""
        raise NotImplementedError

    def note_handed(self, name: str, key: int | str, node: Node, pc: Node) -> None:
        """Remember how often what a call is handed was counted."""
        for value, _ in self.diagrams.values(node, pc):
            counts = {t.k for t in value.terms} if isinstance(value, Tensor) else {getattr(value, "k", 0)}
            if self.is_hot(self.leaf(value)):
                self.handed_how.add(f"{short(name)}, argument {key}: {', '.join(map(str, sorted(counts)))} times")

    def parameter(self, parameter: ast.arg, inner: Frame, unknown: str) -> Node:
        """See `Entering.parameter`."""
        if self.source and inner.function is self.begin and parameter.arg == self.source:
            return self.routed()
        return super().parameter(parameter, inner, unknown)

    def new_guard(
        self, key: str, frame: Frame, node: ast.AST, values: tuple[str, ...] = ("true", "false"), name: str = ""
    ) -> Node:
        """See `Guards.new_guard`."""
        self.asked.add(key)
        return super().new_guard(key, frame, node, values, name)

    def _skipped(self, callee: FunctionValue, arguments: Arguments, frame: Frame, pc: Node, murky: bool) -> Node:
        # A constructor of a base class that isn't run may have set any attribute.
        if isinstance(callee.bound, Obj) and callee.function.name == "__init__":
            callee.bound.open = True
        return super()._skipped(callee, arguments, frame, pc, murky)

    def _on_boolop(self, node: ast.BoolOp, frame: Frame, pc: Node) -> Node:
        # Flags joined stay flags: as values they would be two unknown ones, which are made one.
        if all(_is_flag(operand, frame) for operand in node.values):
            return self.diagrams.map(Const.of, self.condition(node, frame, pc))
        return super()._on_boolop(node, frame, pc)

    def outcome(self, value: Any) -> Outcome:
        """What a returned value comes to."""
        return outcome_of(tuple(flat(value)), self)


@dataclass
class Reductions(Watching):
    """Each sum over ranks counts one; a factor counts nothing."""

    def is_collective(self, function: Function) -> bool:
        """See `Calls.is_collective`: a reduction is counted, or followed, instead."""
        return super().is_collective(function) and not groups.reduces(function.name)

    def _function(self, callee: FunctionValue, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        name = callee.function.name
        if groups.reduces(name) and not groups.asks_first(name):
            found = self._reduced(arguments, frame, pc)
            if found is not None:
                return found
        return super()._function(callee, arguments, frame, pc)

    def tells(self, function: Function) -> bool:
        """See `Watching.tells`: which dispatcher or communicator is made."""
        return bool(_FACTORY.match(function.name)) and length(function) <= LONGEST_FACTORY

    def unlisted(self, name: str, arguments: Arguments, frame: Frame, pc: Node, held_by: str = "") -> Node:
        """See `Sinking.unlisted`."""
        last = name.rpartition(".")[2]
        if groups.reduces(last) or groups.combines(last):
            found = self._reduced(arguments, frame, pc, "combine" if groups.combines(last) else "all-reduce")
            if found is not None:
                return found
        if any(map(self.is_hot, arguments.all())):
            self.handed_to[short(name)] = None
        for key, node in each_argument(arguments):
            self.note_handed(name, key, node, pc)
        return super().unlisted(name, arguments, frame, pc, held_by)

    def apply_sink(self, sink: Sink, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        """See `Sinking.apply_sink`."""
        if groups.reduces(sink.name) or groups.combines(sink.name):
            found = self._reduced(arguments, frame, pc, "combine" if groups.combines(sink.name) else "all-reduce")
            if found is not None:
                return found
        return super().apply_sink(sink, arguments, frame, pc)

    def _reduced(self, arguments: Arguments, frame: Frame, pc: Node, kind: str = SUMS[0]) -> Node | None:
        """The followed tensor among a call's arguments, summed once more; where it writes instead, that is written."""
        given = dict(each_argument(arguments))
        hot = [key for key, node in given.items() if self.is_hot(node)]
        if not hot:
            return None
        at = arguments.node or ast.Pass()
        wrote: int | str | None = next((key for key in ("output", "out") if key in arguments.sources), None)
        read = next((key for key in hot if key != wrote), hot[0])
        if arguments.node in self.statements_called and wrote is None:
            # `reduce_scatter(output, input)` writes the first; `all_reduce(tensor)` what it reads.
            wrote = 0 if len(arguments.positional) > 1 and not self._is_plain(arguments.positional[1]) else read
            read = 1 if wrote == 0 and 1 in hot else read
        value = self.diagrams.under(pc, given[read])
        result = self.diagrams.map(lambda v: self._summed_once(v, frame, at, kind), value)
        if wrote is not None and wrote in arguments.sources:
            self.change(arguments.sources[wrote], self.diagrams.ite(pc, result, given[wrote]), frame, pc)
        return self.leaf(NONE) if arguments.node in self.statements_called else result

    @staticmethod
    def _is_plain(node: Node) -> bool:
        value = getattr(node, "value", None)
        return isinstance(value, Const | External | Member) or (isinstance(value, Opaque) and value.hint is not None)

    def _summed_once(self, value: Any, frame: Frame, at: ast.AST, kind: str) -> Any:
        if isinstance(value, Tensor):
            site = self.site(frame, at, kind)
            return Tensor(
                frozenset(Term(t.routed, t.k + 1, (*t.sites, site), t.part) if t.routed else t for t in value.terms)
            )
        if isinstance(value, Tuple):
            return Tuple(
                tuple(self.diagrams.map(lambda v: self._summed_once(v, frame, at, kind), i) for i in value.items)
            )
        if isinstance(value, Obj):
            for name, item in value.attrs.items():
                value.attrs[name] = self.diagrams.map(
                    lambda v: self._summed_once(v, frame, at, kind) if isinstance(v, Tensor) else v, item
                )
            self.writes += 1
        return value

    def _lukewarm(self, callee: FunctionValue, arguments: Arguments, pc: Node) -> bool:
        """See `Relevance._lukewarm`: a function that can't come to a reduction hands on what it gets."""
        return callee.closure is None and not self._reaches_factor(callee.function)

    def _passed_through(self, callee: FunctionValue, arguments: Arguments, frame: Frame, pc: Node) -> Node:
        """See `Relevance._passed_through`: what was reduced before stays reduced."""
        for key, node in each_argument(arguments):
            self.note_handed(callee.function.qualname, key, node, pc)
        result = super()._passed_through(callee, arguments, frame, pc)
        handed = self._handed_together(arguments.all(), pc)
        name = f"{callee.function.qualname} ({frame.module.path}:{getattr(arguments.node, 'lineno', 0)})"
        return self.diagrams.map2(lambda r, values: self._still(r, values, name), result, handed)

    def _still(self, result: Any, values: frozenset[Any], name: str) -> Any:
        summed = {v for v in values if isinstance(v, Tensor) and any(t.k for t in v.terms)}
        if not isinstance(result, Tensor) or not summed:
            return result
        if len(summed) > 1:
            return Murky(f"{name} takes several tensors that are reduced differently")
        return next(iter(summed))

    def _mentions(self, function: Function) -> bool:
        chunks = function.module.chunks
        texts = [self.class_text(function.owner) if function.owner else function.text]
        seen: set[str] = set()
        while texts:
            text = texts.pop()
            words = set(re.findall(r"\w+", text))
            if groups.called_in(text) or groups.calls(text) & self._reducing()[1]:
                return True
            for name in words & set(chunks) - seen:
                seen.add(name)
                texts += [chunk.text for chunk in chunks[name]]
        return False

    def _reaches_factor(self, function: Function) -> bool:
        cache = self._reaching
        if function not in cache:
            cache[function] = self._mentions(function)
        return cache[function]

    def is_defined_here(self, name: str) -> bool:
        """See `Sinking.is_defined_here`: a function of that name, anywhere, that reduces."""
        return name in self._reducing()[0]

    def _reducing(self) -> tuple[frozenset[str], frozenset[str]]:
        """Names of functions and of classes whose text calls a reduction, of the whole tree."""
        found: tuple[frozenset[str], frozenset[str]] | None = self.program.shared.get("what reduces")
        if found is None:
            functions: set[str] = set()
            classes: set[str] = set()
            for path in self.sources:
                data = self.program.texts.data(path)
                if b"reduce" in data or b"combine" in data:
                    text = data.decode("utf-8", "replace")
                    functions |= _whose_text(_METHOD, text)
                    classes |= _whose_text(_CLASS, text)
            found = self.program.shared["what reduces"] = frozenset(functions), frozenset(classes)
        return found

    def outcome(self, value: Any) -> Outcome:
        """See `Watching.outcome`: sums over different groups of ranks aren't added up."""
        unclear = next((why for t in _terms(value) if (why := self._over(t)[1])), "")
        if unclear:
            return Outcome(None, unknown=unclear)
        found = outcome_of(tuple(flat(self._routed_only(value))), self)
        odd = next((self.sites[s] for s in found.sites if self.sites[s].kind not in SUMS), None)
        if odd is not None:
            return Outcome(None, found.sites, f"a reduced value divides another ({odd.path}:{odd.line})")
        over = sorted(groups.group_of(self.sites[s].text) for s in found.sites)
        return Summed(found.count, found.sites, found.unknown, found.parts, tuple(over))

    def _over(self, term: Term) -> tuple[int | None, str]:
        over = [groups.group_of(self.sites[s].text) for s in term.sites if self.sites[s].kind in SUMS]
        return groups.times(over)

    def _routed_only(self, value: Any) -> Any:
        if isinstance(value, Tuple):
            return Tuple(tuple(self.diagrams.map(self._routed_only, item) for item in value.items))
        if isinstance(value, Tensor) and any(t.routed for t in value.terms):
            kept = [Term(True, self._over(t)[0] or 0, t.sites, t.part) for t in value.terms if t.routed]
            return Tensor(frozenset(kept))
        return value


def each_argument(arguments: Arguments) -> list[tuple[int | str, Node]]:
    """A call's arguments by position or name."""
    return [*enumerate(arguments.positional), *arguments.named.items()]


def _terms(value: Any) -> list[Term]:
    if isinstance(value, Tuple):
        return [t for item in value.items for leaf in leaves(item) for t in _terms(leaf.value)]
    return [t for t in value.terms if t.routed] if isinstance(value, Tensor) else []
