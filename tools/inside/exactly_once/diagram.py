"""Decision diagrams over guards: one value for each reachable combination of what isn't known.

A diagram is a `Leaf` or a `Branch` on one guard, with one child for each of the guard's values. Nodes are
hash-consed and reduced, so that equal diagrams are the same object and guards that make no difference
vanish by themselves (Bryant 1986, here with many-valued variables).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .effort import Effort

MOST_NODES = 400_000
"""Nodes after which a diagram is given up; a table of that size helps nobody."""


LAST = 1 << 60
"""The order of leaves."""


class TooManyWorlds(Exception):
    """The guards have more combinations that matter than can be followed."""


@dataclass(eq=False)
class Guard:
    """Something that isn't known before the deployment runs, and the values it can take.

    Attributes:
        order: position in the variable order.
        key: what tells it from others.
        name: the expression as a reader knows it.
        values: what it can be; `("true", "false")` for a condition.
        path, line: where it was met first.
    """

    order: int
    key: str
    name: str
    values: tuple[str, ...]
    path: str = ""
    line: int = 0


class Node:
    """A diagram."""

    __slots__ = ("mask", "order")
    mask: int
    """The guards it depends on, one bit each."""
    order: int
    """Position of the guard that it branches on; leaves come after all."""


class Leaf(Node):
    """A diagram that depends on nothing."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value, self.mask, self.order = value, 0, LAST


class Branch(Node):
    """A diagram that depends on a guard."""

    __slots__ = ("children", "guard")

    def __init__(self, guard: Guard, children: tuple[Node, ...]) -> None:
        self.guard, self.children, self.order = guard, children, guard.order
        mask = 1 << guard.order
        for child in children:
            mask |= child.mask
        self.mask = mask


