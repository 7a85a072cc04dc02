"""The clone: the deployed source as every call sees it, made without copying or touching the original."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from .applying import apply_patches
from .deployment import PYPI, Deployment
from .errors import PatchError, SandboxUnavailable
from .layer import Layer
from .patches import Patch, located, read_patches
from .wheel import fetch_source

FICLONE = 0x40049409
"""ioctl that makes a file share its blocks with another (linux/fs.h); refused where the file system can't."""


@dataclass(frozen=True)
class View:
    """One tree as the sandbox shows it: an original that is never written, and a layer of changed files over it."""

    lower: Path
    layer: Path | None = None


@dataclass(frozen=True)
class Clone:
    """What `/clone` and `/stock` are.

    Attributes:
        tree: the deployed source.
        stock: the same release unpatched; None when the deployment doesn't say.
        patches: the suspects' patches, in the order they were applied or listed.
        notes: what a reader should know about how the clone came about.
        steps: what `/patches` is; None when the patches can't be told apart, or there are none.
    """

    tree: View
    stock: View | None
    patches: list[Patch]
    notes: list[str]
    steps: Path | None = None

    def originals(self) -> list[Path]:
        """The folders that must come out of a case byte for byte as they went in."""
        return sorted({self.tree.lower} | ({self.stock.lower} if self.stock else set()))

    def digests(self) -> dict[Path, str]:
        """`tree_digest` of every folder that a call can see: both originals and the layers over them."""
        return {root: tree_digest(root) for root in set(self._roots()) if root}

    def digest(self, digests: dict[Path, str] | None = None) -> str:
        """SHA-256 over everything a call can see, from `digests` where they are known already."""
        known = self.digests() if digests is None else digests
        return hashlib.sha256("\n".join(known[root] if root else "-" for root in self._roots()).encode()).hexdigest()

    def _roots(self) -> list[Path | None]:
        views = [self.tree, *([self.stock] if self.stock else [])]
        return [root for view in views for root in (view.lower, view.layer)]


def make_clone(deployment: Deployment, layers: Path) -> Clone:
    """Build the clone of a deployment; patched files are written below `layers`, nothing else is copied.

    Raises:
        ConfigError: the description contradicts itself or names what doesn't exist.
        PatchError: a patch can't be read or doesn't apply.
        WheelError: `stock: pypi:…` can't be fetched.
    """
    patches = [p for entry in deployment.patches for p in read_patches(entry)]
    _refuse_twins(deployment, patches)
    steps = layers / "patches"
    shutil.rmtree(steps, ignore_errors=True)
    tree, stock, notes = _views(deployment, layers, patches)
    views = [tree, *([stock] if stock else [])]
    roots = [root for view in views for root in (view.lower, view.layer) if root]

    def has(name: str) -> bool:
        return any(os.path.lexists(root / name) for root in roots)

    patches = [replace(p, files=located(p, has)) for p in patches]
    return Clone(tree, stock, patches, notes, steps if steps.is_dir() else None)


def _views(deployment: Deployment, layers: Path, patches: list[Patch]) -> tuple[View, View | None, list[str]]:
    """The deployed tree, the stock tree, and notes for a reader."""
    stock = _stock_root(deployment)
    if deployment.tree is None:
        assert stock is not None  # Deployment refuses a description without either
        layer, notes = _layer(stock, layers / "patched", patches, reverse=False)
        return View(stock, layer), View(stock), notes
    if stock is not None:
        _refuse_other_layout(deployment, deployment.tree, stock)
        return View(deployment.tree), View(stock), _take_apart(deployment.tree, layers, patches)
    if not patches:
        return View(deployment.tree), None, []
    layer, notes = _layer(deployment.tree, layers / "unpatched", patches, reverse=True)
    return View(deployment.tree), View(deployment.tree, layer), notes


def top_level(root: Path) -> list[str]:
    """What a release puts side by side: names in its folder, without hidden ones and packaging metadata."""
    return sorted(p.name for p in root.iterdir() if p.name[0] != "." and p.suffix not in (".dist-info", ".egg-info"))


def _refuse_other_layout(deployment: Deployment, tree: Path, stock: Path) -> None:
    """A repository beside a wheel has its packages one folder further down; nothing would match."""
    folders = [name for name in top_level(stock) if (stock / name).is_dir()]
    if not folders or any((tree / name).exists() for name in folders):
        return
    below = next((p for p in sorted(tree.iterdir()) if any((p / name).is_dir() for name in folders)), None)
    hint = f"; did you mean {below}?" if below else ""
    text = f"{tree} has none of the folders that {stock} has ({', '.join(folders[:4])}){hint}"
    raise deployment.problem(text, "tree")


def _take_apart(tree: Path, layers: Path, patches: list[Patch]) -> list[str]:
    """Take the patches out of a tree that holds them, only to see what each one changed."""
    try:
        return _layer(tree, layers / "unpatched", patches, reverse=True)[1]
    except PatchError as error:
        shutil.rmtree(layers / "patches", ignore_errors=True)
        return [f"the patches can't be told apart in {tree}: {error}"]


