"""Modules of the tree, run lazily: a statement at top level runs when something it binds is first used."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import sys
import types
import typing
from typing import Any

from ..source import Unreadable, decode
from . import typed
from .bases import platform
from .calls import unknown_call
from .context import Run, run
from .files import Files, SourceFile
from .registered import Registry
from .standard import standard_module
from .thing import LIB, Thing

_PLATFORM = re.compile(r"is_(cuda|hip|npu|cpu|xpu|musa)$")


class NotBound(KeyError):
    """No statement of the module binds the name."""


class BrokenModule(Exception):
    """A statement at top level failed in a way that a lookup would hide."""


class Globals(dict[str, Any]):
    """A module's namespace, which defines a name when it is first looked up."""

    module: Module

    def __missing__(self, name: str) -> Any:
        return self.module.define(name)


class Module:
    """One module of the tree, as `import` binds it."""

    def __init__(self, modules: Modules, name: str, file: SourceFile | None, folder: str, builtins: Any) -> None:
        package = name if folder else name.rpartition(".")[0]
        namespace = Globals(__name__=name, __package__=package, __builtins__=builtins, __doc__=None, __spec__=None)
        namespace["__file__"] = f"{modules.files.tree.root}/{file.path}" if file else ""
        namespace["__path__"] = [folder]
        namespace.module = self
        # `dataclasses` reads annotations through sys.modules; the real module there holds what it looks for.
        known = types.ModuleType(name)
        vars(known).update(ClassVar=typing.ClassVar, typing=typing, InitVar=dataclasses.InitVar)
        sys.modules.setdefault(name, known)
        vars(self).update(
            _name=name,
            _file=file,
            _modules=modules,
            _done=set(),
            _running=[],
            _later=[],
            _globals=namespace,
            _folder=folder,
        )

    def __getattr__(self, name: str) -> Any:
        if name in self._globals:
            return self._globals[name]
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self._globals[name]
        except NotBound:
            below = self._modules.find(f"{self._name}.{name}")
            if below is None and self._file is not None and "__getattr__" in self._file.defines:
                return self._globals["__getattr__"](name)
            if below is None:
                raise AttributeError(f"module {self._name!r} has no attribute {name!r}") from None
            return below

    def __setattr__(self, name: str, value: Any) -> None:
        self._globals[name] = value

    def define(self, name: str) -> Any:
        """Run the statements that bind a name.

        Raises:
            NotBound: none does.
        """
        file: SourceFile | None = self._file
        if file is None:
            raise NotBound(name)
        self._modules.registry.loaded(self._name)
        self._bind(file, name)
        if not self._modules.depth:
            self._modules.registry.flush()
        return dict.__getitem__(self._globals, name)

    def _bind(self, file: SourceFile, name: str) -> None:
        if self._given(file, name):
            return
        numbers = file.defines.get(name, [])
        if self._running:
            # As in an import: what stands below the statement that runs now hasn't run yet.
            self._later += [number for number in numbers if number > self._running[-1]]
            numbers = [number for number in numbers if number < self._running[-1]] or numbers
        for number in numbers:
            self._execute(file, number)
        if name not in self._globals:
            self._from_star(file, name)
        if name not in self._globals:
            raise NotBound(name)
        self._replace(name)

    def _execute(self, file: SourceFile, number: int) -> None:
        if number in self._done:
            return
        self._done.add(number)
        code = file.code(number)
        for name in _class_names(code):
            if name in file.defines and name not in self._globals:
                self._try(name)
        self._modules.executed.append((file.path, number))
        self._modules.depth += 1
        self._running.append(number)
        try:
            exec(code, self._globals)
        except (KeyError, AttributeError) as error:
            # Python would take either for the lookup of the name itself having failed.
            raise BrokenModule(f"{file.path}: {type(error).__name__}: {error}") from error
        finally:
            self._modules.depth -= 1
            self._running.pop()
        while self._later and not self._running:
            self._execute(file, self._later.pop(0))

    def _try(self, name: str) -> None:
        try:
            self._globals[name]
        except NotBound:
            return

    def _given(self, file: SourceFile, name: str) -> bool:
        """Whether a fact gives a module's variable, or it is set while the program runs and so isn't known."""
        numbers = file.defines.get(name, ())
        annotation = typed.variable_annotation(file, numbers, name)
        if annotation is None:
            return False
        fact = run().oracle.facts.get(name)
        if fact is not None:
            self._globals[name] = typed.convert(fact, annotation, self)
            return True
        if name in file.changed and typed.starts_empty(file, numbers, name):
            self._globals[name] = typed.make(name, annotation.removeprefix("Optional[").removesuffix("]"), self, False)
            return True
        return False

    def _replace(self, name: str) -> None:
        """Functions whose answer is a fact, and those that ask for the platform."""
        value = dict.__getitem__(self._globals, name)
        if isinstance(value, type) and value.__module__ == self._name:
            typed.fill(value, self)
        if not callable(value) or isinstance(value, type | Thing) or getattr(value, "__module__", "") != self._name:
            return
        fact = run().oracle.facts.get(f"{name}()")
        found = _PLATFORM.match(name)
        if fact is not None:
            given = typed.convert(fact, getattr(value, "__annotations__", {}).get("return", ""), self)
            self._globals[name] = lambda *args, **kwargs: given
        elif run().sinks.replaces(f"{self._name}.{name}") or self._file.compiles:
            self._globals[name] = _known(f"{self._name}.{name}", value, self._file.compiles)
        elif found and _takes_nothing(value):
            wanted = found[1]
            self._globals[name] = lambda: platform() == wanted

    def _from_star(self, file: SourceFile, name: str) -> None:
        for star in file.stars:
            module = self._modules.imported(star.module or "", star.level, self._globals)
            if isinstance(module, Thing):
                continue
            try:
                self._globals[name] = getattr(module, name)
            except AttributeError:
                continue
            return

    def __repr__(self) -> str:
        return f"<module {self._name}>"


