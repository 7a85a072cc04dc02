"""Headers of functions, classes, imports and except clauses compared."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .classify_expr import align
from .classify_sink import Place, Sink, arrow, same
from .classify_units import Definition, dump, show
from .classify_vocabulary import CACHE_DECORATORS, describe_cast, dtype_of

WIDE = ("", "Exception", "BaseException")


def compare_definitions(sink: Sink, a: ast.AST, b: ast.AST) -> None:
    """Report what differs between two headers of one function or class."""
    assert isinstance(a, Definition) and isinstance(b, Definition)
    if a.name != b.name:
        sink.say("rename_only", f"{show(a)} → {b.name}", a, b)
    _decorators(sink, a, b)
    if isinstance(a, ast.ClassDef) and isinstance(b, ast.ClassDef):
        align(sink, a.bases, b.bases, Place(label="base class"))
        if dump(a.keywords) != dump(b.keywords):
            sink.say("value_changed", f"class keywords {arrow(a.keywords, b.keywords)}", a, b)
    elif not isinstance(a, ast.ClassDef) and not isinstance(b, ast.ClassDef):
        _parameters(sink, a.args, b.args)
        if dump(a.returns) != dump(b.returns):
            sink.say("type_annotation_only", f"returns {arrow(a.returns, b.returns)}", a.returns or a, b.returns or b)
        if type(a) is not type(b):
            sink.say(
                "value_changed",
                f"{a.name} is {'now' if isinstance(b, ast.AsyncFunctionDef) else 'no longer'} async",
                "",
                "",
            )


def _decorators(sink: Sink, a: Definition, b: Definition) -> None:
    old, new = [dump(mark) for mark in a.decorator_list], [dump(mark) for mark in b.decorator_list]
    gone = [mark for mark in a.decorator_list if dump(mark) not in new]
    came = [mark for mark in b.decorator_list if dump(mark) not in old]
    if gone or came or old != new:
        sink.say("decorator_changed", f"{a.name}: {_marks(gone)} → {_marks(came)}", gone, came)
    for mark in gone + came:
        if CACHE_DECORATORS.search(show(mark.func if isinstance(mark, ast.Call) else mark)):
            sink.say("cache_key_changed", f"caching of {a.name}: {_marks(gone)} → {_marks(came)}", gone, came)
            return


def _marks(marks: list[ast.expr]) -> str:
    return ", ".join("@" + show(mark) for mark in marks) or "none"


def _listed(args: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """Every parameter with its default, in order."""
    plain = [*args.posonlyargs, *args.args]
    missing: list[ast.expr | None] = [None] * (len(plain) - len(args.defaults))
    yield from zip(plain, [*missing, *args.defaults], strict=True)
    yield from zip(args.kwonlyargs, args.kw_defaults, strict=True)
    for rest in (args.vararg, args.kwarg):
        if rest:
            yield rest, None


def _parameters(sink: Sink, a: ast.arguments, b: ast.arguments) -> None:
    old = {arg.arg: (arg, default) for arg, default in _listed(a)}
    new = {arg.arg: (arg, default) for arg, default in _listed(b)}
    old = _renamed_parameters(sink, old, new)
    for name in [name for name in old if name in new]:
        _parameter(sink, name, old[name], new[name])
    for name in [name for name in old if name not in new]:
        sink.say("parameter_removed", _spelled(*old[name]), old[name][0], "")
    for name in [name for name in new if name not in old]:
        sink.say("parameter_added", _spelled(*new[name]), "", new[name][0])
    order = [name for name in old if name in new]
    if order != [name for name in new if name in old]:
        sink.say("argument_changed", f"parameters in another order: {', '.join(new)}", "", "")


Parameters = dict[str, tuple[ast.arg, ast.expr | None]]


def _renamed_parameters(sink: Sink, old: Parameters, new: Parameters) -> Parameters:
    """The old parameters, those that only changed their name under the new one, so that the rest compares."""
    places = list(new)
    result: Parameters = {}
    for place, (before, value) in enumerate(old.items()):
        after = places[place] if place < len(places) else ""
        if before not in new and after and after not in old and sink.renamed(before, after, local=True):
            sink.say("rename_only", f"parameter {before} → {after}", value[0], new[after][0])
            result[after] = value
        else:
            result[before] = value
    return result


def _parameter(
    sink: Sink, name: str, old: tuple[ast.arg, ast.expr | None], new: tuple[ast.arg, ast.expr | None]
) -> None:
    if dump(old[1]) != dump(new[1]):
        detail = f"{name}: {show(old[1]) or 'required'} → {show(new[1]) or 'required'}"
        sink.say("default_changed", detail, old[1] or "", new[1] or "")
        if old[1] and new[1] and (dtype_of(old[1]) or dtype_of(new[1])):
            sink.say("dtype_changed", f"{name}: {describe_cast(dtype_of(old[1]), dtype_of(new[1]))}", old[1], new[1])
    if dump(old[0].annotation) != dump(new[0].annotation):
        kind = "constant_changed" if _is_constexpr(old[0]) != _is_constexpr(new[0]) else "type_annotation_only"
        sink.say(kind, f"{name}: {arrow(old[0].annotation, new[0].annotation)}", old[0], new[0])


def _is_constexpr(arg: ast.arg) -> bool:
    """A Triton parameter's `tl.constexpr` is no annotation: it makes the value part of the compiled kernel."""
    return show(arg.annotation).endswith("constexpr")


def _spelled(arg: ast.arg, default: ast.expr | None) -> str:
    return f"{arg.arg} = {show(default)}" if default else arg.arg


def imported(node: ast.AST) -> set[str]:
    """Full names that an import statement binds, with their aliases."""
    if isinstance(node, ast.ImportFrom):
        stem = "." * node.level + (node.module or "")
        return {f"{stem}:{alias.name}" + (f" as {alias.asname}" if alias.asname else "") for alias in node.names}
    names = node.names if isinstance(node, ast.Import) else []
    return {alias.name + (f" as {alias.asname}" if alias.asname else "") for alias in names}


def compare_imports(sink: Sink, old: list[ast.AST], new: list[ast.AST]) -> None:
    """Report names that are imported on one side only; the same names in another order were moved."""
    before = set().union(*map(imported, old)) if old else set()
    after = set().union(*map(imported, new)) if new else set()
    gone, came = sorted(before - after), sorted(after - before)
    if gone or came:
        lists = [f"{word}: {', '.join(found)}" for word, found in (("gone", gone), ("new", came)) if found]
        sink.say("import_changed", "; ".join(lists), old[:1] if old else "", new[:1] if new else "")
    else:
        sink.say("moved_only", "the same imports in another order", old[:1], new[:1])


def compare_handlers(sink: Sink, a: ast.ExceptHandler, b: ast.ExceptHandler) -> None:
    """Report whether an except clause catches more than it did."""
    if same(a.type or ast.Constant(None), b.type or ast.Constant(None)):
        return
    before, after = show(a.type), show(b.type)
    caught = [{name.strip(" ()") for name in text.split(",")} for text in (before, after)]
    if (after in WIDE and before not in WIDE) or caught[1] > caught[0]:
        sink.say("exception_swallowed", f"except {before} became except {after}".strip(), a, b)
    else:
        sink.say("value_changed", f"except {before} → except {after}", a, b)


def swallows(node: ast.ExceptHandler) -> bool:
    """Whether a handler goes on as if nothing had happened: it neither raises nor exits."""
    exits = ("exit", "_exit", "abort", "kill")
    for each in ast.walk(node):
        if isinstance(each, ast.Raise):
            return False
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in exits:
            return False
    return True
