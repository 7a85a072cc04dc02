"""Answers of the tracer, kept on the host and found again by the content of what was traced.

Standard library only: a warm answer must not wait for imports. What an answer is kept under is computed from the files
on the host; nothing that the sandboxed script says decides where its answer is found.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..sandbox.stamps import Stamps, replace
from ..sandbox.wheel import WheelError, cache_folder

OWN = (Path(__file__).parent, Path(__file__).parents[1] / "sandbox")
"""All of sleuth that has a say in an answer."""
SOURCES = (".py", ".patch", ".diff")
MOST_ANSWERS = 256
LARGEST_ANSWER = 32 << 20


@dataclass
class TraceCache:
    """A folder of answers, and of what is known about the trees they were given for."""

    folder: Path

    @classmethod
    def open(cls) -> TraceCache | None:
        """The user's cache; None where no folder for it can be made, which costs time and nothing else."""
        with contextlib.suppress(WheelError, OSError):
            folder = cache_folder() / "trace"
            for name in ("answers", "trees"):
                (folder / name).mkdir(parents=True, exist_ok=True)
            return cls(folder)
        return None

    def key(self, question: Mapping[str, Any], sources: Sequence[Path]) -> str:
        """What the answer to a question is kept under.

        Not only the files that the tracer reads count: a class or a registration that is added anywhere can change the
        answer, so every Python file does, and every folder, since folders are packages.

        Args:
            question: everything that the answer depends on beside the source and sleuth itself.
            sources: the tree, and the patches that are laid over it, in order.
        """
        stamps = Stamps(self.folder / "trees")
        own = [stamps.digest(folder, (".py", ".toml")) for folder in OWN]
        seen = [stamps.digest(path, SOURCES) for path in sources]
        return hashlib.sha256(json.dumps([sys.version, own, seen, question], sort_keys=True).encode()).hexdigest()

    def load(self, key: str) -> dict[str, Any] | None:
        """A kept answer; None when there is none, or it isn't whole."""
        with contextlib.suppress(OSError, ValueError, RecursionError):
            value = json.loads(self._place(key).read_bytes())
            return value if isinstance(value, dict) else None
        return None

    def save(self, key: str, answer: Mapping[str, Any]) -> None:
        """Keep an answer; the oldest ones make room. A full disk is no reason to lose the answer that was given."""
        text = json.dumps(answer)
        if len(text) > LARGEST_ANSWER:
            return
        with contextlib.suppress(OSError):
            replace(self._place(key), text)
            kept = sorted(self._place(key).parent.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
            for path in kept[:-MOST_ANSWERS]:
                path.unlink(missing_ok=True)

    def _place(self, key: str) -> Path:
        return self.folder / "answers" / f"{key}.json"
