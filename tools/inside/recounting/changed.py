"""What a patch changes, function by function, and where a count that could tell begins."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from ..chunks import BROKEN, parse_text
from ..exactly_once.engine import Engine
from ..exactly_once.entries import FORWARDS, Entry
from ..exactly_once.program import Class, Function, Program
from ..overlay import Overlay
from ..source import Unreadable, decode

MOST_ENTRIES = 8
MOST_CALLERS = 3
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Changes:
    """The differences between two states of a patch's files.

    Attributes:
        functions: path and qualified name of every function that differs or is there on one side only.
        elsewhere: what differs outside functions, for a reader.
    """

    functions: list[tuple[str, str]] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)


def changes(before: Overlay, after: Overlay) -> Changes:
    """Compare the two states, comments, layout and docstrings apart."""
    found = Changes()
    for path in after.touched:
        if not path.endswith((".py", ".pyi")):
            found.elsewhere.append(path)
            continue
        one, other = _parts(before, path), _parts(after, path)
        if one is None or other is None:
            found.elsewhere.append(f"{path} (can't be parsed)")
            continue
        for name in dict.fromkeys([*one, *other]):
            if one.get(name) != other.get(name):
                if name.startswith("<"):
                    found.elsewhere.append(f"{path} {name}")
                else:
                    found.functions.append((path, name))
    return found


def _parts(tree: Overlay, path: str) -> dict[str, str] | None:
    """Each function's code, and under names in `<>` what stands outside functions."""
    try:
        body = parse_text(decode(tree.load(path))).body
    except Unreadable:
        return {}
    except BROKEN:
        return None
    found: dict[str, str] = {}
    _collect(body, "", found)
    return found


def _collect(body: list[ast.stmt], prefix: str, found: dict[str, str]) -> None:
    rest: list[str] = []
    for statement in body:
        if isinstance(statement, _FUNCTIONS):
            _without_docstring(statement)
            found[prefix + statement.name] = found.get(prefix + statement.name, "") + ast.dump(statement)
        elif isinstance(statement, ast.ClassDef):
            head = [*statement.bases, *statement.keywords, *statement.decorator_list]
            rest.append(statement.name + "".join(map(ast.dump, head)))
            _without_docstring(statement)
            _collect(statement.body, f"{prefix}{statement.name}.", found)
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            rest.append(ast.dump(statement))
    found[f"<{prefix.rstrip('.') or 'module'}>"] = "\n".join(rest)


def _without_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
    for inner in ast.walk(node):
        if isinstance(inner, (*_FUNCTIONS, ast.ClassDef)) and ast.get_docstring(inner, clean=False) is not None:
            inner.body = inner.body[1:] or [ast.Pass()]


def entries(found: Changes, program: Program, engine: Engine, word: re.Pattern[str]) -> list[Entry]:
    """Where to begin so that the changed functions are run: the forward methods of their classes, themselves where
    those don't lead to them, or who calls them and speaks of the thing.
    """
    chosen: dict[str, Entry] = {}
    for path, name in found.functions:
        for entry in _beginnings(path, name, program, engine, word):
            chosen.setdefault(entry.name, entry)
    # What speaks of the thing itself is followed first: time may run out.
    ranked = sorted(chosen.values(), key=lambda e: not word.search(e.function.text))
    return ranked[:MOST_ENTRIES]


def _beginnings(path: str, name: str, program: Program, engine: Engine, word: re.Pattern[str]) -> list[Entry]:
    owner, _, method = name.partition(".")
    made = program.top_level(path, owner)
    if isinstance(made, Class):
        return _of_class(made, method, engine) or _callers(method, program, engine, word, path)
    if isinstance(made, Function):
        return _callers(name, program, engine, word, path) or [Entry(made)]
    return []


def _of_class(owner: Class, method: str, engine: Engine) -> list[Entry]:
    forward = next((f for name in FORWARDS if (f := engine.method(owner, name)) is not None), None)
    own = {n: f for at in reversed(engine.lineage(owner)) for n, f in at.functions.items()}
    reached: set[str] = set()
    waiting = [forward.name] if forward is not None else []
    while waiting:
        name = waiting.pop()
        if name not in reached and name in own:
            reached.add(name)
            waiting += [n for n in own if n not in reached and re.search(rf"\b{re.escape(n)}\b", own[name].text)]
    begin: list[Function] = []
    # The changed method by itself first: what leads to it may be more than can be followed.
    if method in own and not method.startswith("__") and _follows(own[method]):
        begin += [own[method]] if method not in reached or not method.startswith("_") else []
    if forward is not None and (method in reached or method.startswith("__")) and forward not in begin:
        begin.append(forward)
    return [Entry(Function(f.module, f.node, owner)) for f in begin]


def _follows(function: Function) -> bool:
    """Whether a function takes something and gives something back."""
    return len(function.node.args.args) > 1 and any(
        isinstance(n, ast.Return) and n.value is not None for n in ast.walk(function.node)
    )


def _callers(name: str, program: Program, engine: Engine, word: re.Pattern[str], path: str) -> list[Entry]:
    """Classes with a forward method that name a function and speak of the thing, those of the nearest files first."""
    called = re.compile(rf"\b{re.escape(name)}\b")
    found: list[Entry] = []
    for source in sorted(program.texts.holding(name.encode()), key=lambda s: (-_shared(s, path), s)):
        if len(found) >= MOST_CALLERS:
            break
        module = program.module(source)
        for chunks in module.chunks.values() if module else []:
            text = chunks[-1].text
            if chunks[-1].kind == "class" and called.search(text) and word.search(text):
                made = program.definition(module, chunks[-1]) if module else None
                if isinstance(made, Class):
                    forward = next((f for n in FORWARDS if (f := engine.method(made, n)) is not None), None)
                    found += [Entry(Function(forward.module, forward.node, made))] if forward is not None else []
    return found[:MOST_CALLERS]


def _shared(one: str, other: str) -> int:
    a, b = one.split("/"), other.split("/")
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
