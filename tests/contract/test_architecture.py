"""The architecture as a test: who may import whom, who may start processes, how long a file is.

Every check is a function from source to the list of its breaches, so that it can be fed a breach.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import pytest

from ..support import ROOMS, ROOT, project_files

LONGEST_FILE = 400  # lines

HEAVY = {"docker", "langgraph", "openai", "pydantic", "textual"}
"""What `sleuth --help` must not load: each costs more than the rest of the start-up."""

PROCESS_STARTERS = re.compile(
    r"(?:subprocess|_posixsubprocess|pty|multiprocessing|asyncio\.subprocess"
    r"|asyncio\.create_subprocess_\w+|concurrent\.futures\.ProcessPoolExecutor"
    r"|os\.(?:system|popen|startfile|exec[lv]\w*|spawn[lv]\w*|posix_spawnp?|fork|forkpty))(?:\.|$)"
)

INSIDE_STARTERS = {"tools/inside/power/child.py"}
"""Scripts that start a child where they run, which is inside the sandbox: its limits hold for the child as well."""

MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|farm|root)/")
REGISTRY = re.compile(
    r"(?:pypi|files\.pythonhosted|registry\.npmjs|deb\.debian)\.org|--(?:extra-)?index-url|--find[-]links"
)

Name = tuple[int, str]
"""A line number and the dotted, absolute name of what that line imports or uses."""

Check = Callable[[PurePosixPath, str], str | None]


# --- What a file names


def package_of(path: PurePosixPath) -> list[str]:
    """Give the package that holds `path`: `agent/cli/main.py` lies in `sleuth.agent.cli`."""
    return ["sleuth", *path.parent.parts]


def names_in(source: str, path: PurePosixPath) -> list[Name]:
    """List what `source` imports, anywhere in it, and every dotted name rooted in an import."""
    tree = ast.parse(source, str(path))
    found: list[Name] = []
    for node in ast.walk(tree):
        found += [(getattr(node, "lineno", 0), name) for name in _imported(node, path)]
    return sorted({*found, *_attributes(tree)})


def _imported(node: ast.AST, path: PurePosixPath) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            base = _absolute(module, level, path)
            yield base
            yield from (f"{base}.{alias.name}" for alias in names)
        case ast.Call(
            func=ast.Name("__import__" | "import_module") | ast.Attribute(attr="import_module" | "__import__"),
            args=[ast.Constant(value=str(module)), *_],
        ):
            level = len(module) - len(module.lstrip("."))
            yield _absolute(module.lstrip("."), level, path)


def _absolute(module: str | None, level: int, path: PurePosixPath) -> str:
    package = package_of(path)
    base = package[: len(package) - level + 1] if level else []
    return ".".join([*base, *([module] if module else [])])


def _attributes(tree: ast.Module) -> Iterator[Name]:
    bound = _bound_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            head, *rest = _dotted(node)
            if head in bound:
                yield node.lineno, ".".join([bound[head], *rest])


def _bound_names(tree: ast.Module) -> dict[str, str]:
    """Map each name that an `import` binds to the module it stands for."""
    bound = {}
    for node in ast.walk(tree):
        for alias in node.names if isinstance(node, ast.Import) else []:
            top = alias.name.split(".")[0]
            bound[alias.asname or top] = alias.name if alias.asname else top
    return bound


def _dotted(node: ast.expr) -> list[str]:
    """Split `a.b.c` into its parts; the first is empty where no plain name is at the root."""
    if isinstance(node, ast.Attribute):
        return [*_dotted(node.value), node.attr]
    return [node.id if isinstance(node, ast.Name) else ""]


# --- What it may name


def is_in(path: PurePosixPath, *folders: str) -> bool:
    """Tell whether `path` lies in one of `folders`."""
    return any(path.is_relative_to(folder) for folder in folders)


def is_under(name: str, *modules: str) -> bool:
    """Tell whether the dotted `name` is one of `modules` or something inside it."""
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def arrows_point_down(path: PurePosixPath, name: str) -> str | None:
    """A room imports itself and the rooms below it."""
    above = ROOMS[ROOMS.index(path.parts[0]) + 1 :]
    if is_under(name, *(f"sleuth.{room}" for room in above)):
        return f"{path.parts[0]}/ lies below it"
    return None


def rooms_go_by_their_package(path: PurePosixPath, name: str) -> str | None:
    """A room is no top-level module once it is installed."""
    if is_under(name, *ROOMS) and not is_in(path, "tools/inside"):
        return "no such module once installed; import relatively"
    return None


def front_ends_stay_in_front(path: PurePosixPath, name: str) -> str | None:
    """The investigation runs without its command line and its screens."""
    fronts = ("agent/cli", "agent/tui")
    if is_under(name, "sleuth.agent.cli", "sleuth.agent.tui") and not is_in(path, *fronts):
        return "only agent/cli and agent/tui may"
    if is_under(name, "textual") and not is_in(path, "agent/tui"):
        return "only agent/tui may"
    return None


def inside_stands_alone(path: PurePosixPath, name: str) -> str | None:
    """What runs in the sandbox finds the standard library there, and its own siblings."""
    if not is_in(path, "tools/inside") or is_under(name, "sleuth.tools.inside"):
        return None
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names or (ROOT / "tools/inside" / f"{top}.py").is_file():
        return None
    return "tools/inside/ has only the standard library and its siblings"


def only_the_sandbox_starts_processes(path: PurePosixPath, name: str) -> str | None:
    """One room starts processes, so one room answers for limits and clean-up."""
    if PROCESS_STARTERS.match(name) and not is_in(path, "sandbox") and str(path) not in INSIDE_STARTERS:
        return "only sandbox/ starts processes"
    return None


CHECKS: tuple[Check, ...] = (
    arrows_point_down,
    rooms_go_by_their_package,
    front_ends_stay_in_front,
    inside_stands_alone,
    only_the_sandbox_starts_processes,
)


def breaches(source: str, path: PurePosixPath) -> list[str]:
    """List what `source`, as the file `path`, names and may not."""
    return [
        f"{path}:{line}: {name}: {reason}"
        for line, name in names_in(source, path)
        for check in CHECKS
        if (reason := check(path, name))
    ]


def room_sources() -> list[PurePosixPath]:
    files = (PurePosixPath(path.relative_to(ROOT).as_posix()) for path in project_files())
    return [path for path in files if path.suffix == ".py" and path.parts[0] in ROOMS]


def test_rooms_keep_to_the_import_contract() -> None:
    sources = room_sources()
    assert {path.parts[0] for path in sources} == set(ROOMS)
    found = [breach for path in sources for breach in breaches((ROOT / path).read_text(encoding="utf-8"), path)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source", "named"),
    [
        ("sandbox/clone.py", "from ..tools import base", "sleuth.tools"),
        ("tools/grep.py", "import sleuth.playbooks.schema", "sleuth.playbooks.schema"),
        ("tools/grep.py", "def f():\n    from ..agent import events", "sleuth.agent"),
        ("tools/grep.py", "from .. import agent", "sleuth.agent"),
        ("tools/__init__.py", "from ..playbooks import x", "sleuth.playbooks"),
        ("playbooks/loader.py", "import_module('sleuth.agent.graph')", "sleuth.agent.graph"),
        ("playbooks/loader.py", "importlib.import_module('..agent', p)", "sleuth.agent"),
        ("agent/graph.py", "from tools import registry", "tools.registry"),
        ("agent/graph.py", "from .cli.main import run", "sleuth.agent.cli.main"),
        ("agent/export/md.py", "from ..tui import app", "sleuth.agent.tui"),
        ("agent/cli/main.py", "import textual.app", "textual.app"),
        ("tools/inside/trace.py", "import yaml", "yaml"),
        ("tools/inside/trace.py", "from ..base import Tool", "sleuth.tools.base"),
        ("tools/grep.py", "import subprocess", "subprocess"),
        ("tools/grep.py", "import os as o\no.system('ls')", "os.system"),
        ("tools/grep.py", "from os import posix_spawn", "os.posix_spawn"),
        ("agent/graph.py", "__import__('pty')", "pty"),
        ("agent/graph.py", "import asyncio\nasyncio.create_subprocess_exec('ls')", "asyncio"),
        ("agent/graph.py", "from concurrent.futures import ProcessPoolExecutor", "concurrent"),
        ("agent/graph.py", "import multiprocessing.pool", "multiprocessing"),
    ],
)
def test_a_breach_is_found(path: str, source: str, named: str) -> None:
    found = breaches(source, PurePosixPath(path))
    assert any(named in breach for breach in found), found


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("agent/cli/main.py", "from ...sandbox import clone\nfrom ..graph import build"),
        ("agent/tui/app.py", "import textual\nfrom ..cli import main"),
        ("playbooks/loader.py", "from ..tools import registry\nimport yaml"),
        ("tools/inside/trace.py", "import ast\nfrom . import fail"),
        ("sandbox/spawn.py", "import subprocess, os\nos.execv('/bin/true', [])"),
        ("tools/grep.py", "import os\nos.environ\nself.fork()\nsubprocess = 'a word'"),
    ],
)
def test_what_is_allowed_is_not_a_breach(path: str, source: str) -> None:
    assert breaches(source, PurePosixPath(path)) == []


def test_ruff_bans_the_same_process_starters() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    banned = settings["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]
    starters = {f"os.{name}" for name in dir(os) if PROCESS_STARTERS.match(f"os.{name}")}
    assert starters >= {"os.system", "os.execvpe", "os.posix_spawn", "os.fork"}
    assert not starters - set(banned)
    assert all(PROCESS_STARTERS.match(name) for name in banned)


# --- What really loads

ASK_FOR_HELP = """
import sys
sys.argv = ["sleuth", "--help"]
from sleuth.agent.cli.main import run
try:
    code = run()
