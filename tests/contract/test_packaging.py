"""What is shipped: the packages, the locks, the wheel, and the targets that set a clone up."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ..support import ROOMS, ROOT, project_files

NOT_SHIPPED = {".md", ".pyc"}
"""Kinds of file in a room that are for readers of the repository only."""


def settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def run(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run `command` in `cwd` as a make that nobody called would, with `env` added."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**kept, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


# --- The packages


def packages_on_disk(root: Path) -> set[str]:
    """Name the package of every folder in a room that holds Python files, listed or not."""
    folders = {path.parent.relative_to(root) for room in ROOMS for path in (root / room).rglob("*.py")}
    return {".".join(["sleuth", *folder.parts]) for folder in folders}


def test_pyproject_lists_every_package() -> None:
    listed = set(settings()["tool"]["setuptools"]["packages"])
    on_disk = packages_on_disk(ROOT)
    assert listed == on_disk, (
        f"[tool.setuptools] packages: add {sorted(on_disk - listed)}, drop {sorted(listed - on_disk)}"
    )


def test_a_new_folder_is_a_new_package(tmp_path: Path) -> None:
    folder = tmp_path / "agent" / "tui" / "screens"
    folder.mkdir(parents=True)
    (folder / "case.py").touch()
    assert packages_on_disk(tmp_path) == {"sleuth.agent.tui.screens"}


def test_every_package_has_an_init() -> None:
    missing = [
        package
        for package in packages_on_disk(ROOT)
        if not (ROOT.joinpath(*package.split(".")[1:]) / "__init__.py").is_file()
    ]
    assert not missing


# --- The locks


def plain(name: str) -> str:
    """Give the one spelling that a package index has for `name`."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s<>=!~;\[]", name.strip())[0]).lower()


def pins(lock: str) -> dict[str, str]:
    """Map each package that the lock file `lock` pins to the block of text that does so."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)
    return {plain(block): block for block in blocks if "==" in block}


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_every_pin_has_hashes(lock: str) -> None:
    assert pins(lock)
    for name, block in pins(lock).items():
        assert re.match(r"\S+==\S+ (;.*)?\\\n    --hash=sha256:[0-9a-f]{64}", block), name


def test_the_locks_pin_what_pyproject_asks_for() -> None:
    asked = {plain(need) for need in settings()["project"]["dependencies"]}
    tools = {plain(need) for need in settings()["dependency-groups"]["dev"]}
    assert asked <= set(pins("requirements.lock"))
    assert asked | tools <= set(pins("requirements-dev.lock"))


def test_the_locks_agree() -> None:
    lean, whole = pins("requirements.lock"), pins("requirements-dev.lock")
    assert {name: block.split()[0] for name, block in lean.items()} == {name: whole[name].split()[0] for name in lean}


# --- The wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the tree, without any index."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    for path in project_files():
        copy = tree / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    built = run(
        *(sys.executable, "-I", "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"),
        *("--no-build-isolation", "--wheel-dir", folder, tree),
        cwd=folder,
    )
    assert built.returncode == 0, built.stderr
    (found,) = folder.glob("*.whl")
    return found


def shipped(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_every_file_of_the_rooms(wheel: Path) -> None:
    names = [path.relative_to(ROOT) for path in project_files() if path.suffix not in NOT_SHIPPED]
    expected = {f"sleuth/{name.as_posix()}" for name in names if name.parts[0] in ROOMS}
    assert any(name.endswith(".yaml") for name in expected)
    assert not expected - shipped(wheel)


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    tops = {tuple(name.split("/")[:2]) for name in shipped(wheel)}
    rooms = {("sleuth", room) for room in ROOMS}
    assert {top for top in tops if not top[0].endswith(".dist-info")} == rooms


def test_the_wheel_runs_elsewhere(wheel: Path, tmp_path: Path) -> None:
    python = installed(wheel, tmp_path / "venv")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    where = run(python, "-c", "import sleuth.agent as a; print(a.__file__)", cwd=elsewhere)
    assert where.stdout.startswith(str(tmp_path)), where
    listed = run(python.with_name("sleuth"), "playbooks", "list", cwd=elsewhere)
    assert listed.returncode == 0, listed.stderr
    for playbook in (ROOT / "playbooks" / "builtin").glob("*.yaml"):
        assert playbook.stem in listed.stdout


def installed(wheel: Path, venv: Path) -> Path:
    """Install `wheel` alone in a new `venv` that borrows this one's packages; give its Python."""
    run(sys.executable, "-I", "-m", "venv", "--without-pip", venv, cwd=venv.parent)
    python = venv / "bin" / "python"
    done = run(
        *(sys.executable, "-I", "-m", "pip", "--python", python, "install", "--quiet"),
        *("--no-deps", "--no-index", wheel),
        cwd=venv.parent,
    )
    assert done.returncode == 0, done.stderr
    (site,) = venv.glob("lib/python*/site-packages")
    # A plain path: the .pth of this environment's editable install is not followed from there.
    (site / "borrowed.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n", encoding="utf-8")
    return python


