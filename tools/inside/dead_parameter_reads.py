"""What a function does with each parameter it accepts: uses it, merely looks at it, overwrites it, or nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from .definitions import Function
from .frames import Frame, frames
from .imports import dotted_parts
from .twins_code import Routine, without_docstring

REAL_DUNDERS = frozenset("__init__ __call__ __new__ __post_init__".split())
SAYS_NOTHING = frozenset(
    "debug info warning warn error exception critical log print log_once warning_once info_once".split()
)
SHAPE_ONLY = ("fake", "meta", "abstract")
"""Words in names and decorators of functions that only tell a compiler the shape of a result."""


@dataclass
class Parameter:
    """One parameter and its fate.

    Attributes:
        state: read, checked (only asserted, logged or tested before an error), overwritten, or never.
        uses: lines where it is mentioned.
        stored: attributes of self that it is stored as, when nothing else is done with it.
    """

    name: str
    line: int
    state: str
    uses: list[int] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)


@lru_cache(maxsize=4096)
def parameters(routine: Routine) -> list[Parameter]:
    """The fate of each parameter, `self` and those that are unused on purpose left out."""
    given = routine.node.args
    names = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    if routine.owner and not _is_static(routine):
        names = names[1:] if names and not _is_keyword_only(routine, names[0]) else names
    every = _frames(routine)
    found = [_fate(routine, each.arg, each.lineno, every) for each in names if not _on_purpose(each.arg)]
    return [each for each in found if each is not None]


def swallowed(routine: Routine) -> Parameter | None:
    """`**kwargs` that are accepted and never looked at."""
    given = routine.node.args.kwarg
    if given is None or _on_purpose(given.arg):
        return None
    fate = _fate(routine, given.arg, given.lineno, _frames(routine))
    return fate if fate is not None and fate.state == "never" else None


def _is_static(routine: Routine) -> bool:
    return any(dotted_parts(each)[-1:] == ["staticmethod"] for each in routine.node.decorator_list)


def _is_keyword_only(routine: Routine, first: ast.arg) -> bool:
    return first in routine.node.args.kwonlyargs


def _on_purpose(name: str) -> bool:
    return name.startswith("_") or "unused" in name or name in ("self", "cls", "ctx", "dummy")


@lru_cache(maxsize=8)
def _frames(routine: Routine) -> list[Frame]:
    node = routine.node
    lines = list(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    top = Frame(node, "", None)
    return list(frames([Frame(each, "body", top) for each in without_docstring(node.body)], lines))


def _fate(routine: Routine, name: str, line: int, every: list[Frame]) -> Parameter | None:
    mentions = [f for f in every if isinstance(f.node, ast.Name) and f.node.id == name and not _shadowed(f, name)]
    if any(isinstance(f.node, ast.Name) and isinstance(f.node.ctx, ast.Del) for f in mentions):
        return None
    loads = [f for f in mentions if isinstance(getattr(f.node, "ctx", None), ast.Load)]
    loads += [f for f in every if isinstance(f.node, ast.AugAssign) and dotted_parts(f.node.target) == [name]]
    uses = sorted({getattr(f.node, "lineno", 0) for f in loads})
    written = _overwritten(routine, name)
    if written is not None and all(line > written for line in uses):
        return Parameter(name, line, "overwritten", [written])
    live = [f for f in loads if not _unreachable(f)]
    real = [f for f in live if not _idle(f)]
    state = "read" if real else "checked" if loads else "never"
    stored = [_stored(f) for f in real]
    return Parameter(name, line, state, uses, [s for s in stored if s] if all(stored) else [])


def _shadowed(frame: Frame, name: str) -> bool:
    """Inside a function of its own that takes a parameter of the same name."""
    inner = frame
    for outer in frame.ancestors():
        if isinstance(outer.node, (*Function, ast.Lambda)) and outer.up is not None and inner.field == "body":
            given = outer.node.args
            taken = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            if any(each is not None and each.arg == name for each in taken):
                return True
        inner = outer
    return False


def _overwritten(routine: Routine, name: str) -> int | None:
    """Line of a plain assignment, in the function's own block, of something that doesn't come from the parameter."""
    for statement in without_docstring(routine.node.body):
        if isinstance(statement, ast.Assign) and any(dotted_parts(t) == [name] for t in statement.targets):
            used = any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(statement.value))
            return None if used else statement.lineno
        if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(statement)):
            return None
    return None


def _idle(frame: Frame) -> bool:
    """Whether a read has no part in what is computed: an assertion, a log line, an error, a bare name, `_ = x`."""
    inner = frame
    for outer in frame.ancestors():
        node = outer.node
        if isinstance(node, (ast.Assert, ast.Raise)) or (isinstance(node, ast.Call) and _says(node)):
            return True
        if isinstance(node, ast.If) and inner.field == "test":
            return not node.orelse and all(_is_harmless(each) for each in node.body)
        if isinstance(node, ast.Expr) and inner.node is node.value:
            return isinstance(inner.node, (ast.Name, ast.Attribute, ast.Tuple, ast.Compare))
        if isinstance(node, ast.Assign) and inner is frame:
            return all(isinstance(t, ast.Name) and t.id in ("_", getattr(frame.node, "id", "")) for t in node.targets)
        if isinstance(node, ast.stmt):
            return False
        inner = outer
    return False


def _says(call: ast.Call) -> bool:
    parts = dotted_parts(call.func)
    spoken = parts[:1] in (["logger"], ["logging"], ["warnings"], ["log"], ["print"], ["log_once"])
    return bool(parts) and (spoken or parts[-1] in SAYS_NOTHING) and parts[-1] != "log"


def _is_harmless(statement: ast.stmt) -> bool:
    """A statement that computes nothing: raise, pass, a log line, an assertion."""
    said = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and _says(statement.value)
    return said or isinstance(statement, (ast.Raise, ast.Pass, ast.Assert))


def _unreachable(frame: Frame) -> bool:
    """After a statement that always leaves, or under a condition that is literally false."""
    inner = frame
    for outer in frame.ancestors():
        block = getattr(outer.node, inner.field, None)
        if isinstance(block, list) and inner.node in block:
            earlier = block[: block.index(inner.node)]
            if any(isinstance(each, (ast.Return, ast.Raise, ast.Continue, ast.Break)) for each in earlier):
                return True
        test = getattr(outer.node, "test", None)
        never = isinstance(test, ast.Constant) and inner.field == ("orelse" if test.value else "body")
        if never and isinstance(outer.node, (ast.If, ast.IfExp, ast.While)):
            return True
        inner = outer
    return False


def _stored(frame: Frame) -> str:
    """The attribute of self that a read only stores the value as; empty otherwise."""
    inner = frame
    for outer in frame.ancestors():
        node = outer.node
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and inner.field == "value":
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = dotted_parts(targets[0])
            return parts[1] if len(targets) == 1 and len(parts) == 2 and parts[0] == "self" else ""
        kept = isinstance(node, (ast.BoolOp, ast.IfExp)) or (isinstance(node, ast.Call) and inner.field == "args")
        cast = not isinstance(node, ast.Call) or dotted_parts(node.func)[-1:] in (["float"], ["int"], ["bool"], ["str"])
        if not kept or not cast:
            return ""
        inner = outer
    return ""


def exempt(routine: Routine) -> str:
    """Why nothing follows from a parameter that the function doesn't use; empty when something does."""
    name, body = routine.name, without_docstring(routine.node.body)
    decorators = [".".join(dotted_parts(d.func if isinstance(d, ast.Call) else d)) for d in routine.node.decorator_list]
    lasts = [each.rpartition(".")[2] for each in decorators]
    if name.startswith("__") and name.endswith("__") and name not in REAL_DUNDERS:
        return "Python's own interface"
    if {"overload", "abstractmethod", "override"} & set(lasts) or any(each.endswith(".setter") for each in decorators):
        return "declared as an interface"
    if any(word in part for part in (name, *lasts) for word in SHAPE_ONLY):
        return "only tells a compiler the shape of a result"
    if _is_stub(body):
        return "a stub"
    return "reads all its names at once" if _reads_all(routine.node) else ""


def _is_stub(body: Sequence[ast.stmt]) -> bool:
    if not body or isinstance(body[0], (ast.Raise, ast.Pass)):
        return True
    only = body[0] if len(body) == 1 else None
    if isinstance(only, ast.Return):
        names = [n for n in ast.walk(only) if isinstance(n, (ast.Name, ast.Attribute, ast.Call))]
        return not names
    return isinstance(only, ast.Expr) and isinstance(only.value, ast.Constant)


def _reads_all(node: ast.AST) -> bool:
    calls = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
    return any(isinstance(f, ast.Name) and f.id in ("locals", "vars", "eval", "exec") for f in calls)


def attribute_loads(nodes: Iterator[ast.AST]) -> set[str]:
    """Attributes that are read somewhere below some nodes, and texts that could name one."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            found.add(node.attr)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute):
            found.add(node.target.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            found.add(node.value)
        elif isinstance(node, ast.MatchClass):
            found |= set(node.kwd_attrs)
    return found