def _known(path: str, function: Any, compiled: bool) -> Any:
    """A function of the tree that leads out of Python: by its entry in the sinks data, if one fits the call."""

    def call(*args: Any, **kwargs: Any) -> Any:
        sink = run().sinks.find(path, args, kwargs)
        if sink is not None:
            return sink.call(args, kwargs)
        return unknown_call(path, args, kwargs) if compiled else function(*args, **kwargs)

    return functools.wraps(function)(call)


def _takes_nothing(function: Any) -> bool:
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return code is not None and code.co_argcount == 0


def _class_names(code: types.CodeType) -> set[str]:
    """Names used in class bodies: Python looks those up without asking the module's namespace for what it lacks."""
    found: set[str] = set()
    for inner in (one for one in code.co_consts if isinstance(one, types.CodeType)):
        if "__module__" in inner.co_names and "__qualname__" in inner.co_names:
            found.update(inner.co_names, _class_names(inner))
    return found


class Modules:
    """The tree's modules of one run.

    Attributes:
        executed: statements run, as file and number.
        depth: how many top-level statements are being run, one from within the other.
    """

    def __init__(self, files: Files, entry: str, builtins: dict[str, Any]) -> None:
        self.files = files
        self.builtins = {**builtins, "__import__": self.import_}
        self.modules: dict[str, Module | None] = {}
        self.executed: list[tuple[str, int]] = []
        self.depth = 0
        self.roots = search_roots(files, entry)
        self.registry = Registry(self)

    def import_(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        """`__import__` for the tree's code."""
        module = self.imported(name, level, globals or {})
        if fromlist or level or isinstance(module, Thing):
            first = name.partition(".")[0]
            return module if fromlist or level or "." not in name else Thing(first, LIB)
        return self.imported(name.partition(".")[0], 0, {})

    def imported(self, name: str, level: int, namespace: Any) -> Any:
        """The module that an import statement names."""
        if level:
            package = namespace.get("__package__", "").split(".")
            base = ".".join(package[: len(package) - level + 1])
            name = f"{base}.{name}" if name else base
        found = self.find(name)
        if found is not None:
            self.registry.imported(name)
            return found
        if self.find(name.partition(".")[0]) is not None and not self.standard(name):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        known = self.standard(name)
        return known if known is not None else library(name)

    def standard(self, name: str) -> Any:
        """A module of the standard library, or None."""
        return standard_module(name)

    def find(self, name: str) -> Module | None:
        """A module of the tree, or None."""
        if name not in self.modules:
            self.modules[name] = self._make(name)
        return self.modules[name]

    def _make(self, name: str) -> Module | None:
        if name not in self.files.found:
            self.files.found[name] = self._locate(name)
        place = self.files.found[name]
        if place is None:
            return None
        path, folder = place
        return Module(self, name, self.files.get(path) if path else None, folder, self.builtins)

    def _locate(self, name: str) -> tuple[str, str] | None:
        path = name.replace(".", "/")
        for base in self.roots:
            full = os.path.join(base, path) if base else path
            for candidate, folder in ((f"{full}/__init__.py", full), (f"{full}.py", "")):
                if self.files.tree.is_file(candidate):
                    return candidate, folder
            if self.files.tree.is_folder(full) and name:
                return "", full
        return None

    def name_of(self, path: str) -> str:
        """The dotted name of a file."""
        best = max((base for base in self.roots if path.startswith(f"{base}/" if base else "")), key=len)
        plain = path[len(best) + 1 if best else 0 :].removesuffix(".py").removesuffix("/__init__")
        return plain.replace("/", ".")

    def operator(self, name: str) -> Any:
        """A custom operator that a module of the tree that is loaded defines as a function."""
        for module in list(self.modules.values()):
            if module is not None and module._file is not None and name in module._file.defines:
                value = getattr(module, name)
                return value if isinstance(value, types.FunctionType) else None
        return None

    def derived(self) -> set[str]:
        """Names of classes that some class of the tree derives from."""
        return set(self.below())

    def below(self) -> dict[str, list[tuple[str, str]]]:
        """By name, the classes of the tree that derive from one of that name, with their files."""
        return class_index(self.files)[1]

    def class_named(self, name: str, near: Any) -> Any:
        """A class of the tree by its name: as the file of `near` knows it, else wherever it is defined."""
        module = self.find(type(near).__module__) if near is not None else None
        found = typed.resolve(name, module)
        if found is not None:
            return found
        paths = class_index(self.files)[0].get(name, [])
        home = self.find(self.name_of(paths[0])) if paths else None
        return getattr(home, name) if home is not None else None

    def chosen(self, owner: Any, name: str, value: Any) -> Any:
        """What is stored where code stores an unknown object: one of the class that the facts name."""
        return typed.chosen(self, owner, name, value)


def library(name: str) -> Thing:
    """A module that isn't in the tree."""
    from .calls import attribute

    thing = Thing(name.partition(".")[0], LIB)
    for part in name.split(".")[1:]:
        found = attribute(thing, part)
        thing = found if isinstance(found, Thing) else Thing(f"{thing._name}.{part}", LIB)
    return thing


def search_roots(files: Files, entry: str) -> list[str]:
    """Folders that `import` looks in: the one that holds the entry's outermost package, the root, `python`, `src`."""
    parts = entry.split("/")[:-1]
    folders = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
    packages = [folder for folder in folders if files.tree.is_file(f"{folder}/__init__.py")]
    top = packages[0].rpartition("/")[0] if packages else ""
    return list(dict.fromkeys([top, "", "python", "src"]))


def prepare(run_: Run, modules: Modules) -> None:
    """Tie a run to its modules."""
    run_.tree = modules


_CLASS = re.compile(r"^[ \t]*class[ \t]+(\w+)[ \t]*(?:\(([^)]*)\))?[ \t]*:", re.MULTILINE)
_classes: dict[str, tuple[dict[str, list[str]], dict[str, list[tuple[str, str]]]]] = {}


def class_index(files: Files) -> tuple[dict[str, list[str]], dict[str, list[tuple[str, str]]]]:
    """Every class of the tree by name, with its files; and by name, the classes that derive from it, with theirs."""
    key = files.tree.root
    if key not in _classes:
        homes: dict[str, list[str]] = {}
        below: dict[str, list[tuple[str, str]]] = {}
        for path in files.python_files():
            try:
                text = decode(files.tree.load(path))
            except Unreadable:
                continue
            for name, given in _CLASS.findall(text):
                homes.setdefault(name, []).append(path)
                for base in dict.fromkeys(re.findall(r"\w+", given)):
                    below.setdefault(base, []).append((name, path))
        _classes[key] = (homes, below)
    return _classes[key]


def classes_known(files: Files) -> bool:
    """Whether the index of classes has been made."""
    return files.tree.root in _classes
