"""Find functions that do the same job in different ways, and where one lacks what another does or asks first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from ..sandbox.base import PATCHES
from .base import Outcome, Status, Tool, ToolArgs, ToolContext, ToolData, ToolError
from .inside_call import call_inside

ROWS = 20
"""Differences in the text for a reader; the data has more."""


class TwinArgs(ToolArgs):
    """Where to look for twins, and what to compare them by."""

    paths: list[str] = Field(
        description="Python files, relative to the clone's root; `path.py:Class` or `path.py:Class.method` looks there."
    )
    words: list[str] = Field(
        default=[], description="Names (attributes, parameters, functions, settings) to compare by; empty = all."
    )
    patch: str | None = Field(
        default=None,
        description="A patch's id: compare its files as it found them with what it made of them, nothing else.",
    )
    max_differences: int = Field(default=60, ge=1, le=1000, description="Differences listed; all are counted.")


class TwinUse(ToolData):
    """What a member does with one of the words asked for."""

    subject: str
    kind: str
    """multiply, divide, reduces, computes, assertion, passed, condition, called or read."""
    line: int
    text: str
    guards: list[str]
    """Conditions it runs under, outermost first; those around the call of a helper of the same file included."""


class TwinMember(ToolData):
    """One way of doing the job."""

    name: str
    """Dotted name; `Class.prefix_*` when it is done in steps that hand on one state object."""
    line: int
    """From 1."""
    uses: list[TwinUse]
    """Empty unless `words` are given."""
    hands_self: list[str]
    """Functions of other files that it gives the whole object to; what those do isn't seen."""


class TwinGroup(ToolData):
    """Functions that do the same job."""

    number: int
    file: str
    why: str
    """How they were found."""
    close: bool
    """They stand in one class or module; else in sibling classes, which differ for more reasons."""
    members: list[TwinMember]


class TwinDifference(ToolData):
    """One twin does something that another does under other conditions, or not at all."""

    group: int
    """Number of its group."""
    group_close: bool
    file: str
    line: int
    """Where the member does it, else where the member begins; from 1."""
    kind: str
    """guard_missing (it doesn't ask what the twin asks first), guard_opposite (it asks the reverse), not_done."""
    subject: str
    """The attribute, parameter or function that it is about."""
    done: str
    """What the twin does with it: multiply, divide, reduces, computes, assertion or passed."""
    member: str
    """Who lacks it."""
    example: str
    """The twin that has it."""
    example_line: int
    example_text: str
    example_guards: list[str]
    guards: list[str]
    """Settings that the member doesn't ask about; empty for not_done."""
    new_guards: list[str]
    """Of these, the ones that weren't missing before the change."""
    own_text: str
    """What the member itself does with the subject; empty when nothing."""
    own_guards: list[str]
    have: int
    """How many twins have it,"""
    could: int
    """of how many."""
    alike: float
    """0 to 1: how much the two do it in the same words and under the same settings otherwise."""
    unseen: str
    """Why the member may do it after all, where nobody sees it; empty when nothing speaks for that."""
    strong: bool
    """About what is computed, and nothing unseen speaks against it."""
    new: bool
    """It wasn't there before the change; false when there is nothing to compare with."""
    about: bool
    """It concerns one of the words."""
    rank: float
    """Larger is more telling."""


class AlikeEdit(ToolData):
    """A group of which every member was changed by the very same statements."""

    file: str
    members: list[str]
    names: list[str]
    """Attributes and module-level names in the statements that came or went."""
    others: list[str]
    """Functions of the file outside the group, constructors left out, that read one of these names."""


class LoneEdit(ToolData):
    """A changed function that has no twin, or whose twins weren't changed in the same way."""

    file: str
    name: str
    """Empty for what stands outside functions, or a file that is only on one side."""
    line: int
    twins: list[str]
    """The members of its groups, itself included; empty when no twin is known."""


class Unread(ToolData):
    """A file that couldn't be compared."""

    file: str
    reason: str


class TwinData(ToolData):
    """Twins, and where they differ."""

    groups: list[TwinGroup]
    """At most 200, those of one scope first in each file."""
    differences: list[TwinDifference]
    """New ones first, then the most telling."""
    compared: bool
    """Whether there was an earlier state to compare with."""
    same_edits: list[AlikeEdit]
    lone_edits: list[LoneEdit]
    unread: list[Unread]
    files: int
    """Files parsed."""
    routines: int
    """Functions in them."""
    new_count: int
    total: int
    """Differences found, listed or not."""

    def control_found(self) -> bool | None:
        """See `ToolData.control_found`: twins were found and don't differ, or functions were and none was changed."""
        untouched = self.compared and self.routines > 0 and not self.lone_edits
        return None if self.differences else (bool(self.groups) or untouched) and not self.unread


