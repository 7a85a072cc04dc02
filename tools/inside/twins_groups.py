"""Which functions of a file do the same job in different ways: by how they are chosen, and by how they are named."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .imports import dotted_parts
from .twins_code import Code, Routine, own_nodes

PLATFORMS = frozenset(
    "cuda gpu hip rocm npu ascend cpu xpu musa hpu tpu mps metal amx aiter gfx95 hopper blackwell "
    "sm80 sm90 sm100 sm120".split()
)
WAYS = frozenset(
    "native torch eager graph graphs cudagraph capture replay compiled compile inductor normal default dual stream "
    "single multi deepep mooncake tbo sbo overlap overlapped two batch async sync fast slow naive ref reference "
    "fallback impl triton cutlass cutedsl flashinfer trtllm marlin deepgemm cublas fused unfused opt optimized "
    "vectorized chunked paged jit v1 v2 v3 fp8 fp4 bf16 fp16 int8 int4 nvfp4 mxfp4 mxfp8".split()
)
PHASES = frozenset("prefill extend decode verify mixed idle".split())
VARIANTS = PLATFORMS | WAYS | PHASES
"""Words of a name that say how a job is done, not which."""

COMMON_BASES = frozenset(
    "object Module ABC Protocol Enum IntEnum StrEnum Generic NamedTuple TypedDict BaseModel Exception RuntimeError "
    "ValueError Function Struct Thread Process dict list tuple str int".split()
)
"""Bases that say nothing about what their classes do."""

MOST_MEMBERS = 40
MOST_BRANCHES = 60
"""Branches of one choice; only made-up code has more."""


@dataclass(eq=False)
class Member:
    """One way of doing a group's job: a function, or several that are its steps."""

    name: str
    routines: list[Routine]

    @property
    def line(self) -> int:
        """Where it begins."""
        return self.routines[0].node.lineno

    @property
    def body_text(self) -> str:
        """Its code, by which a renamed one is known again."""
        return "\n".join(each.body_text for each in self.routines)


@dataclass(eq=False)
class Group:
    """Functions that do the same job.

    Attributes:
        path: file of the members.
        why: how they were found.
        close: they stand in one class or module; else in sibling classes, which differ for more reasons.
    """

    path: str
    why: str
    members: list[Member] = field(default_factory=list)
    close: bool = True

    @property
    def key(self) -> tuple[str, ...]:
        """The members' names, which tell groups apart."""
        return tuple(sorted(member.name for member in self.members))


def groups_of(code: Code) -> list[Group]:
    """Every group of two or more members in one file, those of one scope first."""
    found: list[Group] = []
    for owner in ("", *code.bases):
        found += _in_scope(code, owner)
    found += _across_classes(code)
    return [g for g in found if 2 <= len(g.members) <= MOST_MEMBERS]


def _in_scope(code: Code, owner: str) -> list[Group]:
    scope = code.scope(owner)
    sets: list[tuple[set[str], str]] = _by_choice(code, scope) + _by_name(code, scope)
    merged: list[tuple[set[str], list[str]]] = []
    for names, why in sets:
        joined, reasons = set(names), [why]
        for other in [m for m in merged if m[0] & joined]:
            joined |= other[0]
            reasons = other[1] + reasons
            merged.remove(other)
        merged.append((joined, reasons))
    groups = [_group(code, scope, names, "; ".join(dict.fromkeys(reasons))) for names, reasons in merged]
    return _with_steps(code, scope, groups)


def _group(code: Code, scope: dict[str, Routine], names: set[str], why: str) -> Group:
    members = [Member(r.qualname, [r]) for n, r in scope.items() if n in names]
    return Group(code.path, why, sorted(members, key=lambda m: m.line))


def stem(name: str) -> tuple[str, ...]:
    """The words of a name that say which job is done."""
    words = [word for word in name.lower().split("_") if word]
    return tuple(word for word in words if word not in VARIANTS)


def _by_name(code: Code, scope: dict[str, Routine]) -> list[tuple[set[str], str]]:
    by_stem: dict[tuple[str, ...], list[Routine]] = {}
    for name, routine in scope.items():
        if not (name.startswith("__") and name.endswith("__")) and stem(name):
            by_stem.setdefault(stem(name), []).append(routine)
    found = []
    for words, routines in by_stem.items():
        plain = [r for r in routines if not VARIANTS & set(r.name.lower().split("_"))]
        # The one without a variant in its name is the choice between the others when it calls one of them.
        doing = [
            r for r in routines if r not in plain or not _calls(code, r) & {o.name for o in routines if o is not r}
        ]
        if len(doing) > 1:
            found.append(({r.name for r in doing}, f"their names differ only in how: {'_'.join(words)}"))
    return found


def _calls(code: Code, routine: Routine) -> set[str]:
    """Names of the file's routines that one calls."""
    calls = (node.func for node in ast.walk(routine.node) if isinstance(node, ast.Call))
    return {found.name for call in calls if (found := code.called(routine, call)) is not None}


def _by_choice(code: Code, scope: dict[str, Routine]) -> list[tuple[set[str], str]]:
    """Functions between which one statement of the same scope chooses."""
    found = []
    for routine in scope.values():
        for branches in alternatives(routine.node):
            named = [_result_calls(code, routine, branch) & set(scope) - {routine.name} for branch in branches]
            alone = [names for names in named if names]
            if len(alone) > 1 and len(set().union(*alone)) > 1 and not set.intersection(*alone):
                line = getattr(branches[0][0], "lineno", routine.node.lineno) - 1
                found.append((set().union(*alone), f"{routine.qualname} chooses between them near line {line}"))
    return found


