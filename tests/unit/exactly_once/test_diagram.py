"""Decision diagrams: canonical, reduced, and right on every assignment."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sleuth.tools.inside.exactly_once.diagram import Branch, Diagrams, Leaf, Node

GUARDS = {"a": ("true", "false"), "b": ("x", "y", "z"), "c": ("true", "false")}


def evaluate(node: Node, world: dict[str, str]) -> object:
    """The value of a diagram in one world."""
    while isinstance(node, Branch):
        node = node.children[node.guard.values.index(world[node.guard.key])]
    assert isinstance(node, Leaf)
    return node.value


def worlds() -> list[dict[str, str]]:
    return [dict(zip(GUARDS, values, strict=True)) for values in itertools.product(*GUARDS.values())]


def built(d: Diagrams, values: list[int]) -> Node:
    """The diagram with these values, one a world."""
    result: Node = d.leaf(values[-1])
    for world, value in zip(worlds(), values, strict=True):
        holds: Node = d.true
        for key, is_ in world.items():
            holds = d.both(holds, d.test(d.guard(key, GUARDS[key]), is_))
        result = d.ite(holds, d.leaf(value), result)
    return result


@settings(max_examples=60, derandomize=True)
@given(st.lists(st.integers(0, 2), min_size=12, max_size=12), st.lists(st.integers(0, 1), min_size=12, max_size=12))
def test_operations_agree_with_every_world(values: list[int], mask: list[int]) -> None:
    d = Diagrams()
    node, condition = built(d, values), d.map(bool, built(d, mask))
    for world, value, keep in zip(worlds(), values, mask, strict=True):
        assert evaluate(node, world) == value
        assert evaluate(d.map2(lambda x, y: (x, y), node, condition), world) == (value, bool(keep))
        if keep:
            assert evaluate(d.under(condition, node), world) == value
    parts = d.values(node, condition)
    for world, value, keep in zip(worlds(), values, mask, strict=True):
        holding = [v for v, where in parts if evaluate(where, world)]
        assert holding == ([value] if keep else [])


@settings(max_examples=40, derandomize=True)
@given(st.lists(st.integers(0, 1), min_size=12, max_size=12))
def test_cubes_cover_a_condition_and_nothing_else(mask: list[int]) -> None:
    d = Diagrams()
    condition = d.map(bool, built(d, mask))
    for world, keep in zip(worlds(), mask, strict=True):
        covered = any(all(world[key] in values for key, values in cube.items()) for cube in d.cubes(condition))
        assert covered == bool(keep)


def test_equal_diagrams_are_one_object() -> None:
    d = Diagrams()
    a, c = d.test(d.guard("a")), d.test(d.guard("c"))
    assert d.both(a, c) is d.both(c, a)
    assert d.either(a, d.negate(a)) is d.true
    assert d.ite(a, c, c) is c


@pytest.mark.parametrize("most", [1, 2, 5])
def test_size(most: int) -> None:
    d = Diagrams()
    both = d.both(d.test(d.guard("a")), d.test(d.guard("c")))
    assert d.is_bigger(both, most) == (most < 4)
