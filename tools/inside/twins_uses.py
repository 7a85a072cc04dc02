"""What one way of doing a job does to each name, and under which settings; helpers of the same file are followed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .definitions import Function
from .frames import Frame, frames, guards, show
from .imports import dotted_parts
from .twins_code import Code, Routine, Sign, Signs
from .twins_groups import Group, Member
from .usage import usage

EFFECTS = ("multiply", "divide", "reduces", "computes", "assertion")
"""Kinds of use that change what is computed, or refuse to compute it."""

REDUCES = re.compile(
    r"^(?!_?(?:should|is|can|use|need|skip|has|get|no)_).*(?:all_?reduce|reduce_?scatter|all_?gather|all_?to_?all|psum|broadcast$)"
)
LOOKS = frozenset("getattr hasattr isinstance setattr super type id print repr str len".split())
"""Builtins that look at `self`, or name it, and do no job for it."""
COMPUTES = frozenset(
    "softmax log_softmax sigmoid tanh exp log clamp clamp_ masked_fill masked_fill_ softplus sqrt rsqrt silu gelu relu "
    "round float half bfloat16 double normalize mul_ div_ where".split()
)
FOLLOWED = 3
"""How deep calls of the same file's functions are followed."""
MOST_USES = 4_000


@dataclass(frozen=True)
class Use:
    """One thing a member does with a name.

    Attributes:
        subject: the last part of `self.a.b`, a parameter, a module-level name, or the function called.
        kind: multiply, divide, reduces, computes, assertion, passed, condition, called or read.
        guards: conditions it runs under, outermost first, those around the call of its helper included.
        signs: the settings that those ask about.
    """

    subject: str
    kind: str
    line: int
    text: str
    guards: tuple[str, ...]
    signs: frozenset[Sign]


@dataclass
class Doings:
    """Everything a member does.

    Attributes:
        uses: in source order.
        asserted: settings it asserts, by which it refuses what others guard against.
        around: settings asked about around every call of the member in its file.
        choice: settings it asks about before it hands the whole job to another member of its group.
        hands_self: the functions outside the file that it gives `self` to: what those do isn't seen.
        names: every identifier in it and in the helpers followed.
    """

    uses: list[Use] = field(default_factory=list)
    asserted: set[str] = field(default_factory=set)
    around: set[str] = field(default_factory=set)
    choice: set[str] = field(default_factory=set)
    hands_self: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)


def doings(code: Code, member: Member, group: Group) -> Doings:
    """What all routines of a member of a group do, helpers included."""
    found = Doings()
    own = {routine.qualname for routine in member.routines}
    twins = {routine.qualname for each in group.members for routine in each.routines} - own
    for routine in member.routines:
        _Walk(code, found, own).walk(routine, {}, (), frozenset(), 0)
        found.choice |= set().union(*_calls_of(code, routine, twins))
    callers = [r for r in code.routines.values() if r.qualname not in own]
    each = [signs for caller in callers for signs in _calls_of(code, caller, own)]
    found.around = set.intersection(*each) if each else set()
    return found


def _calls_of(code: Code, caller: Routine, wanted: set[str]) -> Iterator[set[str]]:
    """For each call of one of some routines, the settings asked about around it."""
    if not _names(caller.node) & {name.rpartition(".")[2] for name in wanted}:
        return
    for frame in _all_frames(code, caller):
        called = code.called(caller, frame.node.func) if isinstance(frame.node, ast.Call) else None
        if called is not None and called.qualname in wanted:
            yield {name for name, _ in Signs(code, caller).of(deep_guards(frame))}


def _names(node: ast.AST) -> set[str]:
    return {
        n.attr if isinstance(n, ast.Attribute) else n.id
        for n in ast.walk(node)
        if isinstance(n, (ast.Attribute, ast.Name))
    }


