"""Names: locals, closures, module globals bound on demand, imports, and the subclasses of a class."""

from __future__ import annotations

import ast
import builtins
import os
import re
from typing import Any

from .core import Frame
from .diagram import Leaf, Node, leaves
from .guards import Guards
from .program import Class, Function, Module
from .sharing import part
from .values import NONE, UNBOUND, ClassValue, Const, External, FunctionValue, ModuleValue, Obj, Opaque
from .wording import short

_WEIGHTS = re.compile(r"^(topk|top_k|routing|router|routed|expert|moe)_?(weight|weights|probs|vals|values)_?\d*$")
_MAKERS = {
    "gather",
    "softmax",
    "sigmoid",
    "sum",
    "to",
    "float",
    "topk",
    "new_zeros",
    "new_empty",
    "new_full",
    "contiguous",
    "view",
}


class Names(Guards):
    """Looks names up."""

    def lookup(self, name: str, frame: Frame, pc: Node) -> Node:
        """The value of a name, `UNBOUND` where nothing binds it."""
        at: Frame | None = frame
        if name in frame.globals:
            at = self.module_frame(frame.module)
        while at is not None:
            if at.function is None and at.outer is None:
                return self.module_name(at.module, name)
            if name in at.env:
                found = at.env[name]
                if at.outer is not None and any(v is UNBOUND for v, _ in self.values(found, pc)):
                    outer = self.lookup(name, at.outer, pc) if at.outer.function is None else self.unbound
                    return self.filled(found, outer)
                return found
            at = at.outer
        return self.unbound

    def filled(self, node: Node, default: Node) -> Node:
        """A value, the default where nothing set it."""
        return self.diagrams.map(lambda v: default if v is UNBOUND else v, node)

    def module_frame(self, module: Module) -> Frame:
        """The frame of a module's top level."""
        if module.path not in self.module_frames:
            self.module_frames[module.path] = Frame(module, None, {}, None, self.unbound, self.diagrams.false)
        return self.module_frames[module.path]

    def module_name(self, module: Module, name: str) -> Node:
        """A module's global, bound by running just the top-level statements that bind it."""
        frame = self.module_frame(module)
        if name in frame.env:
            return frame.env[name]
        chunks, binders = module.chunks.get(name, []), module.binders.get(name, [])
        if not chunks and not binders:
            return self._starred(module, name) or self._submodule(module, name) or self._builtin(name)
        frame.env[name] = self.unbound
        if name in module.changing and not chunks:
            frame.env[name] = self._changing(module, name, frame)
            return frame.env[name]
        for chunk in chunks[-1:]:
            made = self.program.definition(module, chunk)
            frame.env[name] = self.leaf(self.definition_value(made))
        after = chunks[-1].line if chunks else 0
        for statement in binders:
            if statement.lineno > after and statement not in self.executed:
                self.executed.add(statement)
                with self.aside():
                    self.execute([statement], frame, self.diagrams.true)
        return frame.env[name]

    def definition_value(self, made: Class | Function | None) -> Any:
        """The value that a definition binds."""
        if isinstance(made, Class):
            return ClassValue(made)
        return FunctionValue(made) if made is not None else UNBOUND

    def _changing(self, module: Module, name: str, frame: Frame) -> Node:
        """A global that functions rebind: anything its annotation allows."""
        for statement in module.binders.get(name, []):
            if isinstance(statement, ast.AnnAssign):
                hint, number = self.annotation(statement.annotation, frame)
                return self.unknown(name, hint, frame, statement, number)
        return self.unknown(name, None, frame, module.binders[name][0])

    def _starred(self, module: Module, name: str) -> Node | None:
        for statement in module.binders.get("*", []):
            if isinstance(statement, ast.ImportFrom) and not name.startswith("_"):
                place = self.program.place(module.path, statement.module or "", statement.level)
                other = self.program.at_place(place) if place else None
                if other is not None and other is not module:
                    found = self.module_name(other, name)
                    if found is not self.unbound and not _is_builtin(found):
                        return found
        return None

    def _submodule(self, module: Module, name: str) -> Node | None:
        if not module.path.endswith("/__init__.py"):
            return None
        place = self.program.packages.step(os.path.dirname(module.path), name)
        found = self.program.at_place(place) if place else None
        return self.leaf(ModuleValue(found)) if found else None

    def _builtin(self, name: str) -> Node:
        if name in ("True", "False", "None"):
            return self.leaf(Const.of({"True": True, "False": False, "None": None}[name]))
        return self.leaf(External(f"builtins.{name}")) if hasattr(builtins, name) else self.unbound

    def marked(self, name: str, value: Node) -> Node:
        """What is called routing weights is routed, where it is fresh: it can't have been scaled out of sight."""
        if not _WEIGHTS.search(name):
            return value

        def mark(v: Any) -> Any:
            return self.routed() if isinstance(v, Opaque) and v.hint is None and _is_fresh(v.text) else v

        return self.diagrams.map(mark, value)

    def bind(self, frame: Frame, name: str, value: Node, pc: Node) -> None:
        """Set a variable in the worlds of `pc`."""
        target: Frame | None = frame
        if name in frame.globals:
            target = self.module_frame(frame.module)
        elif name in frame.nonlocals:
            target = frame.outer
            while target is not None and name not in target.env:
                target = target.outer
        target = target or frame
        if target is not frame or target.function is None:
            self.escapes(value)
        part(target.aliases, name, pc if target is frame else self.absolute(pc), self.diagrams)
        self.overwrite(target, name, value, pc, target is frame)

    def overwrite(self, frame: Frame, name: str, value: Node, pc: Node, running: bool = True) -> None:
        """Set a variable, its aliases staying what they are; of a frame that isn't the running one it outlives this."""
        pc = pc if running else self.absolute(pc)
        old = frame.env.get(name, self.unbound)
        value = self.marked(name, value)
        merged = self.diagrams.under(self.alive, self.diagrams.ite(pc, value, old))
        frame.env[name] = self.tidy(merged, name)

    def tidy(self, node: Node, name: str) -> Node:
        """Several unknown values that carry nothing become one: fewer worlds, and none that matters is lost.

        The same alternatives become the same value, so that a condition on it has one answer.
        """
        if isinstance(node, Leaf):
            return node
        key = id(node)
        if key not in self._tidied:
            values = [leaf.value for leaf in leaves(node)]
            opaque = [v for v in values if isinstance(v, Opaque)]
            if len(opaque) + (len(values) > 3) < 2 or not all(map(_is_plain, values)):
                self._tidied[key] = self._tidy_partly(node, name, [v for v in opaque if v.hint is None])
            else:
                hints = {v.hint for v in opaque}
                number = all(not isinstance(v, Opaque) or v.number for v in values)
                text = f"{name}#{len(self._tidied)}" if name in self._tidy_names else name
                self._tidy_names.add(name)
                self._tidied[key] = self.leaf(Opaque(short(text), hints.pop() if len(hints) == 1 else None, number))
        return self._tidied[key]

    def _tidy_partly(self, node: Node, name: str, opaque: list[Opaque]) -> Node:
        """The unknown values among others that carry something, or are None, made one; no class is lost."""
        if len(opaque) < 2:
            return node
        one = Opaque(short(f"{name}#{len(self._tidied)}"), number=all(v.number for v in opaque))
        return self.diagrams.map(lambda v: one if isinstance(v, Opaque) and v.hint is None else v, node)

    def import_statement(self, statement: ast.Import | ast.ImportFrom, frame: Frame, pc: Node) -> None:
        """Bind what an import binds."""
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                dotted = alias.name if alias.asname else alias.name.split(".")[0]
                self.bind(frame, alias.asname or dotted, self._whole(frame.module, dotted, 0), pc)
            return
        for alias in statement.names:
            if alias.name != "*":
                value = self.imported(frame.module, statement.module or "", statement.level, alias.name)
                self.bind(frame, alias.asname or alias.name, value, pc)

    def _whole(self, importer: Module, dotted: str, level: int) -> Node:
        place = self.program.place(importer.path, dotted, level)
        module = self.program.at_place(place) if place else None
        return self.leaf(ModuleValue(module) if module else External(dotted))

    def imported(self, importer: Module, dotted: str, level: int, name: str) -> Node:
        """What `from dotted import name` binds."""
        place = self.program.place(importer.path, dotted, level)
        if place is None:
            return self.leaf(External(f"{dotted}.{name}" if dotted else name))
        module = self.program.at_place(place)
        if module is not None and module is not importer:
            found = self.module_name(module, name)
            if found is not self.unbound and not _is_builtin(found):
                return found
        inner = None if place.endswith(".py") else self.program.packages.step(place, name)
        submodule = self.program.at_place(inner) if inner else None
        return self.leaf(ModuleValue(submodule) if submodule else External(f"{dotted}.{name}"))

    def is_available(self, statement: ast.stmt, frame: Frame) -> Node:
        """Whether an import inside `try` works: always for modules of the tree, else a guard."""
        names = []
        if isinstance(statement, ast.ImportFrom) and self.program.place(
            frame.module.path, statement.module or "", statement.level
        ):
            return self.diagrams.true
        if isinstance(statement, ast.ImportFrom):
            names = [(statement.module or "").split(".")[0]]
        elif isinstance(statement, ast.Import):
            names = [
                a.name.split(".")[0] for a in statement.names if not self.program.place(frame.module.path, a.name, 0)
            ]
        result = self.diagrams.true
        for name in names:
            if name not in ("torch", "typing", "numpy"):
                result = self.diagrams.both(result, self.atom(f"{name} can be imported", frame, statement))
        return result

    # Subclasses

    @property
    def class_index(self) -> dict[str, list[tuple[str, str]]]:
        """For each base's name, the classes of the tree that name it as a base: (path, class)."""
        return self.program.texts.classes

    @property
    def sources(self) -> list[str]:
        """Python files of the tree, tests left out."""
        return self.program.texts.sources

    def definers(self, name: str) -> list[Class]:
        """Classes of the tree that define a method of that name."""
        cache: dict[str, list[Class]] = self.program.shared.setdefault("definers", {})
        if name not in cache:
            cache[name] = []
            head = re.compile(rb"^[ \t]+def " + re.escape(name).encode() + rb"\b", re.MULTILINE)
            for path in self.program.texts.holding(f"def {name}".encode()):
                if head.search(self.program.texts.data(path)):
                    module = self.program.module(path)
                    for chunks in module.chunks.values() if module else ():
                        if chunks[-1].kind == "class" and head.search(chunks[-1].text.encode()):
                            made = self.program.definition(module, chunks[-1]) if module else None
                            if isinstance(made, Class) and name in made.functions:
                                cache[name].append(made)
        return cache[name]

    def subclasses(self, owner: Class) -> list[Class]:
        """Classes of the tree below a class, itself first, each once."""
        found, waiting = [owner], [owner.name]
        seen = {(owner.module.path, owner.name)}
        while waiting:
            for path, name in self.class_index.get(waiting.pop(0), []):
                if (path, name) in seen:
                    continue
                seen.add((path, name))
                made = self.program.top_level(path, name)
                if isinstance(made, Class):
                    found.append(made)
                    waiting.append(name)
        return found


def _is_fresh(text: str) -> bool:
    """Whether a value is a name that nobody computed here, or comes straight from a tensor operation."""
    if "#" in text or "…" in text:
        return False
    head = re.match(r"([\w.]+)\(", text)
    if head is None or not text.endswith(")"):
        return "(" not in text
    made = head[1].startswith(("torch.", "F.", "nn.functional.", "mx.")) or head[1].rpartition(".")[2] in _MAKERS
    return made or _is_score(text)


def _is_score(text: str) -> bool:
    """Whether a value is picked from scores, of whatever logits: a factor on these would not be a factor on it."""
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return False
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MAKERS:
        if node.func.attr in ("softmax", "sigmoid"):
            return True
        node = node.func.value
    return False


def _is_plain(value: Any) -> bool:
    return isinstance(value, Opaque) or (isinstance(value, Const) and value.kind in ("int", "float"))


def _is_builtin(node: Node) -> bool:
    value = getattr(node, "value", None)
    return isinstance(value, External) and value.dotted.startswith("builtins.")


__all__ = ["NONE", "Names", "Obj"]
