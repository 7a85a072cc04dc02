"""Who is under suspicion: the deployment's patches, the files that differ from stock, or the source as a whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from ..playbooks.suspect import Suspect
from ..sandbox.clone import Clone, top_level
from ..sandbox.errors import SleuthError
from ..sandbox.patches import Patch
from ..tools.call import ToolResult
from ..tools.inside.paths import to_shown
from ..tools.registry import get_tool
from .events import Call
from .gate import FAILED


class SuspectsUnknown(SleuthError):
    """The deployed source could not be compared with stock, or the comparison says that it is something else."""


MOST = 200
"""Files that may differ from stock. More than that is another release, not patches."""


MakeCall = Callable[[Call], ToolResult]
"""Makes a tool call on record."""


def list_suspects(clone: Clone, digest: str, make_call: MakeCall, read: Callable[[str], bytes]) -> list[Suspect]:
    """The suspects of a deployment.

    Args:
        clone: the deployment's clone.
        digest: what it digests to.
        make_call: used to compare the clone with stock when no patches are named.
        read: gives an artefact's content by digest.

    Returns:
        One suspect a patch; without patches one a file that differs from stock; without either the source as a whole.

    Raises:
        SuspectsUnknown: the comparison with stock failed, or more than MOST files differ.
    """
    if clone.patches:
        return [_of_patch(patch, told_apart=clone.steps is not None) for patch in clone.patches]
    if clone.stock and clone.stock.lower != clone.tree.lower:
        found = _of_differences(digest, clone.stock.lower, make_call, read)
        if found:
            return found
    return [Suspect(id="source", title="the source as a whole; no patches are named", is_source=True)]


def _of_patch(patch: Patch, *, told_apart: bool) -> Suspect:
    lines = [line.value.rstrip("\n") for f in patch.parsed() for hunk in f for line in hunk if line.line_type in "+-"]
    changed = "\n".join(lines).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    own = patch.id if told_apart else None
    return Suspect(id=patch.id, title=patch.title, files=patch.files, changed=changed, patch=own)


def _of_differences(digest: str, stock: Path, make_call: MakeCall, read: Callable[[str], bytes]) -> list[Suspect]:
    """A suspect a file, of what the release ships: a whole site-packages may lie around it in the tree."""
    args = {"paths": [to_shown(name) for name in top_level(stock)]}
    result = make_call(Call.of("diff", args, digest))
    if result.status in FAILED:
        raise SuspectsUnknown(f"the source could not be compared with stock ({result.status}): {result.text}")
    data = get_tool("diff").Data.model_validate(json.loads(read(result.data))).model_dump()
    if data["file_count"] > MOST:
        raise SuspectsUnknown(
            f"{data['file_count']:,} of {data['compared']:,} files differ from stock: that is another release, or "
            "another folder than stock is of. Name the release that was patched, or the patches"
        )
    return [
        Suspect(
            id=_name(changed["file"], [f["file"] for f in data["files"]]),
            title=f"{changed['file']}: {changed['change']}",
            files=[changed["file"]],
            changed="\n".join(_changed_lines(hunk["text"]) for hunk in changed["hunks"]),
        )
        for changed in data["files"]
    ]


def _name(file: str, others: list[str]) -> str:
    """A file's name as a suspect's id; the few that would become one and the same get their place in the list."""
    ident = file.replace("/", ".")
    twins = [other for other in others if other.replace("/", ".") == ident]
    return ident if file == twins[0] else f"{ident}~{twins.index(file) + 1}"


def _changed_lines(diff: str) -> str:
    lines = (line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---"))
    return "\n".join(line[1:] for line in lines)
