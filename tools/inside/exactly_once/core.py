"""The state of one analysis, and the operations that its parts call on each other."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .diagram import Diagrams, Node, leaves, support
from .focus import Focus
from .memory import Memory
from .program import Class, Function, Module, Program
from .sharing import Sharing
from .sinks import Sinks
from .values import (
    UNBOUND,
    FunctionValue,
    Murky,
    Obj,
    Opaque,
    Partial,
    Power,
    Tensor,
    Term,
    Tuple,
    tensor,
)

MOST_LOST = 300
"""Nodes of the condition for irrelevant exceptions; beyond, their worlds are counted as if nothing were raised."""
DEEPEST = 60
"""Calls inside calls that are followed."""


class OutOfBudget(Exception):
    """The analysis took more steps than it may."""


@dataclass
class Site:
    """A place where the factor is applied.

    Attributes:
        kind: multiply, in-place, alpha, kernel, reciprocal or renormalised.
        symbol: the function it stands in.
    """

    path: str
    line: int
    kind: str
    text: str
    symbol: str


@dataclass
class Raised:
    """An exception that code of the tree raises, and when."""

    path: str
    line: int
    text: str
    when: Node


@dataclass(eq=False)
class Frame:
    """One activation of a function, or the top level of a module.

    Attributes:
        env: local variables.
        outer: the frame of the enclosing function or module.
        result: what was returned so far, where `gone` holds.
        gone: when the function has returned.
        aliases: names that share storage, and when.
        changed: parameters that were changed in place.
        caught: for each enclosing `try`, when something was raised in it.
        broken, skipped: for each enclosing loop, when `break` and `continue` were met.
    """

    module: Module
    function: Function | None
    env: dict[str, Node]
    outer: Frame | None
    result: Node
    gone: Node
    aliases: Sharing = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    caught: list[Node] = field(default_factory=list)
    broken: list[Node] = field(default_factory=list)
    skipped: list[Node] = field(default_factory=list)
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    depth: int = 0

    @property
    def symbol(self) -> str:
        """The function's qualified name, `<module>` outside any."""
        return self.function.qualname if self.function else "<module>"


