"""What several tests share: where the repository is, and which files belong to it."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

ROOMS = ("sandbox", "tools", "playbooks", "agent")
"""The rooms, lowest first: each may import itself and those before it."""

_NOT_OURS = {".git", ".venv", ".sleuth", "__pycache__", "build", "dist"}
_NOT_OURS |= {".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache"}


def project_files(root: Path = ROOT) -> list[Path]:
    """List the repository's files, absolute and sorted: tracked, or new and not ignored.

    Where git cannot say (no git, no clone, somebody else's clone) the folder is walked instead.
    """
    listed = _git_files(root) or _walked_files(root)
    return sorted(path for path in listed if path.is_file())


def _git_files(root: Path) -> list[Path]:
    if not (root / ".git").exists():
        return []
    command = ["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"]
    try:
        names = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return [root / name for name in names.split("\0") if name]


def _walked_files(root: Path) -> list[Path]:
    found: list[Path] = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if name not in _NOT_OURS and not name.endswith(".egg-info")]
        found += [Path(folder, name) for name in names]
    return found
