"""Where a source file reads, declares or assigns an environment variable or a launch argument."""

from __future__ import annotations

import ast
import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .default_source import ARGS_SUFFIX, CONFIG_SUFFIX, RECORD_BASES, Source

FIELD_CALLS = {"field", "Field", "attrib", "ib"}
EMPTY_FACTORIES = {"list": "[]", "tuple": "()", "dict": "{}"}


@dataclass
class Site:
    """One place that says something about a name.

    Attributes:
        kind: `env` or `arg`.
        name: the variable, or the argument in snake_case.
        line: from 1.
        how: the construct, for a reader.
        role: `default`, `required` (no default: it must be given), `presence` (only tested for
            being set), `assigned` (the source itself sets it) or `declared` (for type checkers).
        rank: 0 a registry or a class of launch arguments, 1 a direct read or argparse, 2 a config
            class, 3 other.
        default: the default's expression; None where the construct itself implies `implied`.
        implied: the default as source text when no expression gives it.
        owner: the class that holds it.
        names: every spelling an argument answers to, in snake_case.
        flag: the argument takes no value.
        helper: function whose signature holds the default.
    """

    kind: str
    name: str
    line: int
    how: str
    role: str = "default"
    rank: int = 1
    default: ast.expr | None = None
    implied: str = ""
    text: str = ""
    owner: str = ""
    names: tuple[str, ...] = ()
    flag: bool = False
    helper: str = ""


@dataclass(frozen=True)
class Wanted:
    """Predicates for the names asked for."""

    env: Callable[[str], bool]
    arg: Callable[[str], bool]


def snake(option: str) -> str:
    """`--moe-runner-backend` as `moe_runner_backend`."""
    return option.lstrip("-").replace("-", "_")


