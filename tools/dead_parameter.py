"""Find what code accepts and then doesn't use: parameters, attributes that only keep one, and fields of records."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from ..sandbox.base import CLONE
from .base import Outcome, Status, Tool, ToolArgs, ToolContext, ToolData
from .inside_call import call_inside
from .twin_paths import Unread, patched

ROWS = 30
"""Findings in the text for a reader; the data has more."""


class DeadArgs(ToolArgs):
    """Where to look."""

    paths: list[str] = Field(
        description="Python files, relative to the clone's root; `path.py:Class` or `path.py:Class.method` looks there."
    )
    words: list[str] = Field(default=[], description="Only these parameters, attributes or fields; empty = all.")
    patch: str | None = Field(
        default=None,
        description="A patch's id: compare its files as it found them with what it made of them, nothing else.",
    )
    max_findings: int = Field(default=100, ge=1, le=2000, description="Findings listed; all are counted.")


class Sibling(ToolData):
    """A place that does use what is dropped here."""

    file: str
    line: int
    """From 1."""
    name: str
    """Dotted name of the function."""
    text: str
    """What it does with it."""


class DeadFinding(ToolData):
    """One thing that is accepted and not used."""

    kind: str
    """never_read, only_checked (asserted, logged or tested before an error), overwritten, stored_never_read (kept as an
    attribute that nothing reads), dropped_on_branch, left_behind (a branch reads some fields of an object that its
    sibling hands on whole), kwargs_swallowed or field_never_read."""
    name: str
    """The parameter, dotted value or field."""
    scope: str
    """Dotted name of the function or class."""
    file: str
    line: int
    """Where it is accepted, or where the branch that drops it begins; from 1."""
    end_line: int
    why: str
    confidence: str
    """high, medium or low."""
    siblings: list[Sibling]
    """Functions or branches like this one that do use it; at most 6."""
    parts: list[str]
    """For left_behind, the fields that the branch doesn't read."""
    new_parts: list[str]
    """Of these, the ones that weren't left behind before the change."""
    required: str
    """Whose interface demands the parameter, so that it says little; empty when nobody's is known to."""
    new: bool
    """It wasn't so before the change; false when there is nothing to compare with."""


class LostRead(ToolData):
    """A name that a function reads less often than before the change."""

    file: str
    line: int
    scope: str
    name: str
    before: int
    after: int


class Blind(ToolData):
    """A function of which nothing can be said."""

    file: str
    line: int
    scope: str
    why: str


class DeadData(ToolData):
    """What is accepted and not used."""

    findings: list[DeadFinding]
    """New ones first, then by confidence."""
    lost: list[LostRead]
    """At most 300; empty when there is nothing to compare with."""
    unread: list[Unread]
    blind: list[Blind]
    compared: bool
    """Whether there was an earlier state to compare with."""
    files: int
    """Files parsed."""
    routines: int
    """Functions in them."""
    examined: int
    """Parameters and fields looked at."""
    new_count: int
    total: int
    """Findings, listed or not."""

    def control_found(self) -> bool | None:
        """See `ToolData.control_found`: there were parameters, and each was seen to be used."""
        return None if self.findings else self.examined > 0 and not self.unread


class DeadParameter(Tool[DeadArgs, DeadData]):
    """Find parameters that are accepted and never read, only checked, overwritten or stored for nobody; values that one
    branch hands on and a sibling branch drops; fields that nothing reads. Names the siblings that do use them.
    """

    name = "dead_parameter"
    Args = DeadArgs
    Data = DeadData

    def run(self, args: DeadArgs, context: ToolContext) -> Outcome[DeadData]:
        """See `Tool.run`. `no_data` when everything accepted is used."""
        if not args.paths:
            return Outcome(Status.NO_DATA, _nothing(), "no file is named, so there are no parameters to look at")
        request = {"paths": args.paths, "words": args.words, "most": args.max_findings, "around": CLONE}
        reply = call_inside(context.sandbox, "dead_parameter", request | patched(args.patch, context, self.name))
        data = DeadData.model_validate(reply.value)
        left = data.total - len(data.findings)
        return Outcome(
            status=Status.OK if data.findings else Status.NO_DATA,
            data=data,
            text=render(data),
            commands=[reply.command],
            raw=[reply.raw],
            truncated=f"{left:,} findings are not listed; raise max_findings" if left else "",
        )


def _nothing() -> DeadData:
    return DeadData(
        findings=[],
        lost=[],
        unread=[],
        blind=[],
        compared=False,
        files=0,
        routines=0,
        examined=0,
        new_count=0,
        total=0,
    )


def render(data: DeadData) -> str:
    """The findings, each with who does use the thing; then what couldn't be looked at."""
    new = f", {data.new_count:,} of them new" if data.compared else ""
    places = f"{data.routines:,} functions in {data.files:,} files"
    lines = [f"{data.examined:,} parameters and fields of {places}; {data.total:,} findings{new}"]
    lines += [f"not read: {each.file}: {each.reason}" for each in data.unread]
    lines += [f"can't be told: {each.file}:{each.line}: {each.scope}: {each.why}" for each in data.blind]
    for finding in data.findings[:ROWS]:
        lines += _finding(finding)
    if len(data.findings) > ROWS:
        lines.append(f"… {len(data.findings) - ROWS:,} more; the data has them")
    return "\n".join(lines)


def _finding(each: DeadFinding) -> Iterator[str]:
    mark = "NEW " if each.new else ""
    lines = f"{each.line}-{each.end_line}" if each.end_line > each.line else f"{each.line}"
    yield f"{mark}{each.file}:{lines}: {each.kind} ({each.confidence}): {each.name} of {each.scope}: {each.why}"
    for sibling in each.siblings:
        yield f"  used by {sibling.name}, line {sibling.line}: {sibling.text}"
