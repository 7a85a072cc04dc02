"""The whole engine: statements on top, registrations below, one object for one entry."""

from __future__ import annotations

import ast
import os
import re

from .core import Frame
from .program import Class
from .statements import Statements
from .values import Obj

_STORES = r"\b{}\b\s*(\[[^\]]*\]\s*=|\.(setdefault|append|update|add|insert)\()"
_DEFINED = re.compile(r"^[ \t]*def[ \t]+(\w+)", re.MULTILINE)


class Engine(Statements):
    """Follows one entry of a tree; see the parts it is made of."""

    def fill_registry(self, value: Obj) -> None:
        """Run the decorators that fill a container made at the top level, once, before it is first read.

        The functions that store into it, and those of the same file that call these, are looked for as
        decorators in the files of the container's package.
        """
        place = self.registries.pop(value, None)
        if place is None:
            return
        path, name = place
        module = self.program.module(path)
        if module is None:
            return
        registrars = self._registrars(module.text, name)
        if not registrars:
            return
        folder = os.path.dirname(path)
        pattern = re.compile(r"^@(?:[\w.]+\.)?(" + "|".join(map(re.escape, registrars)) + r")\b", re.MULTILINE)
        with self.aside():
            for source in self.sources:
                if source.startswith(folder + "/") or not folder:
                    self._register_file(source, pattern)
        value.open = not value.attrs or value.attrs.get("each") is self.unbound

    @staticmethod
    def _registrars(text: str, name: str) -> list[str]:
        bodies: dict[str, str] = {}
        heads = list(_DEFINED.finditer(text))
        for head, following in zip(heads, [*heads[1:], None], strict=True):
            bodies.setdefault(head[1], "")
            bodies[head[1]] += text[head.end() : following.start() if following else len(text)]
        stores = re.compile(_STORES.format(re.escape(name)))
        found = [n for n, body in bodies.items() if stores.search(body)]
        for _ in range(2):
            found += [n for n, body in bodies.items() if n not in found and any(f"{f}(" in body for f in found)]
        wrapped = [n for n in found if n in ("decorator", "wrapper", "inner", "_decorator")]
        # The head of a function that defines an inner decorator precedes it.
        names = [h[1] for h in heads]
        found += [names[i - 1] for i, n in enumerate(names) if n in wrapped and i and names[i - 1] not in found]
        return [n for n in dict.fromkeys(found) if n not in wrapped]

    def _register_file(self, source: str, pattern: re.Pattern[str]) -> None:
        module = self.program.module(source)
        if module is None or not pattern.search(module.text):
            return
        frame = self.module_frame(module)
        for name, chunks in module.chunks.items():
            for chunk in chunks:
                if not pattern.search(chunk.text):
                    continue
                made = self.program.definition(module, chunk)
                node = made.node if made is not None else None
                for decorator in getattr(node, "decorator_list", []):
                    if pattern.match("@" + ast.unparse(decorator)):
                        self._decorate(decorator, name, made, frame)

    def _decorate(self, decorator: ast.expr, name: str, made: object, frame: Frame) -> None:
        call = ast.Call(decorator, [ast.Name(name, ast.Load())], [])
        ast.copy_location(call, decorator)
        ast.fix_missing_locations(call)
        self.evaluate(call, frame, self.diagrams.true)

    def patched(self) -> list[tuple[str, int, str]]:
        """Top-level statements of the files read that replace an attribute of something else: they weren't followed."""
        found = []
        for path, module in self.program.opened.items():
            for statement in module.header if module is not None else ():
                targets = statement.targets if isinstance(statement, ast.Assign) else []
                if any(isinstance(target, ast.Attribute) for target in targets):
                    why = f"`{ast.unparse(targets[0])}` is replaced when the module is imported"
                    found.append((path, statement.lineno, why))
        return found

    def made_classes(self) -> list[Class]:
        """Classes that an unknown object was taken to have."""
        return list({value.owner: None for value in self.instances_made() if value.owner is not None})