def callee(node: ast.expr) -> str:
    """Last part of a called or referenced name; empty for anything else."""
    if isinstance(node, ast.Call | ast.Subscript):
        return callee(node.func if isinstance(node, ast.Call) else node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument."""
    return next((k.value for k in call.keywords if k.arg == name), None)


def word(node: ast.expr | None) -> str:
    """The value of a string literal; empty for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def sites(source: Source, hits: list[int], wanted: Wanted) -> Iterator[Site]:
    """Every site of a wanted name in nodes that span one of the lines `hits` (sorted).

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as `Source.tree`.
    """
    stack: list[ast.AST] = list({id(t): t for t in map(source.tree, hits)}.values())
    lambdas: dict[str, ast.Lambda] = {}
    while stack:
        node = stack.pop()
        for site in _of(node, wanted, lambdas):
            shown = lambdas[site.name].body if site.name in lambdas else site.default
            site.text = site.text or (source.text(shown) if shown is not None else site.implied)
            yield site
        stack.extend(n for n in ast.iter_child_nodes(node) if _spans(n, hits))


def _spans(node: ast.AST, hits: list[int]) -> bool:
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    if first is None or last is None:
        return True
    # Decorators stand above the line that a definition is said to start on.
    first = min([first, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    at = bisect.bisect_left(hits, first)
    return at < len(hits) and hits[at] <= last


def _of(node: ast.AST, wanted: Wanted, lambdas: dict[str, ast.Lambda]) -> Iterator[Site]:
    if isinstance(node, ast.Call):
        yield from _env_call(node, wanted, lambdas)
        if callee(node.func) == "add_argument":
            yield from _option(node, wanted)
    elif isinstance(node, ast.Subscript) and _is_environ(node.value) and wanted.env(word(node.slice)):
        role = "assigned" if isinstance(node.ctx, ast.Store) else "required"
        lookup = lambdas.get(word(node.slice))
        if lookup is not None and isinstance(lookup.body, ast.IfExp):
            role = "presence"
        yield Site("env", word(node.slice), node.lineno, f"os.environ[…] {role}", role)
    elif isinstance(node, ast.Compare) and _is_environ(node.comparators[0]) and wanted.env(word(node.left)):
        yield Site("env", word(node.left), node.lineno, "tested for being set", "presence")
    elif isinstance(node, ast.Dict):
        yield from _registry_dict(node, wanted, lambdas)
    elif isinstance(node, ast.ClassDef):
        yield from _class_body(node, wanted)
    elif isinstance(node, ast.Module | ast.If):
        yield from _registry_names(node.body, "", wanted)


def _is_environ(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute | ast.Name) and callee(node) == "environ"


def _env_call(node: ast.Call, wanted: Wanted, lambdas: dict[str, ast.Lambda]) -> Iterator[Site]:
    name = word(node.args[0]) if node.args else word(keyword(node, "name") or keyword(node, "key"))
    if not name or not wanted.env(name):
        return
    function = callee(node.func)
    default = node.args[1] if len(node.args) > 1 else keyword(node, "default")
    rank = 0 if name in lambdas else 1
    on_environ = isinstance(node.func, ast.Attribute) and _is_environ(node.func.value)
    if function == "getenv" or (on_environ and function in ("get", "pop")):
        how = f"os.environ.{function}" if on_environ else "os.getenv"
        yield Site("env", name, node.lineno, how, rank=rank, default=default, implied="None")
    elif on_environ and function == "setdefault":
        yield Site("env", name, node.lineno, "os.environ.setdefault", "assigned", default=default)
    elif "env" in function.lower():
        helper = "" if default is not None else function
        yield Site("env", name, node.lineno, f"{function}(…)", rank=rank, default=default, helper=helper)


def _registry_dict(node: ast.Dict, wanted: Wanted, lambdas: dict[str, ast.Lambda]) -> Iterator[Site]:
    """A table of `"NAME": lambda: …`; a function in place of a lambda computes its default."""
    computed = any(isinstance(value, ast.Lambda) for value in node.values)
    for key, value in zip(node.keys, node.values, strict=True):
        name = word(key)
        if key is None or not name or not wanted.env(name):
            continue
        if isinstance(value, ast.Lambda):
            lambdas[name] = value
        elif computed and isinstance(value, ast.Name):
            yield Site("env", name, key.lineno, "registry, computed", rank=0, default=value)


def _registry_names(body: list[ast.stmt], owner: str, wanted: Wanted) -> Iterator[Site]:
    """`NAME = EnvBool(True)`; `NAME: bool = True` outside a class is for type checkers."""
    for stmt in body:
        if not isinstance(stmt, ast.Assign | ast.AnnAssign) or stmt.value is None:
            continue
        target = stmt.targets[0] if isinstance(stmt, ast.Assign) else stmt.target
        if not isinstance(target, ast.Name) or not wanted.env(target.id):
            continue
        value = stmt.value
        if isinstance(value, ast.Call) and "env" in callee(value.func).lower():
            # A call that spells the name itself is found as a call.
            if not value.args or word(value.args[0]) != target.id:
                default = value.args[0] if value.args else keyword(value, "default")
                how = f"{callee(value.func)} registry"
                yield Site("env", target.id, stmt.lineno, how, rank=0, default=default, owner=owner)
        elif isinstance(stmt, ast.AnnAssign) and not owner:
            yield Site("env", target.id, stmt.lineno, "type declaration", "declared", default=value)


def _class_body(node: ast.ClassDef, wanted: Wanted) -> Iterator[Site]:
    yield from _registry_names(node.body, node.name, wanted)
    rank = _class_rank(node)
    for stmt in node.body:
        if isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name):
            names = (stmt.target.id, *_cli_names(stmt.annotation))
            own = 0 if len(names) > 1 or _is_option(stmt.annotation) else rank
            if own is not None and any(map(wanted.arg, names)):
                yield _field(stmt, stmt.target.id, names, own, node.name)


def _class_rank(node: ast.ClassDef) -> int | None:
    """How much a class looks like one of launch arguments; None when it is no record at all."""
    if node.name.endswith(ARGS_SUFFIX):
        return 0
    if node.name.endswith(CONFIG_SUFFIX):
        return 2
    marks = {callee(d) for d in (*node.decorator_list, *node.bases)}
    return 3 if marks & RECORD_BASES or any("dataclass" in m or m == "define" for m in marks) else None


def _metadata(annotation: ast.expr) -> list[ast.expr]:
    """What follows the type in `Annotated[T, Arg(…)]` or `Annotated[T, "a help text"]`.

    Annotated may be imported under any name, so a call or a text of several words is what tells.
    """
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.slice, ast.Tuple):
        return []
    rest = annotation.slice.elts[1:]
    return [e for e in rest if isinstance(e, ast.Call) or " " in word(e)]


def _is_option(annotation: ast.expr) -> bool:
    """The annotation carries command-line metadata."""
    marks = ("Arg", "Argument", "Option")
    return any(word(m) or callee(m).endswith(marks) for m in _metadata(annotation))


def _cli_names(annotation: ast.expr) -> list[str]:
    """Option strings given in a field's command-line metadata."""
    calls = [m for m in _metadata(annotation) if isinstance(m, ast.Call)]
    parts = [k.value for call in calls for k in call.keywords if k.arg != "help"]
    found = [e for p in parts for e in (p.elts if isinstance(p, ast.List | ast.Tuple) else [p])]
    return [snake(word(e)) for e in found if word(e).startswith("-")]


def _field(stmt: ast.AnnAssign, name: str, names: tuple[str, ...], rank: int, owner: str) -> Site:
    annotation = stmt.annotation
    kind: ast.expr = annotation
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple):
        kind = annotation.slice.elts[0] if _metadata(annotation) else annotation
    default, implied = _field_default(stmt.value)
    role = "default" if default is not None or implied else "required"
    flag = callee(kind) == "bool"
    return Site(
        "arg",
        name,
        stmt.lineno,
        f"field of {owner}",
        role,
        rank,
        default,
        implied,
        owner=owner,
        names=names,
        flag=flag,
    )


