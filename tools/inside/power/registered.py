"""Functions that register themselves when their file is imported: lazy loading must not lose them."""

from __future__ import annotations

import ast
import re
from typing import Any

from ..source import Unreadable, decode
from .files import Files

_DECORATED = re.compile(r"^@(?:\w+\.)*(\w*regist\w*)\b(?![^\n]*fake)", re.MULTILINE | re.IGNORECASE)
_IMPORT = re.compile(r"^(?:from[ \t]+([.\w]+)[ \t]+import\b|import[ \t]+([\w.]+))", re.MULTILINE)
_SKIP = re.compile(r"custom_op|fake")

_known: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
"""By root and file: modules imported at its top level, names of its registering decorators. Kept for all runs."""


class Registry:
    """Registrations that an import would have made, made when the module that defines the decorator is loaded."""

    def __init__(self, modules: Any) -> None:
        self.modules = modules
        self.reachable: dict[str, None] = {}
        self.made: set[tuple[str, str]] = set()
        self.defining: set[str] = set()
        self.pending: list[str] = []

    def imported(self, name: str) -> None:
        """An import statement ran: what the module imports in its turn would be loaded too."""
        queue = [name]
        while queue:
            one = queue.pop()
            if one in self.reachable:
                continue
            self.reachable[one] = None
            module = self.modules.find(one)
            if module is not None and module._file is not None:
                imports, decorators = scanned(self.modules.files, module._file.path)
                queue += self._absolute(module, imports)
                for decorator in decorators:
                    self._note(one, decorator)

    def _absolute(self, module: Any, imports: list[str]) -> list[str]:
        package = module._globals["__package__"].split(".")
        found = []
        for name in imports:
            level = len(name) - len(name.lstrip("."))
            base = ".".join(package[: len(package) - level + 1]) if level else ""
            full = ".".join(filter(None, (base, name.lstrip("."))))
            if self.modules.find(full) is not None:
                found.append(full)
        return found

    def _note(self, name: str, decorator: str) -> None:
        module = self.modules.find(name)
        source = module._file.type_imports.get(decorator)
        if source is not None:
            where, level, _ = source
            package = module._globals["__package__"].split(".")
            base = ".".join(package[: len(package) - level + 1]) if level else ""
            self.made.add((".".join(filter(None, (base, where))), name))
            if ".".join(filter(None, (base, where))) in self.defining:
                self.pending.append(name)

    def loaded(self, name: str) -> None:
        """Something of a module is being used: run what registers with it."""
        if name in self.defining:
            return
        self.defining.add(name)
        for home, user in sorted(self.made):
            if home == name:
                self.pending.append(user)

    def flush(self) -> None:
        """Make the registrations that are due; not from within a statement that may still be defining things."""
        while self.pending:
            self._run(self.pending.pop(0))

    def _run(self, user: str) -> None:
        module = self.modules.find(user)
        for number, statement in enumerate(module._file.statements):
            for decorator in getattr(statement, "decorator_list", ()):
                if _DECORATED.match("@" + ast.unparse(decorator)) and not _SKIP.search(ast.unparse(decorator)):
                    module._execute(module._file, number)


def scanned(files: Files, path: str) -> tuple[list[str], list[str]]:
    """What a file imports at its top level, and its registering decorators, from its text alone."""
    if (files.tree.root, path) not in _known:
        try:
            text = decode(files.tree.read(path))
        except Unreadable:
            text = ""
        imports = [first or second for first, second in _IMPORT.findall(text)]
        decorators = [name for name in dict.fromkeys(_DECORATED.findall(text)) if not _SKIP.search(name)]
        _known[files.tree.root, path] = (imports, decorators)
    return _known[files.tree.root, path]


def scanned_files(files: Files) -> list[str]:
    """Files whose text has been looked at."""
    return [path for root, path in _known if root == files.tree.root]
