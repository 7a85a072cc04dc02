"""Helpers of the tests of `symbol_trace`'s inside script."""

import json
import textwrap
from pathlib import Path
from typing import Any

from sleuth.tools.inside import trace


def grow(root: Path, files: dict[str, str]) -> Path:
    """Write source files, dedented, below `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return root


def run(root: Path, symbol: str, entry: str, **more: Any) -> dict[str, Any]:
    """Trace; the reply must survive JSON."""
    reply = trace.run({"root": str(root), "symbol": symbol, "entry": entry, **more})
    assert json.loads(json.dumps(reply)) == reply
    return reply


def spots(reply: dict[str, Any], *kinds: str) -> list[tuple[str, int, str]]:
    """File, line and kind of the occurrences, of the given kinds or all."""
    return [(o["file"], o["line"], o["kind"]) for o in reply["occurrences"] if not kinds or o["kind"] in kinds]
