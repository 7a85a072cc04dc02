"""Values that one branch of a choice hands on and a sibling branch, which calls something alike, leaves behind."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from .frames import show
from .imports import dotted_parts
from .twins_code import Code, Routine, own_nodes
from .twins_groups import alternatives, stem
from .twins_uses import LOOKS

ALIKE = 2
"""Values that the calls of two branches must share to be taken for the same job."""


@dataclass(frozen=True)
class Dropped:
    """A value that a branch leaves behind.

    Attributes:
        value: a parameter, or a dotted attribute of self or of a parameter.
        line: first line of the branch that leaves it behind, `end` its last.
        siblings: lines where other branches hand it on, and how.
        when: the branch's first statement, by which it is known again.
        read: the parts of it that the branch does read; empty when it doesn't mention it.
        shared: values that the calls of both branches take.
        most: at least half of the branches hand it on.
    """

    value: str
    line: int
    end: int
    siblings: tuple[tuple[int, str], ...]
    when: str
    read: tuple[str, ...]
    shared: tuple[str, ...]
    most: bool


@dataclass
class _Branch:
    """One branch: what it mentions, hands on, and calls for its result."""

    nodes: Sequence[ast.AST]
    mentioned: set[str] = field(default_factory=set)
    handed: dict[str, tuple[int, str]] = field(default_factory=dict)
    calls: list[ast.Call] = field(default_factory=list)
    results: set[str] = field(default_factory=set)
    away: bool = False
    """It calls methods that aren't in this file, or gives `self` away: what of self those use isn't seen."""

    @property
    def line(self) -> int:
        return getattr(self.nodes[0], "lineno", 0)

    @property
    def end(self) -> int:
        return getattr(self.nodes[-1], "end_lineno", 0) or self.line


def dropped(code: Code, routine: Routine) -> Iterator[Dropped]:
    """Every value that a branch leaves behind; a choice about the value itself is none."""
    for branches in alternatives(routine.node):
        if not isinstance(branches[0][0], ast.stmt) or len(branches) < 2:
            continue
        read = [_read(code, routine, nodes) for nodes in branches]
        outside = _outside(routine, branches)
        for branch in read:
            alike = [(other, shared) for other in read if other is not branch and (shared := _alike(branch, other))]
            yield from _left(code, routine, branch, alike, outside)


def _left(
    code: Code, routine: Routine, branch: _Branch, alike: list[tuple[_Branch, tuple[str, ...]]], outside: set[str]
) -> Iterator[Dropped]:
    for value in dict.fromkeys(value for other, _ in alike for value in other.handed):
        parts = tuple(sorted(m[len(value) + 1 :] for m in branch.mentioned if m.startswith(f"{value}.")))
        held = value in branch.mentioned | outside or _covered(value, branch.mentioned | outside)
        above = not parts and any(v.startswith(f"{value}.") for v in outside)
        unseen = branch.away and value.startswith("self.")
        if held or above or unseen or _carried(code, routine, branch, value):
            continue
        having = [(other, shared) for other, shared in alike if value in other.handed]
        siblings = tuple(other.handed[value] for other, _ in having)
        when = show(branch.nodes[0])[:80]
        most = 2 * len(having) >= len(alike) + 1
        yield Dropped(value, branch.line, branch.end, siblings, when, parts, having[0][1], most)


def _read(code: Code, routine: Routine, nodes: Sequence[ast.AST]) -> _Branch:
    branch = _Branch(nodes)
    branch.mentioned = {value for _, value in _values(routine, nodes)}
    for top in nodes:
        for node in (top, *own_nodes(top)):
            if isinstance(node, ast.Call):
                branch.calls.append(node)
                _hand(routine, branch, node)
            elif isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, (ast.Mult, ast.Div)):
                sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.value]
                for side in sides:
                    if name := _value(routine, side):
                        branch.handed.setdefault(name, (node.lineno, show(node)))
    branch.results = _results(nodes)
    _enter(code, routine, branch, branch.calls, {routine.qualname})
    return branch


def _enter(code: Code, routine: Routine, branch: _Branch, calls: list[ast.Call], seen: set[str]) -> None:
    """What methods of this file that the branch calls read of self, the branch reads."""
    for call in calls:
        target = code.called(routine, call.func)
        own = dotted_parts(call.func)[:1] == ["self"] and len(dotted_parts(call.func)) == 2
        gives = any(isinstance(each, ast.Name) and each.id == "self" for each in call.args)
        looks = dotted_parts(call.func)[-1:] in [[name] for name in LOOKS]
        if target is None and (own or gives) and not looks:
            branch.away = True
        elif target is not None and target.owner and target.qualname not in seen:
            seen.add(target.qualname)
            branch.mentioned |= {v for _, v in _all_values(target) if v.startswith("self.")}
            inner = [node for node in target.nodes if isinstance(node, ast.Call)]
            _enter(code, target, branch, inner, seen)


def _hand(routine: Routine, branch: _Branch, call: ast.Call) -> None:
    if dotted_parts(call.func)[-1:] in [[name] for name in LOOKS]:
        return
    for given in (*call.args, *(keyword.value for keyword in call.keywords)):
        if name := _value(routine, given):
            branch.handed.setdefault(name, (call.lineno, f"{show(call.func)}(… {show(given)} …)"))


def _value(routine: Routine, node: ast.AST) -> str:
    """`self.a.b` or a parameter, as it is written; empty for anything else."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return node.id if node.id in routine.parameters and node.id not in ("self", "cls") else ""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        parts = dotted_parts(node)
        rooted = bool(parts) and (parts[0] == "self" or parts[0] in routine.parameters)
        return ".".join(parts) if rooted and len(parts) > 1 else ""
    return ""


