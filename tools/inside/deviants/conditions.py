"""What a test comes to in an ordinary setting: one platform, and what is assumed about classes and flags."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ..exactly_once.program import Function, last_name
from .survey import Survey

PLATFORMS = ("cuda", "hip", "npu", "xpu", "musa", "cpu", "hpu", "tpu", "mps")
_ASKS = re.compile(r"_*is_(\w+?)_?$")
_SPELLED = {"rocm": "hip", "ascend": "npu", "metal": "mps", "gpu": "cuda"}
_ALIKE = {"cuda_alike": ("cuda", "hip", "musa"), "cuda_or_hip": ("cuda", "hip")}
_FOLDERS = {"npu": "npu", "ascend": "npu", "xpu": "xpu", "cpu": "cpu", "hpu": "hpu", "rocm": "hip", "hip": "hip"}
DEEPEST = 5


@dataclass(frozen=True)
class Setting:
    """What is taken to hold.

    Attributes:
        flags: the value of every identifier that says who applies the factor; None: not known.
        classes: names of classes that `isinstance` confirms; any other is denied.
        known: identifiers with a value of their own.
    """

    platform: str = "cuda"
    flags: bool | None = False
    classes: frozenset[str] = frozenset()
    known: dict[str, bool] = field(default_factory=dict)

    def but(self, **changes: object) -> Setting:
        """The same with changes."""
        return replace(self, **changes)  # type: ignore[arg-type]


def platform_of(path: str) -> str:
    """The platform that a file belongs to by its path, `cuda` unless it says another one."""
    words = re.split(r"[/_.]", path)
    return next((_FOLDERS[word] for word in words if word in _FOLDERS), "cuda")


def elsewhere(text: str) -> bool:
    """Whether a test or a name belongs to a platform other than the ordinary one."""
    words = re.split(r"[^a-z]+", text.lower())
    return any(word in _FOLDERS or word in ("aiter", "amx", "musa", "ipex") for word in words)


@dataclass
class Judge:
    """Decides tests of one function."""

    survey: Survey
    function: Function

    def decide(self, test: ast.expr, setting: Setting, depth: int = 0) -> bool | None:
        """True or false in every such setting, None where it depends on something else."""
        if isinstance(test, ast.BoolOp):
            values = [self.decide(part, setting, depth) for part in test.values]
            stop = isinstance(test.op, ast.Or)
            if stop in values:
                return stop
            return None if None in values else not stop
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            value = self.decide(test.operand, setting, depth)
            return None if value is None else not value
        if isinstance(test, ast.Constant):
            return bool(test.value)
        if isinstance(test, ast.Call):
            return self._call(test, setting, depth)
        if isinstance(test, ast.IfExp):
            chosen = self.decide(test.test, setting, depth)
            return None if chosen is None else self.decide(test.body if chosen else test.orelse, setting, depth)
        if isinstance(test, ast.Name | ast.Attribute):
            return self._name(test, setting, depth)
        return None

    def _call(self, test: ast.Call, setting: Setting, depth: int) -> bool | None:
        name = last_name(test.func)
        if name == "isinstance" and len(test.args) == 2:
            return bool(class_names(test.args[1]) & setting.classes)
        if name == "bool" and len(test.args) == 1:
            return self.decide(test.args[0], setting, depth)
        if name == "getattr" and len(test.args) > 1 and isinstance(test.args[1], ast.Constant):
            return setting.flags if self.survey.is_flag(str(test.args[1].value)) else None
        tested = class_test(test)
        if tested:
            return tested in setting.classes
        return _platform(name, setting.platform)

    def _name(self, test: ast.Name | ast.Attribute, setting: Setting, depth: int) -> bool | None:
        name = last_name(test)
        if name in setting.known:
            return setting.known[name]
        if self.survey.is_flag(name):
            return setting.flags
        if isinstance(test, ast.Name) and depth < DEEPEST:
            made = self.made(test.id)
            if made is not None:
                return self.decide(made, setting, depth + 1)
        if "aiter" in name and setting.platform != "hip":
            return False  # AMD's library, whatever else its switch depends on
        return _platform(name, setting.platform)

    def made(self, name: str) -> ast.expr | None:
        """The only expression that a local or a module's name is bound to."""
        local = [s for s in ast.walk(self.function.node) if _binds(s, name)]
        if not local:
            local = [s for s in self.function.module.binders.get(name, []) if _binds(s, name)]
            if len(local) != len(self.function.module.binders.get(name, [])):
                return None
        return local[0].value if len(local) == 1 else None  # type: ignore[attr-defined]

    def speaks(self, test: ast.expr) -> bool:
        """Whether a test has to do with flags, classes or platforms."""
        for node in ast.walk(test):
            if isinstance(node, ast.Call) and (last_name(node.func) == "isinstance" or class_test(node)):
                return True
            if isinstance(node, ast.Name | ast.Attribute):
                name = last_name(node)
                if self.survey.is_flag(name) or _platform(name, "cuda") is not None or "aiter" in name:
                    return True
        return False


def class_names(node: ast.expr) -> set[str]:
    """Names of the class or the classes that `isinstance` is handed."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return {name for part in parts if (name := last_name(part))}


def class_test(call: ast.Call) -> str:
    """What a call asks that is handed an object's method class and a name for it: `is_wrapped(x.quant_method, "a")`."""
    if isinstance(call.func, ast.Name) and len(call.args) == 2 and isinstance(call.args[1], ast.Constant):
        name = call.func.id
        if name.startswith(("is_", "_is_")) and isinstance(call.args[1].value, str):
            return f"{name}:{call.args[1].value}"
    return ""


def tested_classes(tests: Iterable[ast.expr]) -> set[str]:
    """Classes that tests ask for."""
    found: set[str] = set()
    for test in tests:
        for node in ast.walk(test):
            if isinstance(node, ast.Call):
                if last_name(node.func) == "isinstance" and len(node.args) == 2:
                    found |= class_names(node.args[1])
                elif class_test(node):
                    found.add(class_test(node))
    return found


def _platform(name: str, platform: str) -> bool | None:
    asked = _ASKS.fullmatch(name)
    if asked is None:
        return None
    if asked[1] in _ALIKE:
        return platform in _ALIKE[asked[1]]
    word = _SPELLED.get(asked[1], asked[1])
    return platform == word if word in PLATFORMS else None


def _binds(statement: ast.AST, name: str) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
        and statement.targets[0].id == name
    )
