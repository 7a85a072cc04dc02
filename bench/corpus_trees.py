"""The source trees that a corpus row names: a release from PyPI, or a commit of a repository that is at hand."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sleuth.sandbox.errors import UsageError
from sleuth.sandbox.wheel import cache_folder, fetch_source

_GIT = re.compile(r"git\+\w+:[\w.-]+/(?P<name>[\w.-]+)@(?P<revision>\w[\w./-]*\^?)")


class NoTree(Exception):
    """A tree that can't be had; the message says why."""


@dataclass(frozen=True)
class Trees:
    """Where trees come from.

    Attributes:
        repositories: git repositories to look for commits in, in this order.
    """

    repositories: Sequence[Path] = ()

    def root(self, package: str, file: str) -> Path:
        """The folder below which `file` lies.

        Args:
            package: `NAME==VERSION`, or `git+HOST:OWNER/NAME@REVISION`.
            file: as the row says it. A repository may keep its package one folder down (`python/sglang`).

        Raises:
            NoTree: the release, the commit or the file can't be had.
        """
        tree = self._commit(package) if package.startswith("git+") else _release(package)
        for base in (tree, *sorted(path for path in tree.iterdir() if path.is_dir())):
            if (base / file).is_file():
                return base
        raise NoTree(f"{package} holds no {file}")

    def _commit(self, package: str) -> Path:
        asked = _GIT.fullmatch(package)
        if asked is None:
            raise NoTree(f"{package} isn't git+HOST:OWNER/NAME@REVISION")
        for repository in self.repositories:
            digest = (
                _git(repository, "rev-parse", "--verify", "--quiet", asked["revision"] + "^{commit}").decode().strip()
            )
            if digest:
                return _checked_out(repository, digest, asked["name"])
        raise NoTree(f"{package}: no repository given with --git has that commit")


def _release(package: str) -> Path:
    try:
        return fetch_source(package)
    except (UsageError, OSError) as error:
        raise NoTree(" ".join(str(error).split())) from error


def _checked_out(repository: Path, digest: str, name: str) -> Path:
    """The files of a commit, unpacked once into the cache."""
    folder = cache_folder() / f"{name}-{digest[:9]}"
    if folder.is_dir():
        return folder
    archive = _git(repository, "archive", "--format=tar", digest)
    if not archive:
        raise NoTree(f"{repository} can't give the files of {digest}")
    scratch = Path(tempfile.mkdtemp(dir=cache_folder(), prefix=".commit-"))
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(scratch / "source", filter="data")
        (scratch / "source").rename(folder)
    except (tarfile.TarError, OSError) as error:
        raise NoTree(f"{digest} of {repository} can't be unpacked: {error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


def _git(repository: Path, *arguments: str) -> bytes:
    """What git says; nothing when it fails."""
    argv = ["git", "-C", str(repository), *arguments]
    # A partial clone must not ask its origin for what it lacks.
    environment = {**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}
    done = subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, env=environment, check=False)
    return done.stdout if done.returncode == 0 else b""