def _field_default(value: ast.expr | None) -> tuple[ast.expr | None, str]:
    """The default's expression, or the text it implies; neither when the field must be given."""
    if not isinstance(value, ast.Call) or callee(value.func) not in FIELD_CALLS:
        return value, ""
    factory = keyword(value, "default_factory")
    if factory is not None:
        return (None, EMPTY_FACTORIES[callee(factory)]) if callee(factory) in EMPTY_FACTORIES else (value, "")
    found = keyword(value, "default") or (value.args[0] if value.args else None)
    required = isinstance(found, ast.Constant) and found.value is ...
    return (None, "") if required else (found, "")


def _option(node: ast.Call, wanted: Wanted) -> Iterator[Site]:
    spelled = [a for a in node.args if word(a).startswith("-")]
    if not spelled:
        return
    default, action = keyword(node, "default"), keyword(node, "action")
    names = [snake(word(a)) for a in sorted(spelled, key=lambda a: not word(a).startswith("--"))]
    # `default=ServerArgs.tp_size` names the field that the option fills.
    field = default.attr if isinstance(default, ast.Attribute) and callee(default.value)[:1].isupper() else ""
    canonical = field or word(keyword(node, "dest")) or names[0]
    names = list(dict.fromkeys([canonical, *names]))
    if not any(map(wanted.arg, names)):
        return
    doing = word(action) or (callee(action) if action is not None else "")
    implied = {"store_true": "False", "store_false": "True"}.get(doing, "None")
    flag = doing in ("store_true", "store_false", "store_const", "BooleanOptionalAction")
    splat = next((k.value for k in node.keywords if k.arg is None), None)
    yield Site(
        "arg",
        canonical,
        spelled[0].lineno,
        "add_argument",
        default=default or splat,
        implied=implied,
        names=tuple(names),
        flag=flag,
    )