def _all_frames(code: Code, routine: Routine) -> Iterator[Frame]:
    node = routine.node
    lines = list(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    yield from frames([Frame(each, "body", Frame(node, "", None)) for each in node.body], lines)


def deep_guards(frame: Frame) -> list[str]:
    """Conditions up to the outermost function: those around a function inside a function count for what it does."""
    found: list[str] = []
    at: Frame | None = frame
    while at is not None:
        found = [*guards(at), *found]
        at = next((f for f in at.ancestors() if isinstance(f.node, (*Function, ast.Lambda)) and f.up is not None), None)
    return list(dict.fromkeys(found))


class _Walk:
    """One pass over a member and the helpers it calls."""

    def __init__(self, code: Code, found: Doings, seen: set[str]) -> None:
        self.code, self.found, self.seen = code, found, set(seen)

    def walk(
        self, routine: Routine, bound: dict[str, ast.expr], outer: tuple[str, ...], signs: frozenset[Sign], depth: int
    ) -> None:
        reader = Signs(self.code, routine, bound)
        every = list(_all_frames(self.code, routine))
        aliases = self._aliases(every, routine)
        for frame in every:
            if len(self.found.uses) >= MOST_USES:
                return
            node = frame.node
            if isinstance(node, ast.Attribute):
                self.found.names.add(node.attr)
            elif isinstance(node, ast.Name):
                self.found.names.add(node.id)
            for subject, kind, text in self._here(frame, routine, bound, aliases):
                near = deep_guards(frame)
                all_signs = frozenset(reader.of(near)) | signs
                use = Use(subject, kind, getattr(node, "lineno", 0), text, (*outer, *near), all_signs)
                self.found.uses.append(use)
            if isinstance(node, ast.Assert):
                self.found.asserted |= {name for name, _ in reader.of([show(node.test, 1_000)])}
            if isinstance(node, ast.Call):
                self._follow(frame, node, routine, reader, bound, outer, signs, depth)

    def _here(
        self, frame: Frame, routine: Routine, bound: dict[str, ast.expr], aliases: dict[str, str]
    ) -> Iterator[tuple[str, str, str]]:
        node = frame.node
        if isinstance(node, ast.Call):
            yield from self._called(node)
            return
        subject = self._subject(frame, routine, bound, aliases)
        if subject:
            for kind, detail in usage(frame).uses:
                yield subject, kind, detail

    def _called(self, node: ast.Call) -> Iterator[tuple[str, str, str]]:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if REDUCES.search(name):
            yield name, "reduces", show(node)
        elif name in COMPUTES:
            yield name, "computes", show(node)

    def _subject(self, frame: Frame, routine: Routine, bound: dict[str, ast.expr], aliases: dict[str, str]) -> str:
        """The name by which twins are compared; empty for locals that stand for nothing else."""
        node = frame.node
        if frame.up is not None and isinstance(frame.up.node, ast.Attribute):
            return ""
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            parts = dotted_parts(node)
            called = frame.field == "func"
            # `self.factor.to(x)` is about the factor, `self.gate(x)` about the gate.
            kept = parts[:-1] if called and len(parts) > 2 and parts[0] in ("self", "cls") else parts
            return kept[-1] if len(kept) > 1 else ""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if node.id in bound:
                parts = dotted_parts(bound[node.id])
                return parts[-1] if parts else node.id
            if node.id in aliases:
                return aliases[node.id]
            known = node.id in routine.parameters or node.id in self.code.globals
            return node.id if known and node.id not in ("self", "cls") else ""
        return ""

    def _aliases(self, every: list[Frame], routine: Routine) -> dict[str, str]:
        """Local names that stand for the same value as an attribute of self."""
        found: dict[str, str] = {}
        for frame in every:
            if isinstance(frame.node, ast.Attribute) and isinstance(frame.node.ctx, ast.Load):
                subject = self._subject(frame, routine, {}, {})
                if subject and dotted_parts(frame.node)[:1] == ["self"]:
                    found |= dict.fromkeys(usage(frame).aliases, subject)
        return found

    def _follow(
        self,
        frame: Frame,
        node: ast.Call,
        routine: Routine,
        reader: Signs,
        bound: dict[str, ast.expr],
        outer: tuple[str, ...],
        signs: frozenset[Sign],
        depth: int,
    ) -> None:
        target = self.code.called(routine, node.func)
        if target is None:
            given = any(isinstance(a, ast.Name) and a.id == "self" for a in node.args)
            if given and routine.owner and dotted_parts(node.func)[-1:] not in [[name] for name in LOOKS]:
                self.found.hands_self.append(f"{show(node.func)} at line {node.lineno}")
            return
        if target.qualname in self.seen or depth >= FOLLOWED:
            return
        self.seen.add(target.qualname)
        near = deep_guards(frame)
        self.walk(
            target,
            _arguments(target, node, bound),
            (*outer, *near),
            signs | frozenset(reader.of(near)),
            depth + 1,
        )
        self.seen.discard(target.qualname)


def _arguments(target: Routine, node: ast.Call, bound: dict[str, ast.expr]) -> dict[str, ast.expr]:
    """What a call gives each parameter, in the words of the outermost caller where those are known."""
    names = target.parameters
    if target.owner and isinstance(node.func, ast.Attribute) and names[:1] in (["self"], ["cls"]):
        names = names[1:]
    given = dict(zip(names, node.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    said = {}
    for name, value in given.items():
        if isinstance(value, ast.Starred):
            break
        said[name] = bound.get(value.id, value) if isinstance(value, ast.Name) else value
    return said