except SystemExit as stop:
    code = stop.code
assert not code, code
"""


def loaded_by(source: str, folder: Path) -> set[str]:
    """Run `source` in a new Python in `folder` and name the top-level modules it loaded."""
    tell = "\nimport json, sys\nprint()\nprint(json.dumps([name.split('.')[0] for name in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", source + tell],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    loaded = loaded_by(ASK_FOR_HELP, tmp_path)
    assert "sleuth" in loaded
    assert not loaded & HEAVY


def test_a_heavy_import_is_seen(tmp_path: Path) -> None:
    assert loaded_by("import pydantic", tmp_path) & HEAVY == {"pydantic"}


# --- What the files look like


def too_long(text: str) -> bool:
    return len(text.splitlines()) > LONGEST_FILE


def leaks(text: str) -> list[str]:
    """List the machine paths and registry addresses in `text`."""
    patterns = (MACHINE_PATH, REGISTRY, re.compile(re.escape(str(ROOT)) + r"(?!\w)"))
    return [match.group() for pattern in patterns for match in pattern.finditer(text)]


def project_texts() -> Iterator[tuple[str, str]]:
    for path in project_files():
        try:
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def test_no_python_file_is_too_long() -> None:
    long = [name for name, text in project_texts() if name.endswith(".py") and too_long(text)]
    assert not long, f"over {LONGEST_FILE} lines: {long}"


def test_no_file_names_a_machine_or_a_registry() -> None:
    found = {name: leaked for name, text in project_texts() if (leaked := leaks(text))}
    assert not found


def test_the_file_checks_can_fail() -> None:
    assert too_long("\n" * (LONGEST_FILE + 1))
    assert not too_long("\n" * LONGEST_FILE)
    for leak in ["/" + "root/x", " /" + "work/main", "https://pypi" + ".org/simple", f"{ROOT}/x"]:
        assert leaks(f"see {leak} for more"), leak
    assert not leaks("the network/ and the root/ folder; PyPI")