def alternatives(function: ast.AST) -> Iterator[list[Sequence[ast.AST]]]:
    """The branches of every choice in a function: of `if` chains, ternaries, and early returns with what follows."""
    for node in own_nodes(function):
        if isinstance(node, ast.IfExp):
            yield [[node.body], [node.orelse]]
    for block in _blocks(function):
        index = 0
        while index < len(block):
            statement = block[index]
            index += 1
            if isinstance(statement, ast.If):
                branches, taken = chain(statement, block[index:])
                index += taken
                yield branches


def chain(first: ast.If, rest: Sequence[ast.stmt]) -> tuple[list[Sequence[ast.AST]], int]:
    """The branches of an `if` chain, of early returns that follow it, and what remains; how many of `rest` it took."""
    branches, goes_on = _own_branches(first)
    taken = 0
    while goes_on and taken < len(rest) and len(branches) < MOST_BRANCHES:
        following = rest[taken]
        if not isinstance(following, ast.If):
            branches.append(rest[taken:])
            break
        own, goes_on = _own_branches(following)
        if not goes_on:
            branches.append(rest[taken:])
            break
        branches += own
        taken += 1
    return branches, taken


def _own_branches(first: ast.If) -> tuple[list[Sequence[ast.AST]], bool]:
    """The branches of one `if` with its `elif`s and `else`; whether what follows is one more, since all these leave."""
    branches: list[Sequence[ast.AST]] = [first.body]
    tail = first.orelse
    while len(tail) == 1 and isinstance(tail[0], ast.If):
        branches.append(tail[0].body)
        tail = tail[0].orelse
    if tail:
        return [*branches, tail], False
    return branches, all(isinstance(branch[-1], (ast.Return, ast.Raise)) for branch in branches)


def _blocks(function: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in (function, *own_nodes(function)):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            # An `elif` belongs to the chain that it continues.
            continued = name == "orelse" and isinstance(node, ast.If) and len(block or []) == 1
            if isinstance(block, list) and not (continued and isinstance(block[0], ast.If)):
                yield block


def _result_calls(code: Code, routine: Routine, branch: Sequence[ast.AST]) -> set[str]:
    """Routines whose result a branch returns, assigns or is, and those it picks without calling."""
    values: list[ast.AST | None] = []
    for statement in branch[-1:] if len(branch) < 4 else branch[-2:]:
        if isinstance(statement, (ast.Return, ast.Assign, ast.AnnAssign, ast.Expr)):
            values.append(statement.value)
        elif isinstance(statement, ast.expr):
            values.append(statement)
    found = set()
    for value in values:
        inner = value.value if isinstance(value, ast.Await) else value
        picked = inner.func if isinstance(inner, ast.Call) else inner
        target = code.called(routine, picked) if picked is not None else None
        if target is not None and target.owner == routine.owner:
            found.add(target.name)
    return found


def _with_steps(code: Code, scope: dict[str, Routine], groups: list[Group]) -> list[Group]:
    """Methods that hand one state object from step to step are, together, one more way of the class's largest job."""
    forward = [g for g in groups if g.members[0].name.rpartition(".")[2].lstrip("_").startswith("forward")]
    for prefix, steps in _step_families(scope).items():
        own = {routine.name for routine in steps}
        groups = [g for g in groups if not own >= {n.rpartition(".")[2] for n in g.key}]
        hosts = [g for g in forward if g in groups] or groups
        alone = scope.get("forward") or scope.get("__call__")
        member = Member(f"{steps[0].owner}.{prefix}_*" if steps[0].owner else f"{prefix}_*", steps)
        why = f"{prefix}_* are {len(steps)} steps of one pass, handing on `{steps[0].parameters[1]}`"
        if hosts:
            host = max(hosts, key=lambda g: len(g.members))
            host.members.append(member)
            host.why += f"; {why}"
        elif alone:
            groups.append(Group(code.path, why, [Member(alone.qualname, [alone]), member]))
    return groups


def _step_families(scope: dict[str, Routine]) -> dict[str, list[Routine]]:
    """Three or more methods of one prefix that take just the one same object and keep their results in it."""
    by_prefix: dict[tuple[str, str], list[Routine]] = {}
    for name, routine in scope.items():
        prefix, _, rest = name.partition("_")
        if prefix and rest and len(routine.parameters) == 2 and routine.owner:
            by_prefix.setdefault((prefix, routine.parameters[1]), []).append(routine)
    return {
        prefix: routines
        for (prefix, state), routines in by_prefix.items()
        if len(routines) > 2 and sum(_hands_on(r, state) for r in routines) > 1
    }


def _hands_on(routine: Routine, state: str) -> bool:
    for node in ast.walk(routine.node):
        parts = dotted_parts(node) if isinstance(node, ast.Attribute) else []
        if parts[:1] == [state] and (
            isinstance(getattr(node, "ctx", None), ast.Store) or parts[-1] in ("pop", "update")
        ):
            return True
    return False


def _across_classes(code: Code) -> list[Group]:
    """The same method in classes of one file that share a base."""
    by_base: dict[str, list[str]] = {}
    for owner, bases in code.bases.items():
        for base in bases:
            if base not in COMMON_BASES:
                by_base.setdefault(base, []).append(owner)
    found = []
    for base, owners in by_base.items():
        names = dict.fromkeys(name for owner in owners for name in code.scope(owner))
        for name in names:
            members = [
                Member(f"{o}.{name}", [code.routines[f"{o}.{name}"]]) for o in owners if f"{o}.{name}" in code.routines
            ]
            if len(members) > 1 and not name.startswith("__"):
                found.append(Group(code.path, f"{name} of classes that inherit {base}", members, close=False))
    return found
