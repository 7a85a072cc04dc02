"""Every place where a definition mentions a symbol, and what happens to it there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .chunks import Chunk
from .definitions import Definition, Function, Named, covers
from .frames import Frame, frames, guards, show
from .imports import dotted_parts
from .usage import called_name, usage

APPLIES = ("multiply", "divide")
SETS = ("definition", "attribute_assignment", "assignment", "keyword_argument")
READS = ("condition", "assertion", "passed", "called", "read")


@dataclass(frozen=True)
class Occurrence:
    """One thing that one line does with the symbol.

    Attributes:
        kind: definition, attribute_assignment, assignment, parameter, keyword_argument, multiply, divide,
            condition, assertion, passed, called, read, import or string.
        scope: dotted name of the enclosing class or function; empty at module level.
        detail: the value, test, callee or expression that matters for the kind.
        guards: conditions up to the enclosing function under which the line runs, outermost first.
        alias: the local name that carries the value here, empty when the symbol itself is written.
        sets: whether it gives the symbol a value.
        captured: lambda or closure, when the symbol is used from inside one.
    """

    file: str
    line: int
    column: int
    kind: str
    scope: str
    detail: str = ""
    guards: tuple[str, ...] = ()
    alias: str = ""
    sets: bool = False
    captured: str = ""
    receiver: str = ""


def occurrences(definition: Definition, symbol: str, lines: list[int], most: int) -> list[Occurrence]:
    """What a definition does with a symbol.

    Args:
        definition: where to look.
        symbol: an identifier, without dots.
        lines: sorted numbers of the file's lines that hold the identifier.
        most: stop after about this many.
    """
    if not any(_covers(lines, piece) for piece in definition.sources):
        return []
    found: list[Occurrence] = []
    aliases: list[tuple[Frame, str]] = []
    for frame in frames([Frame(node, "", None) for node in definition.nodes], lines):
        if len(found) >= most:
            break
        for kind, detail, sets in _kinds(frame, symbol):
            found.append(_occurrence(definition, frame, kind, detail, sets))
        if _reads(frame.node, symbol) or _is_getattr(frame.node, symbol):
            result = usage(frame)
            # A value passed under its own name is already there as `keyword_argument`.
            told = [use for use in result.uses if not use[1].endswith(f"({symbol}=…)")]
            found += [_occurrence(definition, frame, *use, False) for use in told]
            aliases += [(frame, name) for name in result.aliases if name != symbol]
    found += _through_aliases(definition, aliases)
    return _settled(found)


def _covers(lines: list[int], piece: ast.AST | Chunk) -> bool:
    if isinstance(piece, Chunk):
        return any(piece.start <= n < piece.start + piece.text.count("\n") + 1 for n in lines)
    return covers(lines, piece)


def _reads(node: ast.AST, symbol: str) -> bool:
    name = getattr(node, "id", None) or getattr(node, "attr", None)
    return name == symbol and isinstance(getattr(node, "ctx", None), ast.Load)


def _is_getattr(node: ast.AST, symbol: str) -> bool:
    """`getattr(x, "symbol")` is read like `x.symbol`."""
    if not isinstance(node, ast.Call) or dotted_parts(node.func) != ["getattr"]:
        return False
    return len(node.args) > 1 and getattr(node.args[1], "value", None) == symbol


def _kinds(frame: Frame, symbol: str) -> Iterator[tuple[str, str, bool]]:
    """What a node does to the symbol other than reading it: kind, detail, whether it sets it."""
    node = frame.node
    if isinstance(node, Named) and node.name == symbol:
        yield "definition", _defined(node), True
    elif isinstance(node, ast.arg) and node.arg == symbol:
        yield "parameter", _parameter(frame), False
    elif isinstance(node, ast.keyword) and node.arg == symbol and frame.up:
        call = frame.up.node
        name = called_name(call) if isinstance(call, ast.Call) else show(call)
        yield "keyword_argument", f"{name}({symbol}={show(node.value)})", True
    elif isinstance(node, ast.alias) and symbol in (node.asname, node.name.rpartition(".")[2]):
        yield "import", show(frame.up.node) if frame.up else "", False
    elif isinstance(node, ast.Constant) and node.value == symbol and isinstance(node.value, str):
        yield ("string", *_indirect(frame))
    elif isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
        yield from _stored(frame, symbol)


def _stored(frame: Frame, symbol: str) -> Iterator[tuple[str, str, bool]]:
    node = frame.node
    if isinstance(node, ast.Attribute) and node.attr == symbol:
        kind = "attribute_assignment"
    elif isinstance(node, ast.Name) and node.id == symbol:
        kind = "assignment"
    else:
        return
    if isinstance(node.ctx, ast.Del):
        yield kind, "deleted", False
        return
    statement = next((f.node for f in frame.ancestors() if isinstance(f.node, ast.stmt)), None)
    yield kind, _value(statement, frame), True
    if isinstance(statement, ast.AugAssign) and frame.field == "target":
        scaled = isinstance(statement.op, ast.Mult)
        if scaled or isinstance(statement.op, ast.Div):
            kind = "multiply" if scaled else "divide"
            yield kind, f"the symbol itself is changed: {show(statement)}", False


def _value(statement: ast.AST | None, frame: Frame) -> str:
    if isinstance(statement, ast.AnnAssign):
        in_class = frame.up and frame.up.up and isinstance(frame.up.up.node, ast.ClassDef)
        value = f" = {show(statement.value)}" if statement.value else ", no default"
        return f"{'field: ' if in_class else ''}{show(statement.annotation)}{value}"
    if isinstance(statement, ast.Assign) and frame.field == "targets":
        return f"= {show(statement.value)}"
    if isinstance(statement, (ast.For, ast.AsyncFor)) and frame.field == "target":
        return f"each of {show(statement.iter)}"
    if frame.up and isinstance(frame.up.node, ast.NamedExpr):
        return f":= {show(frame.up.node.value)}"
    return show(statement) if isinstance(statement, (ast.Assign, ast.AugAssign)) else ""


def _defined(node: ast.AST) -> str:
    decorators = " ".join(f"@{show(d)}" for d in getattr(node, "decorator_list", ()))
    kind = "class" if isinstance(node, ast.ClassDef) else "function"
    return f"{kind} {decorators}".strip()


def _parameter(frame: Frame) -> str:
    """Which function takes it, and the default."""
    arguments = frame.up.node if frame.up else None
    owner = frame.up.up.node if frame.up and frame.up.up else None
    name = getattr(owner, "name", "lambda")
    if not isinstance(arguments, ast.arguments):
        return name
    positional = [*arguments.posonlyargs, *arguments.args]
    with_default = positional[len(positional) - len(arguments.defaults) :]
    defaults = list(zip(with_default, arguments.defaults, strict=True))
    defaults += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d]
    default = next((show(d) for a, d in defaults if a is frame.node), None)
    return f"of {name}, " + ("no default" if default is None else f"default {default}")


def _indirect(frame: Frame) -> tuple[str, bool]:
    """How a string that spells the symbol reaches it, and whether it sets it."""
    parent = frame.up.node if frame.up else None
    if isinstance(parent, ast.Call):
        name = called_name(parent)
        sets = name.rpartition(".")[2] in ("setattr", "setdefault", "__setattr__")
        return f"{'sets' if sets else 'reads'}: {show(parent)}", sets
    if isinstance(parent, ast.Dict) and frame.field == "keys":
        index = next(n for n, key in enumerate(parent.keys) if key is frame.node)
        return f"sets: dict key, value {show(parent.values[index])}", True
    if isinstance(parent, ast.Subscript) and frame.field == "slice":
        sets = isinstance(parent.ctx, ast.Store)
        return f"{'sets' if sets else 'reads'}: {show(parent)}", sets
    return "a text that spells the name", False


def _through_aliases(definition: Definition, aliases: list[tuple[Frame, str]]) -> Iterator[Occurrence]:
    """Uses of local names that were assigned the symbol's value, within the same function."""
    seen: set[tuple[int, str]] = set()
    while aliases:
        origin, name = aliases.pop()
        function = next((f for f in origin.ancestors() if isinstance(f.node, Function)), None)
        if function is None or (id(function.node), name) in seen:
            continue
        seen.add((id(function.node), name))
        for frame in frames([function], definition.module.lines_with(name)):
            if not _is_name(frame.node, name) or _line(frame) < _line(origin):
                continue
            result = usage(frame)
            aliases += [(frame, other) for other in result.aliases]
            for kind, detail in result.uses:
                if kind != "read":
                    found = _occurrence(definition, frame, kind, detail, False)
                    yield replace(found, alias=name)


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def _occurrence(definition: Definition, frame: Frame, kind: str, detail: str, sets: bool) -> Occurrence:
    holds = kind in (*APPLIES, *SETS, "assertion", "condition", "passed", "called", "string")
    found = tuple(guards(frame)) if holds else ()
    file, line = definition.module.path, _line(frame)
    column = getattr(frame.node, "col_offset", 0) + 1
    scope = _scope(definition, frame)
    owner = show(frame.node.value) if isinstance(frame.node, ast.Attribute) else ""
    captured = _captured(frame) if kind in (*APPLIES, *READS) else ""
    return Occurrence(file, line, column, kind, scope, detail, found, "", sets, captured, owner)