@dataclass
class Core(Memory):
    """What all parts of the engine share.

    Attributes:
        factor: the name that the factor goes by.
        facts: guards' values that are known, by the guard's key or name.
        until: when to give up, by the work that the diagrams' `effort` has counted.
        may_slice: whether to stop where an object may have many classes (`ManyClasses`), not follow all at once.
        base: the worlds in which the function that runs was entered. Conditions inside it are relative to them.
        alive: the worlds in which nothing was raised so far.
        lost: worlds in which something was raised that says nothing of the factor; what is computed there is void.
        focus: code whose worlds alone are asked about.
        touched: worlds that came to it.
        guessed: parameters of constructors that nobody was seen to call.
        given: parameters of the entry and its constructor.
    """

    program: Program
    factor: str
    sinks: Sinks
    facts: dict[str, str] = field(default_factory=dict)
    until: float = math.inf
    may_slice: bool = False
    steps_taken: int = 0
    diagrams: Diagrams = field(default_factory=Diagrams)
    sites: list[Site] = field(default_factory=list)
    raised: list[Raised] = field(default_factory=list)
    blind: dict[tuple[str, int, str], None] = field(default_factory=dict)
    assumptions: dict[str, None] = field(default_factory=dict)
    used_facts: set[str] = field(default_factory=set)
    focus: Focus = field(default_factory=Focus)

    def __post_init__(self) -> None:
        super().__post_init__()
        d = self.diagrams
        self.effort = d.effort
        self.base: Node = d.true
        self.alive: Node = d.true
        self.lost: Node = d.false
        self.touched: Node = d.false
        self.guessing = 0
        self.guessed: set[str] = set()
        self.given: set[str] = set()
        self.losses: list[Raised] = []
        self.lost_whole = True
        self.unbound = d.leaf(UNBOUND)
        self._sites: dict[tuple[str, int, str], int] = {}
        self.stack: list[Function] = []
        self.module_frames: dict[str, Frame] = {}
        self.held: dict[str, Node] = {}
        self.cold = 0
        self.routers_seen = False
        self.writes = 0
        self._tidied: dict[int, Node] = {}
        self._tidy_names: set[str] = set()
        self._heat: dict[int, tuple[int, bool]] = {}
        self._hot_objects: set[Obj] = set()

    # Each of these is defined by the part of the engine named in the comment.

    def evaluate(self, node: ast.expr, frame: Frame, pc: Node) -> Node:  # expressions
        """The value of an expression in the worlds of `pc`."""
        raise NotImplementedError

    def execute(self, body: Iterable[ast.stmt], frame: Frame, pc: Node) -> Node:  # statements
        """Run statements; answer the worlds in which the next one is reached."""
        raise NotImplementedError

    def call(self, callee: Any, arguments: Arguments, frame: Frame, pc: Node) -> Node:  # calls
        """The result of calling a value."""
        raise NotImplementedError

    def each_callee(self, callee: Node, arguments: Arguments, frame: Frame, pc: Node) -> Node:  # calls
        """The result of calling whatever a diagram holds."""
        raise NotImplementedError

    def call_method(self, value: Any, name: str, arguments: Arguments, frame: Frame, pc: Node) -> Node:  # calls
        """`value.name(…)`."""
        raise NotImplementedError

    def enter(self, callee: Any, arguments: Arguments, frame: Frame, pc: Node) -> Node:  # entering
        """The result of running a function's body."""
        raise NotImplementedError

    def change(self, target: ast.expr, new: Node, frame: Frame, pc: Node) -> None:  # storing
        """The storage behind an expression was changed in place."""
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Node, frame: Frame, pc: Node) -> None:  # storing
        """`target = value`."""
        raise NotImplementedError

    def get_attribute(self, value: Any, name: str, frame: Frame, pc: Node) -> Node:  # objects
        """An attribute of a value, `UNBOUND` where it has none."""
        raise NotImplementedError

    def tidy(self, node: Node, name: str) -> Node:  # names
        """Several unknown values that carry nothing, made one."""
        raise NotImplementedError

    def spend(self, steps: int = 1) -> None:
        """Count steps; raises `OutOfBudget` when the work is more than may be done."""
        self.steps_taken += steps
        self.effort.done += steps
        if self.effort.is_over(self.until):
            raise OutOfBudget("more time than it was given")

    def leaf(self, value: Any) -> Node:
        """The diagram of one value."""
        return self.diagrams.leaf(value)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Run something that isn't part of the entry's own run: what it raises ends no world."""
        kept = self.alive, self.lost, self.lost_whole, len(self.raised), len(self.losses), self.stack, self.cold
        base, self.base = self.base, self.diagrams.true
        self.alive, self.stack, self.cold = self.diagrams.true, [], 0
        try:
            yield
        finally:
            self.base = base
            self.alive, self.lost, self.lost_whole, raised, losses, self.stack, self.cold = kept
            del self.raised[raised:]
            del self.losses[losses:]

    def absolute(self, pc: Node) -> Node:
        """A condition of the function that runs, for what outlives it."""
        return self.diagrams.both(self.base, pc)

    def live(self, pc: Node) -> Node:
        """A condition without the worlds in which something was raised."""
        return self.diagrams.both(pc, self.diagrams.under(self.base, self.alive))

    def possible(self, node: Node) -> Node:
        """A value as it can be in the function that runs."""
        return self.diagrams.under(self.base, node)

    def values(self, node: Node, pc: Node) -> list[tuple[Any, Node]]:
        """Each value that a diagram can have in the worlds of `pc`, and when it has it."""
        return self.diagrams.values(self.possible(node), pc)

    def escapes(self, node: Node) -> None:
        """A list is kept where others can fill it."""
        for leaf in leaves(node):
            if isinstance(leaf.value, Obj) and leaf.value.kind == "list":
                leaf.value.open = True

    def routed(self) -> Node:
        """A routed tensor to which nothing was applied yet."""
        self.routers_seen = True
        return self.leaf(tensor(Term(True, 0)))

    def join(self, parts: list[tuple[Node, Node]], otherwise: Node | None = None) -> Node:
        """One diagram from values and the conditions under which they hold."""
        result = otherwise if otherwise is not None else (parts[-1][1] if parts else self.unbound)
        for condition, value in reversed(parts):
            result = self.diagrams.ite(condition, value, result)
        return result

    def each(self, node: Node, pc: Node, function: Callable[[Any, Node], Node]) -> Node:
        """Join the function's answers for every value that a diagram has under `pc`."""
        found = self.values(self.diagrams.under(pc, self.possible(node)), pc)
        return self.join([(where, function(value, where)) for value, where in found])

    def site(self, frame: Frame, node: ast.AST, kind: str) -> int:
        """The index of an application's place."""
        path, line = frame.module.path, getattr(node, "lineno", 0)
        key = (path, line, kind)
        if key not in self._sites:
            self._sites[key] = len(self.sites)
            text = ast.unparse(node)
            short = " ".join(text.split())
            self.sites.append(Site(path, line, kind, short[:157] + "…" if len(short) > 158 else short, frame.symbol))
        return self._sites[key]

    def note_blind(self, frame: Frame, node: ast.AST, why: str) -> None:
        """Remember something that could change the count and can't be seen."""
        self.blind[frame.module.path, getattr(node, "lineno", 0), why] = None

    def assume(self, text: str) -> None:
        """Remember what the count rests on."""
        self.assumptions[text] = None

    def raise_in(self, frame: Frame, node: ast.AST, text: str, when: Node) -> None:
        """Something is raised in the worlds of `when`: caught by an enclosing `try` of the frame, else an outcome."""
        if frame.caught:
            frame.caught[-1] = self.diagrams.either(frame.caught[-1], when)
            return
        if not self.matters(text, self.absolute(when)):
            self.lose(frame, node, text, when)
            return
        self.end(frame, node, text, when)

    def end(self, frame: Frame, node: ast.AST, text: str, when: Node) -> None:
        """The worlds of `when` end in an exception here, whatever it says."""
        when = self.diagrams.both(self.absolute(when), self.alive)
        if when is self.diagrams.false:
            return
        self.raised.append(Raised(frame.module.path, getattr(node, "lineno", 0), text, when))
        self.alive = self.diagrams.both(self.alive, self.diagrams.negate(when))

    def lose(self, frame: Frame, node: ast.AST, text: str, when: Node) -> None:
        """Worlds that end in an exception which says nothing of the factor: what is computed there is void."""
        if self.diagrams.is_bigger(self.lost, MOST_LOST):
            self.lost_whole = False
            return
        when = self.diagrams.both(self.absolute(when), self.diagrams.both(self.alive, self.diagrams.negate(self.lost)))
        if when is not self.diagrams.false:
            self.losses.append(Raised(frame.module.path, getattr(node, "lineno", 0), text, when))
            self.lost = self.diagrams.either(self.lost, when)

    def matters(self, text: str, when: Node) -> bool:
        """Whether an exception is worth following: it speaks of the factor, or only of guards with named values.

        Every other check of an argument would double the worlds; it is taken to hold.
        """
        if self.factor in text:
            return True
        return all(
            self.diagrams.guards[key].values != ("true", "false") and key[-3:-1] != "? " for key in support(when)
        )

    def is_hot(self, node: Node) -> bool:
        """Whether a value can carry the factor or a routed tensor, or leads to one."""
        return self._hot(node, set())

    def _hot(self, node: Node, seen: set[int]) -> bool:
        known = self._heat.get(id(node))
        if known is not None and (known[1] or known[0] == self.writes):
            return known[1]
        found = any(self._hot_value(leaf.value, seen) for leaf in leaves(node))
        if found or not seen:
            self._heat[id(node)] = (self.writes, found)
        return found

    def _hot_value(self, value: Any, seen: set[int]) -> bool:
        if isinstance(value, Power | Tensor | Murky):
            return True
        if isinstance(value, Tuple):
            return any(self._hot(item, seen) for item in value.items)
        if isinstance(value, Obj):
            if value in self._hot_objects:
                return True
            if id(value) in seen:
                return False
            seen.add(id(value))
            found = any(self._hot(item, seen) for item in value.attrs.values())
            if found:
                self._hot_objects.add(value)
            return found
        if isinstance(value, Partial):
            return any(self._hot(v, seen) for v in [*value.first, *dict(value.named).values()])
        if isinstance(value, FunctionValue):
            bound = value.bound is not None and self._hot_value(value.bound, seen)
            return bound or value.closure is not None
        return False


@dataclass
class Arguments:
    """Arguments of a call, with the expressions they came from where there are any.

    Attributes:
        unknown: a text for `*args` or `**kwargs` whose content isn't known, empty if all is known.
        entry: nobody calls it within the analysis: its parameters can be anything.
    """

    positional: list[Node]
    named: dict[str, Node]
    sources: dict[int | str, ast.expr] = field(default_factory=dict)
    node: ast.AST | None = None
    unknown: str = ""
    entry: bool = False

    def all(self) -> list[Node]:
        """All arguments' values."""
        return [*self.positional, *self.named.values()]


def class_of(value: Any) -> Class | None:
    """The class that a value is an instance of, where it is one of the tree."""
    if isinstance(value, Obj):
        return value.owner
    return value.hint if isinstance(value, Opaque) else None
