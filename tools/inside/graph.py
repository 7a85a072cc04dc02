"""From one definition to the next: the definitions that an entry leads to, nearest first."""

from __future__ import annotations

import ast
import heapq
import itertools
import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .chunks import Chunk
from .definitions import Definition, Function, Scope
from .imports import Hop, Resolver, Target, Walk, anything
from .references import Mark, Reference, read, receiver

WEIGHTS = {"constructs": 1, "inherits": 1, "calls": 2, "refers": 3, "imports": 4}
"""How far apart each kind of reference puts two definitions; the nearest home wins."""


@dataclass(frozen=True)
class Visit:
    """A definition that was entered.

    Attributes:
        distance: sum of the weights on the way.
        depth: how many times the way went from one file to another.
        hops: the last step's lines, imports first; empty for a start.
    """

    definition: Definition
    distance: int = 0
    depth: int = 0
    came_from: Visit | None = None
    hops: tuple[Hop, ...] = ()

    def path(self) -> list[Hop]:
        """Every line from the start to here."""
        steps: list[tuple[Hop, ...]] = []
        visit: Visit | None = self
        while visit is not None:
            steps.append(visit.hops)
            visit = visit.came_from
        return [hop for hops in reversed(steps) for hop in hops]


@dataclass
class Exploration:
    """What was reached.

    Attributes:
        visits: the definitions entered, in order of distance.
        marks: what in them can't be followed.
        too_deep: files that lie more than `max_depth` files away, or as far and can't hold an answer.
        passed_over: definitions and files left unread because the lines to read were spent.
    """

    visits: list[Visit] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    too_deep: set[str] = field(default_factory=set)
    passed_over: set[object] = field(default_factory=set)


@dataclass(frozen=True)
class Limits:
    """How far to go.

    Attributes:
        max_depth: how many times a path may go from one file to another.
        most_lines: lines of definitions to read in files that can't hold an answer themselves;
            the entry doesn't count. Afterwards only files that can are entered.
        most_lines_at_all: lines to read altogether, the entry not counted.
    """

    max_depth: int = 4
    most_lines: int = 8_000
    most_lines_at_all: int = 40_000


@dataclass(frozen=True)
class _Step:
    """A reference to follow, or a target that is already known."""

    visit: Visit
    reference: Reference
    target: Target | None = None