def _line(frame: Frame) -> int:
    """The line on which the symbol's own name stands, in a chain that may span several."""
    node = frame.node
    if isinstance(node, ast.Attribute) and node.end_lineno:
        return node.end_lineno
    for holder in (frame, *frame.ancestors()):
        if getattr(holder.node, "lineno", 0):
            return int(getattr(holder.node, "lineno", 0))
    return 0


def _scope(definition: Definition, frame: Frame) -> str:
    names = [f.node.name for f in frame.ancestors() if isinstance(f.node, Named)]
    outer = definition.scope.qualname
    return ".".join(([outer] if outer else []) + names[::-1])


def _captured(frame: Frame) -> str:
    """Whether a use sits in a lambda or in a function inside a function."""
    around = [f.node for f in frame.ancestors()]
    functions = 0
    for node in around:
        if isinstance(node, ast.Lambda):
            return "lambda"
        if isinstance(node, ast.ClassDef):
            break
        functions += isinstance(node, Function)
    return "closure" if functions > 1 else ""


def _settled(found: list[Occurrence]) -> list[Occurrence]:
    """Sorted by line, each kind once a column."""
    unique: dict[tuple[int, int, str, str], Occurrence] = {}
    for item in sorted(found, key=lambda o: (o.line, o.column)):
        unique.setdefault((item.line, item.column, item.kind, item.alias), item)
    return list(unique.values())