class TwinPaths(Tool[TwinArgs, TwinData]):
    """Find functions that do the same job in different ways – normal and overlapped, eager and captured, one platform
    and another – and say where one multiplies, reduces, asserts or asks first what its twin doesn't.
    """

    name = "twin_paths"
    Args = TwinArgs
    Data = TwinData

    def run(self, args: TwinArgs, context: ToolContext) -> Outcome[TwinData]:
        """See `Tool.run`. `no_data` when no twins differ."""
        if not args.paths:
            return Outcome(Status.NO_DATA, _nothing(), "no file is named, so there are no twins to compare")
        request = {"paths": args.paths, "words": args.words, "most": args.max_differences}
        reply = call_inside(context.sandbox, "twins", request | patched(args.patch, context, self.name))
        data = TwinData.model_validate(reply.value)
        left = data.total - len(data.differences)
        return Outcome(
            status=Status.OK if data.differences else Status.NO_DATA,
            data=data,
            text=render(data),
            commands=[reply.command],
            raw=[reply.raw],
            truncated=f"{left:,} differences are not listed; raise max_differences" if left else "",
        )


def patched(patch: str | None, context: ToolContext, tool: str) -> dict[str, str]:
    """The roots of one patch's files, after and before it; nothing when no patch is named.

    Raises:
        ToolError: there is no such patch, or its files can't be told apart.
    """
    if patch is None:
        return {}
    seen = call_inside(context.sandbox, "look", {"root": PATCHES, "paths": [f"{patch}/after", f"{patch}/before"]})
    if seen.value["problems"]:
        raise ToolError(
            f"{tool}: there is no patch {patch!r} whose files can be told apart: {seen.value['problems'][0]}"
        )
    return {"root": f"{PATCHES}/{patch}/after", "stock": f"{PATCHES}/{patch}/before"}


def _nothing() -> TwinData:
    found: dict[str, Any] = {key: [] for key in ("groups", "differences", "same_edits", "lone_edits", "unread")}
    found |= dict.fromkeys(("files", "routines", "new_count", "total"), 0)
    return TwinData.model_validate({**found, "compared": False})


def render(data: TwinData) -> str:
    """The groups, then the differences with what each twin does and when."""
    lines = [_summary(data)]
    lines += [f"not compared: {each.file}: {each.reason}" for each in data.unread]
    for group in data.groups:
        if group.close or any(d.group == group.number for d in data.differences[:ROWS]):
            lines += _group(group)
    for difference in data.differences[:ROWS]:
        lines += ["", *_difference(difference)]
    if len(data.differences) > ROWS:
        lines.append(f"… {len(data.differences) - ROWS:,} more; the data has them")
    return "\n".join(lines)


def _summary(data: TwinData) -> str:
    new = f", {data.new_count:,} of them new" if data.compared else ""
    return (
        f"{data.routines:,} functions in {data.files:,} files; {len(data.groups):,} groups of twins; "
        f"{data.total:,} differences{new}"
    )


def _group(group: TwinGroup) -> Iterator[str]:
    yield f"group {group.number} in {group.file}: {group.why}"
    for member in group.members:
        yield f"  {member.name}:{member.line}"
        for use in member.uses:
            yield f"    {use.line}: {use.kind}: {use.text}{_when(use.guards)}"


def _difference(row: TwinDifference) -> Iterator[str]:
    mark = "NEW " if row.new else ""
    lacks = {
        "guard_missing": f"{row.done} of {row.subject} without asking {', '.join(row.guards)}",
        "guard_opposite": f"{row.done} of {row.subject} when the reverse holds of {', '.join(row.guards)}",
        "not_done": f"no {row.done} of {row.subject}",
    }
    yield f"{mark}{row.file}:{row.line}: {row.member}: {lacks[row.kind]} ({row.have} of {row.could} twins have it)"
    if row.own_text:
        yield f"  it:   {row.own_text}{_when(row.own_guards)}"
    yield f"  twin: {row.example}, line {row.example_line}: {row.example_text}{_when(row.example_guards)}"
    if row.unseen:
        yield f"  it may be done out of sight: {row.unseen}"


def _when(guards: list[str]) -> str:
    return " when " + " and ".join(f"({guard})" for guard in guards) if guards else ""