class Explorer:
    """Enters definitions in order of distance, each once; files are opened as late as possible.

    Args:
        resolver: resolves names.
        limits: how far to go.
        worth_opening: whether a file can hold an answer; on the last step no other file is opened.
    """

    def __init__(self, resolver: Resolver, limits: Limits, worth_opening: Callable[[str], bool]) -> None:
        self.resolver = resolver
        self.limits = limits
        self.worth_opening = worth_opening
        self.result = Exploration()
        self._heap: list[tuple[int, int, int, Visit | _Step]] = []
        self._order = itertools.count()
        self._entered: set[object] = set()
        self._only: dict[str, Callable[[str], bool]] = {}
        # Bound once: what a name means is remembered per restriction.
        self._last, self._late = self._may_be_last, self._may_be_late
        self._lines = 0
        self._idle_lines = 0

    def explore(self, starts: list[Definition]) -> Exploration:
        """Visit everything within reach of the starts."""
        for start in starts:
            self._push(0, 0, Visit(start))
        while self._heap:
            item = heapq.heappop(self._heap)[-1]
            if isinstance(item, Visit):
                self._enter(item)
            elif item.target is None:
                self._follow(item)
            else:
                self._arrive(item, item.target, item.reference.usage)
        return self.result

    def _push(self, distance: int, depth: int, item: Visit | _Step) -> None:
        heapq.heappush(self._heap, (distance, depth, next(self._order), item))

    def _enter(self, visit: Visit) -> None:
        definition = visit.definition
        if self._is_covered(definition) or not self._affords(visit):
            return
        self._entered.update(_identity(definition), definition.nodes)
        self.result.visits.append(visit)
        references, marks = read(definition)
        self.result.marks += marks
        for reference in references:
            # A call may turn out to construct, so it is looked at as early as a construction.
            nearest = 1 if reference.usage == "calls" else WEIGHTS[reference.usage]
            self._push(visit.distance + nearest, visit.depth, _Step(visit, reference))

    def _affords(self, visit: Visit) -> bool:
        if visit.came_from is None:
            return True
        definition = visit.definition
        lines = sum(_length(piece) for piece in definition.sources)
        idle = 0 if self.worth_opening(definition.module.path) else lines
        spent = self._lines + lines > self.limits.most_lines_at_all
        if spent or (idle and self._idle_lines + idle > self.limits.most_lines):
            self.result.passed_over.add(definition.key)
            return False
        self._lines += lines
        self._idle_lines += idle
        return True

    def _is_covered(self, definition: Definition) -> bool:
        """Whether the definition, or one around it, was entered before."""
        around: list[object] = [definition.module]
        scope: Scope | None = definition.scope
        while scope is not None:
            around.append(scope.node)
            scope = scope.outer
        return any(one in self._entered for one in around) or self._entered.issuperset(_identity(definition))

    def _follow(self, step: _Step) -> None:
        """Find out what a reference means; functions wait their turn, the rest is arrived at."""
        visit, usage = step.visit, step.reference.usage
        for target in self._targets(visit, step.reference):
            kind = target.definition.kind
            if kind == "module":
                self._arrive_in_module(step, target)
            elif usage == "calls" and kind != "class":
                later = _Step(visit, step.reference, target)
                self._push(visit.distance + WEIGHTS["calls"], visit.depth, later)
            else:
                via = "constructs" if usage == "calls" else usage
                self._arrive(step, target, via)

    def _arrive_in_module(self, step: _Step, target: Target) -> None:
        """A module as such: only what runs on import, and only if that can hold an answer."""
        module = target.definition.module
        if self.worth_opening(module.path):
            self._arrive(step, Target(module.body, target.trail), "imports")

    def _arrive(self, step: _Step, target: Target, via: str) -> None:
        definition, visit = target.definition, step.visit
        here, there = visit.definition.module.path, definition.module.path
        depth = visit.depth + (here != there)
        if depth > self.limits.max_depth:
            self.result.too_deep.add(there)
        elif not self._is_covered(definition):
            hop = Hop(via, here, step.reference.line, _shown(definition, step.reference), there)
            whole = via == "imports" and target.trail
            hops = target.trail if whole else _ordered(target.trail, hop)
            distance = visit.distance + WEIGHTS[via]
            self._push(distance, depth, Visit(definition, distance, depth, visit, hops))

    def _targets(self, visit: Visit, reference: Reference) -> list[Target]:
        parts = reference.parts
        narrow = visit.definition.kind == "function" and len(parts) > 1
        owner = receiver(reference.scope, parts[0]) if narrow else None
        if owner is not None:
            return list(self._attribute(owner, parts))
        if parts[0] == "super":
            return []
        return self.resolver.resolve(reference.scope, parts, self._may_open(visit))

    def _may_open(self, visit: Visit) -> Callable[[str], bool]:
        """Which files a step from here may open: near the end, only what can hold an answer."""
        if visit.depth >= self.limits.max_depth:
            here = visit.definition.module.path
            return self._only.setdefault(here, partial(self._is_here, here))
        if visit.depth + 1 == self.limits.max_depth:
            return self._last
        return self._late if self._idle_lines >= 0.9 * self.limits.most_lines else anything

    def _is_here(self, here: str, path: str) -> bool:
        return path == here or self._refuse(path, self.result.too_deep)

    def _may_be_last(self, path: str) -> bool:
        return self._is_promising(path) or self._refuse(path, self.result.too_deep)

    def _may_be_late(self, path: str) -> bool:
        return self._is_promising(path) or self._refuse(path, self.result.passed_over)

    def _is_promising(self, path: str) -> bool:
        return posixpath.basename(path) == "__init__.py" or self.worth_opening(path)

    @staticmethod
    def _refuse(path: str, refused: set[Any]) -> bool:
        refused.add(path)
        return False

    def _attribute(self, owner: Definition, parts: tuple[str, ...]) -> Iterator[Target]:
        """`self.name` or `super().name` inside a method that was entered without its class."""
        classes = self.lineage(owner)
        if parts[0] == "super":
            classes = classes[1:]
        for target in classes:
            scope = target.definition.body_scope()
            for binding in scope.bindings.get(parts[1], [])[-1:]:
                if binding.kind == "definition":
                    yield Target(scope.definition(binding.source), target.trail)
                else:
                    yield target
                return
        for target in classes:
            for method in _setters(target.definition, parts[1]):
                yield Target(method, target.trail)

    def lineage(self, owner: Definition) -> list[Target]:
        """A class and its base classes in the tree, nearest first."""
        found = [Target(owner)]
        walk = Walk(anything)
        for target in found:
            for base, hop in self.resolver.bases(target.definition, walk):
                found.append(Target(base.definition, (*target.trail, *base.trail, hop)))
        return found


def _setters(owner: Definition, name: str) -> Iterator[Definition]:
    """The methods of a class that assign `self.name`."""
    for node in getattr(owner.nodes[0], "body", []):
        if isinstance(node, Function):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Attribute) and inner.attr == name and isinstance(inner.ctx, ast.Store):
                    yield owner.body_scope().definition(node)
                    break


def _length(piece: ast.AST | Chunk) -> int:
    """Lines of source; a chunk needn't be parsed for that."""
    if isinstance(piece, Chunk):
        return piece.text.count("\n")
    first = getattr(piece, "lineno", 0)
    return (getattr(piece, "end_lineno", None) or first) - first + 1


def _ordered(trail: tuple[Hop, ...], hop: Hop) -> tuple[Hop, ...]:
    """The import line in the same file is read before the line that uses the name; the rest follow."""
    if trail and trail[0].via == "imports" and trail[0].file == hop.file:
        return (trail[0], hop, *trail[1:])
    return (hop, *trail)


def _shown(definition: Definition, reference: Reference) -> str:
    return definition.qualname or ".".join(reference.parts)


def _identity(definition: Definition) -> list[object]:
    """What entering it is remembered by; definitions of one name under `if` and `else` are two."""
    if definition.kind == "module":
        return [definition.module]
    return list(definition.sources) or [definition.key]