def _stock_root(deployment: Deployment) -> Path | None:
    if deployment.stock is None:
        return None
    if deployment.stock.startswith(PYPI):
        return fetch_source(deployment.stock.removeprefix(PYPI))
    return Path(deployment.stock)


def _refuse_twins(deployment: Deployment, patches: list[Patch]) -> None:
    seen: dict[str, Patch] = {}
    for patch in patches:
        other = seen.setdefault(patch.id, patch)
        if other is not patch:
            text = f"{other.path} and {patch.path} are both called {patch.id!r}; give one an `id` of its own"
            raise deployment.problem(text, "patches")


def _layer(root: Path, folder: Path, patches: list[Patch], *, reverse: bool) -> tuple[Path | None, list[str]]:
    if not patches:
        return None, []
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    notes = apply_patches(Layer(root, folder), patches, reverse=reverse, steps=folder.parent / "patches")
    return folder, notes


def tree_digest(root: Path) -> str:
    """SHA-256 over names, kinds, executable bits and contents of everything below `root`, `.git` folders apart.

    Symbolic links count by their target and are not followed; devices, pipes and sockets by their kind.
    """
    total = hashlib.sha256()
    for relative, path, info in walk(root):
        kind = f"{stat.S_IFMT(info.st_mode):o}:{info.st_mode & 0o111:o}".encode()
        for part in (os.fsencode(relative), kind, _content(path, info)):
            total.update(len(part).to_bytes(8) + part)
    return total.hexdigest()


def _content(path: str, info: os.stat_result) -> bytes:
    if stat.S_ISLNK(info.st_mode):
        return os.fsencode(os.readlink(path))
    if not stat.S_ISREG(info.st_mode):
        return b""
    try:
        with open(path, "rb", buffering=0) as stream:
            return hashlib.file_digest(stream, "sha256").digest()
    except OSError:
        return f"unreadable:{info.st_size}:{info.st_mtime_ns}".encode()


def walk(root: Path) -> Iterator[tuple[str, str, os.stat_result]]:
    """Everything below `root` in name order as (relative path, path, lstat), links not followed, `.git` left out.

    A folder that can't be listed, and what vanishes from a live tree meanwhile, is passed over.
    """
    pending = [(str(root), "")]
    while pending:
        folder, prefix = pending.pop()
        below: list[tuple[str, str]] = []
        for entry in _entries(folder):
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            is_folder = stat.S_ISDIR(info.st_mode)
            if is_folder and entry.name == ".git":
                continue
            yield prefix + entry.name, entry.path, info
            if is_folder:
                below.append((entry.path, f"{prefix}{entry.name}/"))
        pending += reversed(below)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with contextlib.suppress(PermissionError, FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        return sorted(entries, key=lambda e: os.fsencode(e.name))
    return []


def copy_view(view: View, target: Path) -> None:
    """Copy a view to `target`, sharing blocks with the original where the file system can.

    For machines where no overlay can be had, and for calls that must write to files owned by someone else. What can't
    be read stays there as something that can't be read, so that a search says that it left it out.

    Raises:
        SandboxUnavailable: `target` lies inside the tree itself, or there is no room.
    """
    if target.resolve().is_relative_to(view.lower.resolve()):
        raise SandboxUnavailable(f"{target} lies inside {view.lower}, so it can't hold a copy of it")
    try:
        _copy_tree(view.lower, target)
        if view.layer:
            _copy_tree(view.layer, target)
    except OSError as error:
        raise SandboxUnavailable(f"{view.lower} can't be copied to {target}: {error}") from error


def _copy_tree(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for relative, path, info in walk(source):
        place, mode = target / relative, info.st_mode
        if stat.S_ISDIR(mode):
            _copy_folder(path, place, mode)
            continue
        _clear(place)
        if stat.S_ISLNK(mode):
            place.symlink_to(os.readlink(path))
        elif stat.S_ISREG(mode):
            _copy_file(path, place, mode)
        elif stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            os.mknod(place, mode)
        # Devices stay out: a character device 0:0 is a whiteout, which hides what it replaces.


def _clear(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def _copy_folder(source: str, target: Path, mode: int) -> None:
    if not target.is_dir() or target.is_symlink():
        _clear(target)
        target.mkdir()
    target.chmod(_ours(mode, 0o700) if os.access(source, os.R_OK | os.X_OK) else 0)


def _ours(mode: int, rights: int) -> int:
    """The mode of a copy. What a plain user could read may have been someone else's; root has no rights inside."""
    return stat.S_IMODE(mode) | (stat.S_IWUSR if os.geteuid() == 0 else rights)


def _copy_file(source: str, target: Path, mode: int) -> None:
    with target.open("wb") as write:
        try:
            with open(source, "rb") as read:
                if not _shares_blocks(write.fileno(), read.fileno()):
                    shutil.copyfileobj(read, write, 1 << 20)
            os.fchmod(write.fileno(), _ours(mode, 0o600))
        except PermissionError:
            os.fchmod(write.fileno(), 0)


def _shares_blocks(target: int, source: int) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        fcntl.ioctl(target, FICLONE, source)
    except OSError:
        return False
    return True