def _values(routine: Routine, tops: Sequence[ast.AST]) -> Iterator[tuple[ast.AST, str]]:
    """Every value as it is written in full: `self.a.b` is no mention of `self.a` as a whole."""
    inner: set[int] = set()
    for top in tops:
        for node in (top, *own_nodes(top)):
            if isinstance(node, ast.Attribute):
                inner.add(id(node.value))
            if id(node) not in inner and (value := _value(routine, node)):
                yield node, value


def _results(nodes: Sequence[ast.AST]) -> set[str]:
    """What a branch is there for: `return`, or the names that it assigns from calls."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
            found.add("return")
        elif isinstance(node, ast.Assign) and isinstance(node.value, (ast.Call, ast.Subscript, ast.Await)):
            found |= {show(target) for target in node.targets}
    return found


def _outside(routine: Routine, branches: list[Sequence[ast.AST]]) -> set[str]:
    """Values mentioned in the function outside these branches: what comes before or after reaches them all."""
    inside = {id(node) for nodes in branches for top in nodes for node in (top, *own_nodes(top))}
    return {value for node, value in _all_values(routine) if id(node) not in inside}


@lru_cache(maxsize=256)
def _all_values(routine: Routine) -> list[tuple[ast.AST, str]]:
    return list(_values(routine, routine.node.body))


def _alike(branch: _Branch, sibling: _Branch) -> tuple[str, ...]:
    """What two branches that do the same job have in common; empty when they don't look like it."""
    if not (branch.results & sibling.results and branch.calls and sibling.calls):
        return ()
    shared = tuple(sorted(_words(branch) & _words(sibling)))
    named = {stem(_last(c)) for c in branch.calls} & {stem(_last(c)) for c in sibling.calls} - {()}
    return shared if len(shared) >= ALIKE else tuple("_".join(words) for words in named)


def _words(branch: _Branch) -> set[str]:
    """Names of keywords and plain names in a branch's calls: by these two calls are told to be alike."""
    found = set()
    for call in branch.calls:
        found |= {keyword.arg for keyword in call.keywords if keyword.arg}
        found |= {n.id for given in call.args for n in ast.walk(given) if isinstance(n, ast.Name) and n.id != "self"}
    return found


def _last(call: ast.Call) -> str:
    return (dotted_parts(call.func) or [""])[-1]


def _covered(value: str, mentioned: set[str]) -> bool:
    """Whether an object that holds the value is handed on or read: `self.config` for `self.config.scale`."""
    parts = value.split(".")
    return any(".".join(parts[:n]) in mentioned for n in range(2 if parts[0] == "self" else 1, len(parts)))


def _carried(code: Code, routine: Routine, branch: _Branch, value: str) -> bool:
    """Whether the branch calls an object of self that was made with the value: `self.runner = Runner(config)`."""
    last = value.rpartition(".")[2]
    called = {parts[1] for call in branch.calls if len(parts := dotted_parts(call.func)) > 2 and parts[0] == "self"}
    return any(last in code.made_with.get((routine.owner, name), ()) for name in called)