# --- The targets


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Lay out what `make` reads, in a folder whose name is no identifier."""
    folder = tmp_path / "a clone-1"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "requirements-dev.lock"):
        shutil.copy2(ROOT / name, folder)
    return folder


def stand_in(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 127", "no working Python 3.11 or newer among: "),
        ("echo old 3.9", "no working Python 3.11 or newer among: "),
        ("echo bare 3.12", "sudo apt-get install python3.12-venv"),
    ],
)
def test_an_unfit_python_is_refused(clone: Path, script: str, said: str) -> None:
    python = stand_in(clone / "python", script)
    done = run("make", "setup", f"PYTHON={python}", cwd=clone)
    assert done.returncode != 0
    assert said in done.stderr
    assert not (clone / ".venv").exists()


# Stands in for a Python and for the one in the virtual environment that it makes. It notes how
# it was called, and its pip works while there is a file named `network`.
PYTHON_STAND_IN = """
echo "$*" >> calls
case "$*" in
*find_spec*) echo "$0" ;;
*"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
*"pip install"*) test -e network || { echo no route to the index; exit 1; } ;;
*) pwd; echo version %s ;;
esac
"""


def set_up(clone: Path, version: str = "3.12") -> tuple[int, str]:
    """Run `make setup` with a stand-in Python: its status and the steps that it took, or stderr."""
    python = stand_in(clone / f"python{version}", PYTHON_STAND_IN % version)
    (clone / "calls").unlink(missing_ok=True)
    done = run("make", "setup", f"PYTHON={python}", cwd=clone)
    calls = (clone / "calls").read_text(encoding="utf-8")
    kinds = {"-m venv": "venv", "--require-hashes": "packages", "-e .": "project"}
    steps = [kind for line in calls.splitlines() for mark, kind in kinds.items() if mark in line]
    return done.returncode, done.stderr if done.returncode else " ".join(steps)


def test_a_failed_setup_is_not_taken_for_a_good_one(clone: Path) -> None:
    code, said = set_up(clone)
    assert code != 0
    assert "no route to the index" in said
    assert "setup: pip failed; .venv/setup.log has all it said" in said
    (clone / "network").touch()
    assert set_up(clone) == (0, "venv packages project")


def test_setup_does_again_only_what_has_changed(clone: Path) -> None:
    (clone / "network").touch()
    assert set_up(clone) == (0, "venv packages project")
    assert set_up(clone) == (0, "")
    (clone / "pyproject.toml").write_text("# another\n", encoding="utf-8")
    assert set_up(clone) == (0, "project")
    (clone / "requirements-dev.lock").write_text("# another\n", encoding="utf-8")
    assert set_up(clone) == (0, "venv packages project")
    assert set_up(clone, "3.13") == (0, "venv packages project")
    (clone / ".venv" / "bin" / "python").unlink()
    assert set_up(clone, "3.13") == (0, "venv packages project")
    moved = clone.rename(clone.with_name("moved"))
    assert set_up(moved, "3.13") == (0, "venv packages project")


@pytest.mark.parametrize(("code", "finished"), [(0, True), (1, True), (3, True), (2, False), (4, False)])
def test_a_finished_investigation_is_a_good_demo(clone: Path, code: int, finished: bool) -> None:
    stand_in(clone / ".venv" / "bin" / "sleuth", f"echo the case; exit {code}")
    done = run("make", "-o", "setup", "demo", cwd=clone)
    assert (done.returncode == 0) is finished
    assert done.stdout == "the case\n"
    assert f"exit code {'was ' if finished else ''}{code}" in done.stderr
