"""Where a dotted name leads: the resolver by itself."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from sleuth.tools.inside.imports import Resolver
from sleuth.tools.inside.packages import Packages
from sleuth.tools.inside.source import Tree


def resolver(root: Path, files: Mapping[str, str]) -> Resolver:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Resolver(Tree(str(root)))


def leads(found: Resolver, file: str, name: str) -> list[tuple[str, str, str]]:
    module = found.module(file)
    assert module is not None
    targets = [t.definition for t in found.resolve(module.scope, name.split("."))]
    return [(d.module.path, d.qualname, d.kind) for d in targets]


FILES = {
    "pkg/__init__.py": "",
    "pkg/api/__init__.py": "from .core import *\nfrom .core import Engine as Motor\nfrom . import extra\n",
    "pkg/api/core.py": """\
class Base:
    def run(self):
        pass

class Engine(Base):
    LIMIT = 3

    class Inner:
        def deep(self):
            pass

def start():
    pass

_private = 1
engine = Engine()
Same = Engine
if start:
    def either(): pass
else:
    def either(): pass
""",
    "pkg/api/extra.py": "from .core import start as begin\n",
    "pkg/lazy.py": "def __getattr__(name):\n    return name\n",
    "pkg/main.py": "",
}


TRIED = "try:\n    from pkg import absent\nexcept ImportError:\n    absent = None"


@pytest.mark.parametrize(
    ("line", "name", "expected"),
    [
        (TRIED, "absent", [("pkg/main.py", "absent", "variable")]),
        ("import pkg.api.core", "pkg.api.core.Engine", [("pkg/api/core.py", "Engine", "class")]),
        ("import pkg.api", "pkg.api.core.Engine", [("pkg/api/core.py", "Engine", "class")]),
        ("import pkg.api.core as c", "c.Engine.run", [("pkg/api/core.py", "Base.run", "function")]),
        ("import pkg.api.core as c", "c.Engine.LIMIT", [("pkg/api/core.py", "Engine", "class")]),
        ("import pkg.api.core as c", "c.Engine.Inner", [("pkg/api/core.py", "Engine.Inner", "class")]),
        ("import pkg.api.core as c", "c", [("pkg/api/core.py", "", "module")]),
        ("import pkg.api.core as c", "c.absent", []),
        ("from pkg.api import core", "core.start", [("pkg/api/core.py", "start", "function")]),
        ("from pkg.api import Engine", "Engine", [("pkg/api/core.py", "Engine", "class")]),
        ("from pkg.api import Motor", "Motor", [("pkg/api/core.py", "Engine", "class")]),
        ("from pkg.api import _private", "_private", []),
        ("from pkg.api.core import _private", "_private", [("pkg/api/core.py", "_private", "variable")]),
        ("from pkg.api.core import engine", "engine.run", [("pkg/api/core.py", "engine", "variable")]),
        ("from pkg.api.core import Same", "Same.run", [("pkg/api/core.py", "Base.run", "function")]),
        ("from pkg.api import extra as e", "e.begin", [("pkg/api/core.py", "start", "function")]),
        ("from .api import extra", "extra.begin", [("pkg/api/core.py", "start", "function")]),
        ("from . import api", "api.Motor", [("pkg/api/core.py", "Engine", "class")]),
        ("from .. import pkg", "pkg.api.Motor", [("pkg/api/core.py", "Engine", "class")]),
        ("from ... import pkg", "pkg.api.Motor", []),
        ("from pkg import lazy", "lazy.Anything", [("pkg/lazy.py", "__getattr__", "function")]),
        ("from pkg.api import *", "Engine", [("pkg/api/core.py", "Engine", "class")]),
        ("import torch", "torch.nn.Linear", []),
        ("", "print", []),
        (
            "from pkg.api.core import either",
            "either",
            [("pkg/api/core.py", "either", "function"), ("pkg/api/core.py", "either", "function")],
        ),
    ],
)
def test_names(tmp_path: Path, line: str, name: str, expected: list[tuple[str, str, str]]) -> None:
    assert leads(resolver(tmp_path, FILES | {"pkg/main.py": line}), "pkg/main.py", name) == expected


def test_imports_into_the_tree_that_lead_nowhere_are_remembered(tmp_path: Path) -> None:
    lines = "from pkg.api import nothing\nfrom torch import nn\nfrom .gone import x\n"
    found = resolver(tmp_path, FILES | {"pkg/main.py": lines})
    for name in ("nothing", "nn", "x"):
        assert leads(found, "pkg/main.py", name) == []
    assert found.missing == {("pkg/main.py", 1): "pkg.api.nothing", ("pkg/main.py", 3): "gone.x"}


def test_methods_see_past_their_class(tmp_path: Path) -> None:
    text = "def f(): pass\n\nclass C:\n    def f(self): pass\n    def g(self):\n        return f\n"
    found = resolver(tmp_path, {"m.py": text})
    module = found.module("m.py")
    assert module is not None
    method = module.find("C.g")
    assert method is not None
    (target,) = found.resolve(method.body_scope(), ["f"])
    assert target.definition.qualname == "f"


def test_a_parameter_hides_an_import(tmp_path: Path) -> None:
    found = resolver(tmp_path, FILES | {"m.py": "from pkg.api import start\n\ndef f(start):\n    start()\n"})
    module = found.module("m.py")
    assert module is not None
    function = module.find("f")
    assert function is not None
    assert found.resolve(function.body_scope(), ["start"]) == []


def test_a_file_is_parsed_once_under_all_its_names(tmp_path: Path) -> None:
    found = resolver(tmp_path, FILES)
    (tmp_path / "other.py").symlink_to("pkg/api/core.py")
    assert found.module("other.py") is found.module("pkg/api/core.py")
    assert list(found.modules) == ["pkg/api/core.py"]


@pytest.mark.parametrize(
    ("importer", "dotted", "level", "expected"),
    [
        ("a/b/c.py", "x", 1, ["a/b/x.py"]),
        ("a/b/c.py", "x", 2, ["a/x"]),
        ("a/b/c.py", "", 1, ["a/b"]),
        ("a/b/__init__.py", "c", 1, ["a/b/c.py"]),
        ("a/b/c.py", "x", 3, ["x.py"]),
        ("a/b/c.py", "x", 4, []),
        ("a/b/c.py", "x", 0, ["x.py"]),
        ("a/b/c.py", "a.x", 0, ["a/x"]),
        ("a/b/c.py", "b.x", 0, []),
        ("deep/er/root/pkg/m.py", "pkg.n", 0, ["deep/er/root/pkg/n.py"]),
        ("a/b/c.py", "kernel.ops", 0, ["kernel/python/kernel/ops.py"]),
    ],
)
def test_places(tmp_path: Path, importer: str, dotted: str, level: int, expected: list[str]) -> None:
    names = """
        a/__init__.py a/b/__init__.py a/b/c.py a/b/x.py a/x/__init__.py a/x.py x.py
        deep/er/root/pkg/__init__.py deep/er/root/pkg/m.py deep/er/root/pkg/n.py
        kernel/python/kernel/__init__.py kernel/python/kernel/ops.py
        """
    tree = resolver(tmp_path, dict.fromkeys(names.split(), "")).tree
    assert Packages(tree).places(importer, dotted.split(".") if dotted else [], level) == expected
