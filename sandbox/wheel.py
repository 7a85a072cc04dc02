"""The source inside a released wheel, fetched once with pip and kept in a cache."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path

from .errors import UsageError
from .process import run

DOWNLOAD_SECONDS = 600
_UNSIGNED = re.compile(r"\.dist-info/RECORD(\.jws|\.p7s)?$")
"""RECORD can't hold its own hash, nor those of its signatures."""
TARGETS = [
    [f"--python-version={python}", "--implementation=cp"]
    + [f"--platform=manylinux{tag}_{arch}" for tag in ("_2_34", "_2_28", "_2_17", "2014")]
    + ["--platform=any"]
    for arch in ("x86_64", "aarch64")
    for python in ("3.11", "3.12", "3.10", "3.13")
]
"""Wheels to ask for, in order. Sources are only read, so any platform's wheel serves; all machines get the same."""
_UNREACHABLE = re.compile(r"(?:NewConnection|ConnectTimeout|NameResolution|Proxy|SSL|ReadTimeout)Error\b.*")
"""pip ends with `No matching distribution` for every target when it could not ask anyone."""


class WheelError(UsageError):
    """A wheel that can't be fetched or isn't what it says it is."""


def cache_folder() -> Path:
    """Where wheels are kept: $SLEUTH_CACHE, else $XDG_CACHE_HOME/sleuth, else ~/.cache/sleuth.

    Raises:
        WheelError: that folder can't be made.
    """
    base = os.environ.get("SLEUTH_CACHE")
    xdg = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(base) if base else Path(xdg) / "sleuth"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WheelError(f"can't make the cache {folder}: {error.strerror}; set SLEUTH_CACHE to a folder") from error
    return folder


def fetch_source(requirement: str) -> Path:
    """The unpacked source of a wheel, fetched without its dependencies when it isn't in the cache yet.

    Args:
        requirement: `NAME==VERSION`.

    Returns:
        A folder whose files match the wheel's own RECORD.

    Raises:
        WheelError: not of that form, can't be had, or damaged; the message says what pip said and what else would do.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.+!_-]*", requirement):
        raise WheelError(f"stock: pypi:{requirement}: an exact NAME==VERSION is needed, e.g. pypi:sglang==0.5.12")
    cache = cache_folder()
    folder = cache / requirement.replace("==", "-")
    if folder.is_dir():
        return folder
    print(f"fetching {requirement} into {cache}", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".fetch-") as scratch:
        wheel = _download(requirement, Path(scratch))
        unpacked = Path(scratch) / "source"
        _unpack(wheel, unpacked)
        _settle(unpacked, folder)
    return folder


def _download(requirement: str, scratch: Path) -> Path:
    said: list[str] = []
    for target in TARGETS:
        argv = [*_pip(), "download", "--quiet", "--no-deps", "--only-binary=:all:", f"--dest={scratch}"]
        try:
            done = run([*argv, *target, requirement], seconds=DOWNLOAD_SECONDS)
        except (TimeoutError, FileNotFoundError) as error:
            raise _cannot(requirement, str(error)) from error
        wheels = sorted(scratch.glob("*.whl"))
        if done.returncode == 0 and wheels:
            return wheels[0]
        said.append(done.stderr.decode("utf-8", "replace"))
        if _UNREACHABLE.search(said[-1]):
            raise _cannot(requirement, f"the package index can't be reached: {_UNREACHABLE.findall(said[-1])[-1]}")
        if "No matching distribution" not in said[-1]:
            break
    errors = [line for line in said[-1].splitlines() if "ERROR" in line or "error" in line]
    raise _cannot(requirement, (errors or said[-1].splitlines() or ["pip said nothing"])[-1].strip())


def _pip() -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-I", "-m", "pip"]
    found = shutil.which("pip") or shutil.which("pip3")
    if found is None:
        raise WheelError("pip is needed to fetch a stock wheel and isn't here; install it or unpack the wheel yourself")
    return [found]


def _cannot(requirement: str, why: str) -> WheelError:
    name = requirement.partition("==")[0]
    return WheelError(
        f"can't fetch the stock source {requirement}: {why}\n"
        f"Without a network: on a machine that has one run `pip download --no-deps {requirement}`, unpack the wheel "
        f"(`python -m zipfile -e {name}-*.whl FOLDER`), and say `--stock FOLDER`."
    )


def _unpack(wheel: Path, target: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)
    except (zipfile.BadZipFile, zlib.error, ValueError, RuntimeError, NotImplementedError, OSError) as error:
        raise WheelError(f"{wheel.name} can't be unpacked: {error}") from error
    records = list(target.glob("*.dist-info/RECORD"))
    if len(records) != 1:
        raise WheelError(f"{wheel.name} holds {len(records) or 'no'} RECORD files, so nothing vouches for its content")
    _check(target, records[0])
    for path in target.rglob("*"):
        if path.is_file():
            path.chmod(0o444)


def _check(root: Path, record: Path) -> None:
    """Compare every file with the hash that the wheel states (PyPA spec: Recording installed projects)."""
    stated = _stated(record)
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    for name in (n for n in {**stated, **found} if not _UNSIGNED.search(n)):
        if name not in found:
            raise WheelError(f"{name} stands in RECORD and isn't there: the wheel is damaged")
        if not _matches(found[name], stated.get(name, "")):
            raise WheelError(f"{name} doesn't match the hash in RECORD: the wheel is damaged")


def _stated(record: Path) -> dict[str, str]:
    """Each file's hash as RECORD states it."""
    try:
        with record.open(newline="", encoding="utf-8") as stream:
            return {row[0]: row[1] for row in csv.reader(stream) if row}
    except (csv.Error, IndexError, UnicodeDecodeError) as error:
        raise WheelError(f"RECORD can't be read: {error}; the wheel is damaged") from error


def _matches(path: Path, stated: str) -> bool:
    kind, _, expected = stated.partition("=")
    if kind not in ("sha256", "sha384", "sha512"):
        return False
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, kind).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == expected


def _settle(unpacked: Path, folder: Path) -> None:
    """Move the finished folder into place; another process that was quicker is fine."""
    try:
        unpacked.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
