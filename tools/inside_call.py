"""Call one of the scripts in `tools/inside/` through the sandbox."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..sandbox.base import CLONE, STOCK, Command, Mount, Sandbox
from .base import ToolError, ToolTimeout

INSIDE = Mount(Path(__file__).parent / "inside", "/sleuth/inside")
BOOT = "import sys; sys.path.insert(0, '/sleuth'); from inside.main import main; main()"

SECONDS_OF_WORK = "Steps are counted, as many as an ordinary machine takes in that time: two runs find the same."
WORK, WALL = 0.4, 0.9
"""Shares of a time limit: what a script may plan with, and after how much it gives up on a machine that is too slow."""


def work_within(seconds: float, limit: float) -> dict[str, float]:
    """The `seconds` and `wall` of a request that follows code, for a call with that time limit."""
    return {"seconds": min(seconds, WORK * limit), "wall": WALL * limit}


@dataclass(frozen=True)
class Reply:
    """A script's answer, and the command that gave it; what follows `<<<` was its standard input, as bash spells it."""

    value: dict[str, Any]
    command: tuple[str, ...]
    raw: Path


def call_inside(sandbox: Sandbox, script: str, request: dict[str, Any], seconds: float | None = None) -> Reply:
    """Run `tools/inside/<script>.py` on `request`, to which the roots of the clone and of stock are added.

    `seconds` is a time limit of its own, where a script needs more than other calls get.

    Raises:
        ToolError: the script refused the request, crashed, or said more than the output limit.
        ToolTimeout: it was stopped at the time limit.
        SandboxError: the sandbox failed.
    """
    request = {"root": CLONE, "stock": STOCK, **request}
    argv, body = (*sandbox.python, "-c", BOOT, script), json.dumps(request)
    limits = replace(sandbox.limits, seconds=max(seconds, sandbox.limits.seconds)) if seconds else None
    done = sandbox.exec(Command(argv, stdin=body.encode(), mounts=[INSIDE], limits=limits))
    if done.timed_out:
        raise ToolTimeout(f"{script}: {done.describe()}")
    if done.exit_code != 0 or done.clipped:
        raise ToolError(f"{script}: {done.describe()}: {done.error_text()}")
    answer = json.loads(done.stdout.read_bytes())
    if "error" in answer:
        raise ToolError(answer["error"])
    return Reply(answer["reply"], (*argv, "<<<", body), done.stdout)
