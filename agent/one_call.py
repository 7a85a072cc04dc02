"""One tool call outside any case: a clone, a sandbox, the call, and nothing left behind."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..sandbox.backends import open_sandbox
from ..sandbox.clone import make_clone
from ..sandbox.deployment import Deployment
from ..tools.base import Tool, ToolContext
from ..tools.call import Caller, ToolResult
from .store import CaseFolder


@contextmanager
def one_call(
    deployment: Deployment, tool: Tool[Any, Any], args: dict[str, Any]
) -> Iterator[tuple[ToolResult, CaseFolder]]:
    """The result of a call, and the folder that holds its artefacts as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix="sleuth-") as scratch:
        folder = CaseFolder(Path(scratch))
        for path in (folder.artefacts, folder.scratch, folder.layers):
            path.mkdir()
        clone = make_clone(deployment, folder.layers)
        backend, limits = deployment.sandbox.backend, deployment.sandbox.limits.limits()
        sandbox = open_sandbox(backend, clone, folder.scratch, limits)
        yield Caller(ToolContext(sandbox, deployment), folder.keep, folder.scratch).call(tool, args), folder


def whole_text(result: ToolResult, folder: CaseFolder) -> str:
    """All that a tool had to say, where the result holds only its head and tail."""
    whole = next((a for a in result.artefacts if a.name == "text.txt"), None)
    return folder.read(whole.digest).decode("utf-8", "surrogatepass") if whole else result.text