@dataclass
class Diagrams:
    """The manager: all nodes and guards of one analysis; `effort` counts nodes, more than `most` are given up."""

    most: int = MOST_NODES
    effort: Effort = field(default_factory=Effort)
    guards: dict[str, Guard] = field(default_factory=dict)
    _leaves: dict[Hashable, Leaf] = field(default_factory=dict)
    _branches: dict[tuple[int, tuple[Node, ...]], Branch] = field(default_factory=dict)
    _ite: dict[tuple[Node, Node, Node], Node] = field(default_factory=dict)
    _by_order: list[Guard] = field(default_factory=list)
    _negated: dict[Node, Node] = field(default_factory=dict)
    _under: dict[tuple[int, int], Node | None] = field(default_factory=dict)
    _projected: dict[tuple[int, int], Node] = field(default_factory=dict)
    _sizes: dict[tuple[int, int], bool] = field(default_factory=dict)
    _parts: dict[int, dict[Leaf, Node]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.true: Node = self.leaf(True)
        self.false: Node = self.leaf(False)

    def guard(
        self, key: str, values: tuple[str, ...] = ("true", "false"), name: str = "", path: str = "", line: int = 0
    ) -> Guard:
        """The guard with that key, made when it is new."""
        if key not in self.guards:
            self.guards[key] = Guard(len(self.guards), key, name or key, values, path, line)
            self._by_order.append(self.guards[key])
        return self.guards[key]

    def leaf(self, value: Hashable) -> Leaf:
        """The diagram with one value."""
        key = (type(value), value)
        found = self._leaves.get(key)
        if found is None:
            found = self._leaves[key] = Leaf(value)
        return found

    def branch(self, guard: Guard, children: tuple[Node, ...]) -> Node:
        """The diagram that takes the child of the guard's value."""
        if children.count(children[0]) == len(children):
            return children[0]
        key = (guard.order, children)
        found = self._branches.get(key)
        if found is None:
            if len(self._branches) >= self.most:
                raise TooManyWorlds(f"more than {self.most:,} combinations of guards")
            self.effort.done += 1
            found = self._branches[key] = Branch(guard, children)
        return found

    def test(self, guard: Guard, value: str = "true") -> Node:
        """The condition that a guard has a value."""
        return self.branch(guard, tuple(self.true if v == value else self.false for v in guard.values))

    def ite(self, condition: Node, then: Node, other: Node) -> Node:
        """`then` where the condition holds, else `other`."""
        if condition is self.true or then is other:
            return then
        if condition is self.false:
            return other
        if condition is then:
            then = self.true
        if condition is other:
            other = self.false
        if then is self.true and other is self.false:
            return condition
        key = (condition, then, other)
        found = self._ite.get(key)
        if found is None:
            self.effort.done += 1
            order = min(condition.order, then.order, other.order)
            guard = self._by_order[order]
            if len(guard.values) == 2:
                c0, c1 = condition.children if condition.order == order else (condition, condition)  # type: ignore[attr-defined]
                t0, t1 = then.children if then.order == order else (then, then)  # type: ignore[attr-defined]
                o0, o1 = other.children if other.order == order else (other, other)  # type: ignore[attr-defined]
                children: tuple[Node, ...] = (self.ite(c0, t0, o0), self.ite(c1, t1, o1))
            else:
                many = [_split(node, order, len(guard.values)) for node in (condition, then, other)]
                children = tuple(map(self.ite, *many))
            found = self._ite[key] = self.branch(guard, children)
        return found

    def both(self, a: Node, b: Node) -> Node:
        """The conjunction of two conditions."""
        if a is b or b is self.true:
            return a
        if a is self.false or b is self.false:
            return self.false
        return self.ite(a, b, self.false) if a.order <= b.order else self.ite(b, a, self.false)

    def either(self, a: Node, b: Node) -> Node:
        """The disjunction of two conditions."""
        if a is b or b is self.false:
            return a
        if a is self.true or b is self.true:
            return self.true
        return self.ite(a, self.true, b) if a.order <= b.order else self.ite(b, self.true, a)

    def negate(self, a: Node) -> Node:
        """The condition's opposite."""
        found = self._negated.get(a)
        if found is None:
            if isinstance(a, Branch):
                found = self.branch(a.guard, tuple(map(self.negate, a.children)))
            else:
                found = self.false if a is self.true else self.true
            self._negated[a] = found
            self._negated[found] = a
        return found

    def map(self, function: Callable[[Any], Hashable | Node], node: Node) -> Node:
        """The diagram with each value replaced by the function's answer, a value or a diagram."""
        done: dict[int, Node] = {}

        def walk(at: Node) -> Node:
            found = done.get(id(at))
            if found is None:
                if isinstance(at, Leaf):
                    answer = function(at.value)
                    found = answer if isinstance(answer, Node) else self.leaf(answer)
                else:
                    assert isinstance(at, Branch)
                    found = self._select(at.guard, tuple(walk(child) for child in at.children))
                done[id(at)] = found
            return found

        return walk(node)

    def _select(self, guard: Guard, children: tuple[Node, ...]) -> Node:
        """Like `branch`, for children that may themselves depend on guards before this one."""
        if all(c.order > guard.order for c in children):
            return self.branch(guard, children)
        result = children[-1]
        for value, child in zip(guard.values[:-1], children[:-1], strict=True):
            result = self.ite(self.test(guard, value), child, result)
        return result

    def map2(self, function: Callable[[Any, Any], Hashable | Node], a: Node, b: Node) -> Node:
        """The function applied to the values that two diagrams have together."""
        if isinstance(a, Leaf) and isinstance(b, Leaf):
            answer = function(a.value, b.value)
            return answer if isinstance(answer, Node) else self.leaf(answer)
        done: dict[tuple[int, int], Node] = {}

        def walk(x: Node, y: Node) -> Node:
            key = (id(x), id(y))
            found = done.get(key)
            if found is None:
                if isinstance(x, Leaf) and isinstance(y, Leaf):
                    answer = function(x.value, y.value)
                    found = answer if isinstance(answer, Node) else self.leaf(answer)
                else:
                    guard = _top(x, y)
                    found = self._select(
                        guard, tuple(walk(_child(x, guard, i), _child(y, guard, i)) for i in range(len(guard.values)))
                    )
                done[key] = found
            return found

        return walk(a, b)

    def under(self, condition: Node, node: Node) -> Node:
        """The diagram simplified for worlds in which the condition holds (Coudert and Madre's restrict)."""
        if not node.mask & condition.mask:
            return node
        return self._restrict(node, self.project(condition, node.mask)) or node

    def project(self, node: Node, mask: int) -> Node:
        """The condition that a condition has worlds with the same values of the guards in the mask."""
        if not node.mask & ~mask or not isinstance(node, Branch):
            return node
        mask &= node.mask
        if not mask:
            return self.true  # a branch has a world in which it holds
        key = (id(node), mask)
        found = self._projected.get(key)
        if found is None:
            children = [self.project(child, mask) for child in node.children]
            if mask >> node.guard.order & 1:
                found = self.branch(node.guard, tuple(children))
            else:
                found = children[0]
                for child in children[1:]:
                    found = self.either(found, child)
            self._projected[key] = found
        return found

    def _restrict(self, node: Node, condition: Node) -> Node | None:
        if condition is self.false:
            return None
        if not node.mask & condition.mask:
            return node
        key = (id(node), id(condition))
        if key not in self._under:
            guard = _top(node, condition)
            found = [
                self._restrict(_child(node, guard, i), _child(condition, guard, i)) for i in range(len(guard.values))
            ]
            alive = [f for f in found if f is not None]
            if not alive:
                self._under[key] = None
            else:
                self._under[key] = self.branch(guard, tuple(alive[0] if f is None else f for f in found))
        return self._under[key]

    def values(self, node: Node, condition: Node | None = None) -> list[tuple[Any, Node]]:
        """Each value the diagram can have (in worlds of the condition), and the condition under which it has it."""
        condition = self.true if condition is None else condition
        if isinstance(node, Leaf):
            return [] if condition is self.false else [(node.value, condition)]
        found: list[tuple[Any, Node]] = []
        for leaf, holds in self._partition(node).items():
            where = self.both(condition, holds)
            if where is not self.false:
                found.append((leaf.value, where))
        return found

    def _partition(self, node: Node) -> dict[Leaf, Node]:
        """For each leaf, the condition under which the diagram comes to it."""
        if isinstance(node, Leaf):
            return {node: self.true}
        found = self._parts.get(id(node))
        if found is None:
            assert isinstance(node, Branch)
            below = [self._partition(child) for child in node.children]
            order = dict.fromkeys(leaf for part in below for leaf in part)
            found = {
                leaf: self.branch(node.guard, tuple(part.get(leaf, self.false) for part in below)) for leaf in order
            }
            self._parts[id(node)] = found
        return found

    def is_bigger(self, node: Node, most: int) -> bool:
        """Whether a diagram has more than so many nodes."""
        key = (id(node), most)
        if key not in self._sizes:
            seen: set[int] = set()
            waiting = [node]
            while waiting and len(seen) <= most:
                at = waiting.pop()
                if id(at) not in seen:
                    seen.add(id(at))
                    waiting += getattr(at, "children", ())
            self._sizes[key] = len(seen) > most
        return self._sizes[key]

    def cubes(self, condition: Node) -> Iterator[dict[str, tuple[str, ...]]]:
        """The condition as alternatives: for each, the guards it names and the values they may have."""
        if condition is self.true:
            yield {}
        elif isinstance(condition, Branch):
            together: dict[int, list[str]] = {}
            by_id: dict[int, Node] = {}
            for value, child in zip(condition.guard.values, condition.children, strict=True):
                if child is not self.false:
                    together.setdefault(id(child), []).append(value)
                    by_id[id(child)] = child
            for key, values in together.items():
                for cube in self.cubes(by_id[key]):
                    yield {condition.guard.key: tuple(values), **cube}


def support(node: Node) -> set[str]:
    """Keys of the guards that a diagram depends on."""
    seen: set[int] = set()
    found: set[str] = set()

    def walk(at: Node) -> None:
        if isinstance(at, Branch) and id(at) not in seen:
            seen.add(id(at))
            found.add(at.guard.key)
            for child in at.children:
                walk(child)

    walk(node)
    return found


def leaves(node: Node) -> list[Leaf]:
    """The leaves that a diagram can reach, each once, in order of first appearance."""
    seen: set[int] = set()
    found: list[Leaf] = []

    def walk(at: Node) -> None:
        if id(at) in seen:
            return
        seen.add(id(at))
        if isinstance(at, Leaf):
            found.append(at)
        else:
            assert isinstance(at, Branch)
            for child in at.children:
                walk(child)

    walk(node)
    return found


def _top(*nodes: Node) -> Guard:
    return min(nodes, key=lambda n: n.order).guard  # type: ignore[attr-defined, no-any-return]


def _split(node: Node, order: int, count: int) -> tuple[Node, ...]:
    return node.children if node.order == order else (node,) * count  # type: ignore[attr-defined]


def _child(node: Node, guard: Guard, index: int) -> Node:
    return node.children[index] if node.mask and node.guard is guard else node  # type: ignore[attr-defined]
