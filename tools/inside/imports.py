"""Where a dotted name leads: through imports, re-exports, star imports, aliases and base classes."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .chunks import Chunk
from .definitions import (
    Binding,
    Definition,
    Module,
    Scope,
    Unparsable,
    parse,
)
from .packages import Packages
from .source import Tree


@dataclass(frozen=True)
class Hop:
    """One step from file to file: the line that takes it, how (`via`), and the name it goes by."""

    via: str
    file: str
    line: int
    name: str
    to_file: str


@dataclass(frozen=True)
class Target:
    """What a name resolved to, and the import lines on the way."""

    definition: Definition
    trail: tuple[Hop, ...] = ()


@dataclass
class Walk:
    """State of one resolution: what was tried (cycles end there) and which files may be opened."""

    may_open: Callable[[str], bool]
    seen: set[tuple[str, str, int]] = field(default_factory=set)


def anything(_: str) -> bool:
    """No restriction on the files to open."""
    return True


class Resolver:
    """Resolves names on demand; every file is parsed at most once.

    Attributes:
        modules: the files parsed so far.
        failed: files that can't be parsed, with the line (0 if none) and the reason.
        missing: imports into a package of the tree that lead nowhere: (file, line) to the dotted name.
        refused: files that weren't opened because `most_files` was reached.
    """

    def __init__(self, tree: Tree, most_files: int = 100_000) -> None:
        self.tree = tree
        self.most_files = most_files
        self.modules: dict[str, Module] = {}
        self.failed: dict[str, tuple[int, str]] = {}
        self.missing: dict[tuple[str, int], str] = {}
        self.refused: set[str] = set()
        self.packages = Packages(tree)
        self._known: dict[tuple[str, tuple[str, ...], Callable[[str], bool]], list[Target]] = {}

    def module(self, path: str) -> Module | None:
        """The parsed file, or None when it leaves the tree, can't be parsed or is one too many."""
        real = self.tree.canonical(path)
        if real is None or real in self.failed:
            return None
        if real not in self.modules:
            if len(self.modules) >= self.most_files:
                self.refused.add(real)
                return None
            try:
                self.modules[real] = parse(self.tree, real)
            except Unparsable as error:
                self.failed[real] = (error.line, str(error))
                return None
        return self.modules[real]

    def resolve(
        self,
        scope: Scope,
        parts: Sequence[str],
        may_open: Callable[[str], bool] = anything,
    ) -> list[Target]:
        """Every definition in the tree that a dotted name can mean in a scope; empty for locals and externals.

        Args:
            scope: where the name is written.
            parts: the name, split at its dots.
            may_open: asked before a file is parsed; a refused file ends that way.
        """
        found = scope.lookup(parts[0])
        where = found[0] if found else scope.module.scope
        if where.outer is not None:
            return self._look_up(where, parts, may_open)
        key = (where.module.path, tuple(parts), may_open)
        if key not in self._known:
            self._known[key] = self._look_up(where, parts, may_open)
        return self._known[key]

    def _look_up(self, where: Scope, parts: Sequence[str], may_open: Callable[[str], bool]) -> list[Target]:
        try:
            return self._look_in(where, parts, Walk(may_open))
        except RecursionError:
            # Chains of re-exports or base classes this long are made to break readers of code.
            return []

    def _look_in(self, where: Scope, parts: Sequence[str], walk: Walk) -> list[Target]:
        targets: list[Target] = []
        for binding in where.bindings.get(parts[0], []):
            targets += self._follow(where, binding, parts, walk)
        if not targets and where.outer is None and parts[0] not in where.bindings:
            targets = self._starred(where.module, parts, walk)
        return _unique(targets)

    def _follow(self, where: Scope, binding: Binding, parts: Sequence[str], walk: Walk) -> list[Target]:
        if binding.kind in ("import", "from"):
            return self._imported(where.module, binding, parts, walk)
        if binding.kind == "definition":
            return self._defined(where, binding.source, parts, walk)
        if binding.kind == "value" and where.outer is None:
            return self._assigned(where.module, binding, parts, walk)
        return []

    def _defined(self, where: Scope, source: ast.AST | Chunk, parts: Sequence[str], walk: Walk) -> list[Target]:
        definition = where.definition(source)
        if definition.kind == "class" and len(parts) > 1:
            return self.member(definition, parts[1], walk) or [Target(definition)]
        return [Target(definition)]

    def _assigned(self, module: Module, binding: Binding, parts: Sequence[str], walk: Walk) -> list[Target]:
        """A module-level variable; `A = B` and `A = partial(B, …)` lead on to B."""
        alias = _alias_of(getattr(binding.node, "value", None))
        if alias and self._first_time(module, parts[0], walk, binding.line):
            hop = Hop("refers", module.path, binding.line, ".".join(alias), module.path)
            onward: list[Target] = []
            found = module.bindings.get(alias[0], [])
            for inner in found:
                onward += self._follow(module.scope, inner, [*alias, *parts[1:]], walk)
            if onward:
                return [Target(t.definition, (hop, *t.trail)) for t in onward]
        return [Target(module.variable(parts[0]))]

    def _imported(self, module: Module, binding: Binding, parts: Sequence[str], walk: Walk) -> list[Target]:
        if not self._first_time(module, parts[0], walk, binding.line):
            return []
        dotted = binding.module.split(".") if binding.module else []
        rest = list(parts[1:])
        if binding.kind == "from":
            rest.insert(0, binding.attribute)
        elif not binding.aliased and rest[: len(dotted) - 1] == dotted[1:]:
            rest = rest[len(dotted) - 1 :]
        elif not binding.aliased:
            dotted = dotted[:1]
        targets: list[Target] = []
        places = self.packages.places(module.path, dotted, binding.level)
        for place in places:
            targets += self._inside(place, rest, walk)
        told = any(self.tree.canonical(place) in self.failed for place in places)
        lost = not targets and not told and walk.may_open is anything
        if lost and self._is_ours(module, binding, dotted):
            self.missing[module.path, binding.line] = ".".join([*dotted, *rest[:1]])
        return [_through(module, binding, parts[0], t) for t in targets]

    def _is_ours(self, module: Module, binding: Binding, dotted: Sequence[str]) -> bool:
        """Whether an import should lead somewhere: relative, or into a package that the tree holds."""
        if binding.level:
            return True
        tops = self.packages.tops(module.path, dotted[0])
        paths = [posixpath.join(top, dotted[0]) for top in tops]
        return any(self.packages.init(path) or self.tree.is_file(path + ".py") for path in paths)

    def _inside(self, place: str, rest: Sequence[str], walk: Walk) -> list[Target]:
        """Names below a module file or a package folder, given as a path."""
        path = place if place.endswith(".py") else self.packages.init(place)
        if path is None:
            return self._submodule(place, rest, walk)
        if not rest:
            module = self.module(path) if walk.may_open(path) else None
            return [Target(module.whole)] if module else []
        is_init = posixpath.basename(path) == "__init__.py"
        targets = self._in_module(path, rest, walk)
        if not targets and is_init:
            targets = self._submodule(posixpath.dirname(path), rest, walk)
        return targets

    def _in_module(self, path: str, rest: Sequence[str], walk: Walk) -> list[Target]:
        if not walk.may_open(path):
            return []
        module = self.module(path)
        if module is None:
            return []
        targets: list[Target] = []
        for binding in module.bindings.get(rest[0], []):
            targets += self._follow(module.scope, binding, rest, walk)
        if not targets:
            targets = self._starred(module, rest, walk)
        lazy = module.find("__getattr__")
        if not targets and lazy is not None:
            targets = [Target(lazy)]
        return targets

    def _starred(self, module: Module, parts: Sequence[str], walk: Walk) -> list[Target]:
        targets: list[Target] = []
        for star in module.stars:
            if parts[0].startswith("_") or not self._first_time(module, parts[0], walk, star.line):
                continue
            for place in self.packages.places(module.path, _split(star.module), star.level):
                found = self._inside(place, parts, walk)
                targets += [_through(module, star, parts[0], t) for t in found]
        return targets

    def star_is_lost(self, module: Module, star: Binding) -> bool:
        """Whether a star import brings names from outside the tree."""
        return not self.packages.places(module.path, _split(star.module), star.level)

    def _submodule(self, folder: str, rest: Sequence[str], walk: Walk) -> list[Target]:
        if not rest:
            return []
        place = self.packages.step(folder, rest[0])
        return self._inside(place, rest[1:], walk) if place else []

    def member(self, owner: Definition, name: str, walk: Walk | None = None) -> list[Target]:
        """A class's attribute: its own method or class variable, else its bases', depth first."""
        walk = walk or Walk(anything)
        scope = owner.body_scope()
        found = scope.bindings.get(name)
        if found:
            inner = [b.source for b in found if b.kind == "definition"]
            return [Target(scope.definition(inner[-1]) if inner else owner)]
        for base, hop in self.bases(owner, walk):
            inherited = self.member(base.definition, name, walk)
            if inherited:
                trail = (*base.trail, hop)
                return [Target(t.definition, trail + t.trail) for t in inherited]
        return []

    def bases(self, owner: Definition, walk: Walk) -> list[tuple[Target, Hop]]:
        """The base classes found in the tree, each with the line that names it; each class is asked once."""
        node = owner.nodes[0]
        path = owner.module.path
        if not isinstance(node, ast.ClassDef):
            return []
        if not self._first_time(owner.module, "class " + owner.qualname, walk, node.lineno):
            return []
        found: list[tuple[Target, Hop]] = []
        for base in node.bases:
            parts = dotted_parts(base)
            for target in self.resolve(owner.scope, parts, walk.may_open) if parts else []:
                if target.definition.kind == "class":
                    to_file = target.definition.module.path
                    found.append((target, Hop("inherits", path, base.lineno, parts[-1], to_file)))
        return found

    @staticmethod
    def _first_time(module: Module, name: str, walk: Walk, line: int) -> bool:
        key = (module.path, name, line)
        if key in walk.seen:
            return False
        walk.seen.add(key)
        return True


def dotted_parts(node: ast.AST | None) -> list[str]:
    """`a.b.c` as its parts; empty for anything else. Subscripts are looked through: `Base[T]` is `Base`."""
    parts: list[str] = []
    while isinstance(node, ast.Subscript):
        node = node.value
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return []
    return [node.id, *reversed(parts)]


def _alias_of(value: ast.AST | None) -> list[str]:
    if isinstance(value, ast.Call) and value.args:
        name = dotted_parts(value.func)
        return dotted_parts(value.args[0]) if name and name[-1] == "partial" else []
    return dotted_parts(value) if isinstance(value, (ast.Name, ast.Attribute)) else []


def _through(module: Module, binding: Binding, name: str, target: Target) -> Target:
    to_file = target.trail[0].file if target.trail else target.definition.module.path
    hop = Hop("imports", module.path, binding.line, name, to_file)
    return Target(target.definition, (hop, *target.trail))


def _split(dotted: str) -> list[str]:
    return dotted.split(".") if dotted else []


def _unique(targets: list[Target]) -> list[Target]:
    return list({t.definition.key: t for t in reversed(targets)}.values())[::-1]
