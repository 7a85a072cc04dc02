"""Where to begin: the classes and functions in which a factor enters a forward pass."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from ..fail import InsideError
from .engine import Engine
from .program import Class, Function, Program

FORWARDS = ("forward", "__call__", "call")


@dataclass(frozen=True)
class Entry:
    """One method (of a class built by its constructor) or function to follow."""

    function: Function

    @property
    def name(self) -> str:
        """`path::Class.method`."""
        return f"{self.function.module.path}::{self.function.qualname}"


def named(program: Program, engine: Engine, text: str) -> list[Entry]:
    """The entries that `path`, `path::Class`, `path::Class.method`, `Class` or `Class.method` mean.

    Raises:
        InsideError: nothing of that name is in the tree.
    """
    path, _, symbol = text.rpartition("::")
    if not path and text.endswith(".py"):
        path, symbol = text, ""
    if path:
        module = program.module(program.tree.require(path))
        if module is None:
            raise InsideError(f"{path}: can't be read")
        return _in_module(module.path, symbol, program, engine, text)
    head = symbol.split(".")[0]
    needle = re.compile(rb"^(class|def|async def)[ \t]+" + re.escape(head).encode() + rb"\b", re.MULTILINE)
    for source in program.texts.holding(head.encode()):
        if needle.search(program.texts.data(source)):
            return _in_module(source, symbol, program, engine, text)
    raise InsideError(f"{text}: no class or function of that name at the top level of a file of the tree")


def _in_module(path: str, symbol: str, program: Program, engine: Engine, text: str) -> list[Entry]:
    module = program.module(path)
    assert module is not None
    if not symbol:
        return in_file(path, program, engine)
    owner, _, method = symbol.partition(".")
    made = program.top_level(path, owner)
    if made is None:
        near = ", ".join(sorted(module.chunks)[:12])
        raise InsideError(f"{text}: {path} has no {owner!r} at its top level; it has {near or 'nothing'}")
    if isinstance(made, Function):
        return [Entry(made)]
    if not method:
        return of_class(made, engine)
    function = engine.method(made, method)
    if function is None:
        raise InsideError(f"{text}: {owner} has no method {method!r}; it has {', '.join(sorted(made.functions))}")
    return [Entry(Function(function.module, function.node, made))]


def in_file(path: str, program: Program, engine: Engine) -> list[Entry]:
    """Entries of a file: classes and functions that mention the factor."""
    module = program.module(path)
    found: list[Entry] = []
    for chunks in module.chunks.values() if module else []:
        chunk = chunks[-1]
        if not re.search(rf"\b{re.escape(engine.factor)}\b", chunk.text):
            continue
        made = program.definition(module, chunk) if module else None
        if isinstance(made, Class) and not made.is_record:
            found += of_class(made, engine)
        elif isinstance(made, Function) and not made.is_kernel:
            found.append(Entry(made))
    return found


def of_class(owner: Class, engine: Engine) -> list[Entry]:
    """A class's forward method, and the methods that mention the factor and aren't reached from it."""
    own = {name: f for at in reversed(engine.lineage(owner)) for name, f in at.functions.items()}
    reached: set[str] = set()
    waiting = [n for n in FORWARDS if n in own][:1]
    found = [Entry(Function(own[n].module, own[n].node, owner)) for n in waiting]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        waiting += [n for n in own if re.search(rf"\b{re.escape(n)}\b", own[name].text) and n not in reached]
    mention = re.compile(rf"\b{re.escape(engine.factor)}\b")
    for name, function in own.items():
        if name in reached or name.startswith("__") or (name in owner.functions and _sets_only(function)):
            continue
        if mention.search(function.text):
            found.append(Entry(Function(function.module, function.node, owner)))
    return found


def _sets_only(function: Function) -> bool:
    """Whether a method returns nothing and changes only attributes: a loader or a constructor's helper."""
    returns = any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(function.node))
    return not returns and bool(
        re.match(r"(load|create|process|post_load|init|build|set)_?", function.name.lstrip("_"))
    )


def everywhere(program: Program, engine: Engine) -> list[Entry]:
    """Classes that read the factor from a configuration and have a forward method."""
    reads = re.compile(
        rf"(\w*(config|cfg|args|params)\w*\.{re.escape(engine.factor)}\b)|(getattr\([^)]*['\"]{re.escape(engine.factor)}['\"])"
        rf"|(\w*config\w*(\.get\(|\[)['\"]{re.escape(engine.factor)}['\"])"
    )
    word = re.compile(rf"\b{re.escape(engine.factor)}\b".encode())
    found: list[Entry] = []
    for path in program.texts.holding(engine.factor.encode()):
        module = program.module(path) if word.search(program.texts.data(path)) else None
        for chunks in module.chunks.values() if module else []:
            if chunks[-1].kind == "class" and reads.search(chunks[-1].text):
                made = program.definition(module, chunks[-1]) if module else None
                if isinstance(made, Class) and not made.is_record and any(engine.method(made, f) for f in FORWARDS):
                    found += of_class(made, engine)
    return found
