"""Compare the stock source with the deployed one, and say of every hunk what kind of change it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from ..sandbox.base import PATCHES
from .base import Outcome, Status, Tool, ToolArgs, ToolContext, ToolData, ToolError
from .inside_call import call_inside

TEXT_HUNKS = 60
"""Hunks whose diff is in the text for a reader; the data hold more."""


class DiffArgs(ToolArgs):
    """What to compare."""

    paths: list[str] = Field(default=[], description="Files or folders, relative to the source's root; empty = all.")
    patch: str | None = Field(
        default=None,
        description="A patch's id: compare its files as it found them with what it made of them, nothing else.",
    )
    kinds: list[str] = Field(
        default=[],
        description="Only hunks with one of these classes, e.g. assertion_removed, dtype_changed; empty = all.",
    )
    context: int = Field(default=3, ge=0, le=50, description="Unchanged lines shown around a change.")
    max_hunks: int = Field(default=2000, ge=1, le=20_000, description="Hunks listed; all are counted.")
    max_text: int = Field(default=20_000, ge=200, le=1_000_000, description="Characters of diff text kept per file.")
    max_file_bytes: int = Field(
        default=8 << 20, ge=1024, le=256 << 20, description="Larger files are compared by bytes, without hunks."
    )


class HunkChange(ToolData):
    """One classified difference inside a hunk."""

    kind: str
    """A class of `tools/inside/change_kinds.py`."""
    detail: str
    """The finding in one line."""
    before: str
    """Source of the smallest differing part in stock; empty when it is new."""
    after: str
    """The same in the clone; empty when it is gone."""
    stock_line: int | None
    """From 1; None when there is no such line in stock."""
    clone_line: int | None
    """From 1; None when there is no such line in the clone."""
    scope: str
    """Qualified name of the function or class; empty at module level."""
    guards: list[str]
    """Conditions the line runs under within its function, outermost first."""


class Hunk(ToolData):
    """Neighbouring differing lines with their context."""

    id: str
    """File name and number of the hunk in it, from 1: `a/b.py#2`."""
    stock_start: int
    """First line in stock, context included, from 1."""
    stock_lines: int
    clone_start: int
    """First line in the clone, context included, from 1."""
    clone_lines: int
    scope: str
    """Qualified name of the function or class of the first change that has one."""
    text: str
    """Unified diff, from its @@ line; clipped as `text_left_out` says."""
    text_left_out: int
    """Lines of the diff that `text` does not hold."""
    changes: list[HunkChange]


class FileDiff(ToolData):
    """One file that differs."""

    file: str
    """Relative to the root; odd bytes are spelled \\xNN."""
    change: str
    """modified, added, deleted, binary, symlink, mode or type."""
    note: str
    """What the hunks don't say: a mode, a link's target, why there are none; often empty."""
    language: str
    method: str
    """How classes were found: syntax, fragment, tokens, keys, path, lines, whole; late or failed: not at all."""
    added_lines: int
    removed_lines: int
    hunks: list[Hunk]


class FlatChange(ToolData):
    """One classified difference with its file: the same as in the hunks, flat, for rules."""

    file: str
    line: int
    """In the clone when the change has a line there, else in stock; from 1."""
    kind: str
    scope: str
    detail: str
    before: str
    after: str
    guards: list[str]
    effect: str
    """What a change of dtype does to precision: narrows or widens; empty where that isn't known, or for other kinds."""
    hunk: str
    """Id of the hunk it is in."""


class Skipped(ToolData):
    """A file or folder that was not compared line by line, and why."""

    file: str
    reason: str


class DiffData(ToolData):
    """What differs between stock and clone."""

    files: list[FileDiff]
    """Files that differ (with `kinds`: that have such a hunk), in name order."""
    changes: list[FlatChange]
    """Changes of all hunks in `files`, in their order; with `kinds`, only those of the classes asked for."""
    kinds: list[str]
    """Classes present in `changes`, sorted."""
    kind_counts: dict[str, int]
    """Changes of each class over every hunk compared, listed here or not."""
    compared: int
    """Files compared, on either side."""
    identical: int
    """Of these, the same on both sides."""
    file_count: int
    """Files that differ, listed here or not."""
    hunk_count: int
    """Hunks in all differing files, listed here or not."""
    unclassified: list[str]
    """Files that differ in ways no class tells: binary, too large, or not classified in time."""
    skipped: list[Skipped]
    ignored: list[str]
    """What is never compared, with counts: .git, __pycache__, *.pyc."""

    def control_found(self) -> bool | None:
        """See `ToolData.control_found`: other hunks were seen and classified, just none of the kinds asked for."""
        return None if self.files else self.hunk_count > 0 and not self.unclassified


class Diff(Tool[DiffArgs, DiffData]):
    """Compare the stock source with the deployed one; every hunk says what kind of change it is.

    Use it first: it names removed assertions, changed defaults, dtypes, constants, masks, indices and added factors,
    with the lines and the conditions they run under.
    """

    name = "diff"
    Args = DiffArgs
    Data = DiffData

    def run(self, args: DiffArgs, context: ToolContext) -> Outcome[DiffData]:
        """See `Tool.run`. `no_data` when nothing (of the kinds asked for) differs."""
        if context.deployment.stock is None and not context.deployment.patches:
            return _nothing_to_compare()
        request = args.model_dump(exclude={"patch"})
        if args.patch is not None:
            request |= {"root": f"{PATCHES}/{args.patch}/after", "stock": f"{PATCHES}/{args.patch}/before"}
            _known_patch(context, args.patch)
        reply = call_inside(context.sandbox, "compare", request)
        data = read_reply(reply.value, args.kinds)
        left_out = [str(sentence) for sentence in reply.value["left_out"]]
        return Outcome(
            status=Status.OK if data.files else Status.NO_DATA,
            data=data,
            text=render(data, args.kinds),
            commands=[reply.command],
            raw=[reply.raw],
            truncated="; ".join(left_out),
        )


def _nothing_to_compare() -> Outcome[DiffData]:
    found: dict[str, Any] = {"files": [], "kind_counts": {}, "skipped": [], "ignored": [], "unclassified": []}
    found |= dict.fromkeys(("compared", "identical", "file_count", "hunk_count"), 0)
    text = "nothing to compare with: sleuth.yaml names neither `stock` nor `patches`"
    return Outcome(Status.NO_DATA, read_reply(found), text)


def _known_patch(context: ToolContext, patch: str) -> None:
    seen = call_inside(context.sandbox, "look", {"root": PATCHES, "paths": [f"{patch}/after", f"{patch}/before"]})
    if seen.value["problems"]:
        raise ToolError(f"diff: there is no patch {patch!r} whose files can be told apart: {seen.value['problems'][0]}")


def read_reply(found: dict[str, Any], kinds: Sequence[str] = ()) -> DiffData:
    """The script's reply as data, with the flat list of changes: those of `kinds`, or all when none are asked for."""
    files = [FileDiff(**_known(row, FileDiff)) for row in found["files"]]
    flat = [_flat(file, hunk, change) for file in files for hunk in file.hunks for change in hunk.changes]
    changes = [change for change in flat if not kinds or change.kind in kinds]
    names = ("kind_counts", "compared", "identical", "file_count", "hunk_count", "skipped", "ignored", "unclassified")
    return DiffData(
        files=files,
        changes=changes,
        kinds=sorted({change.kind for change in changes}),
        **{name: found[name] for name in names},
    )


def _known(row: dict[str, Any], model: type[ToolData]) -> dict[str, Any]:
    return {name: row[name] for name in model.model_fields}


def _flat(file: FileDiff, hunk: Hunk, change: HunkChange) -> FlatChange:
    return FlatChange(
        file=file.file,
        line=change.clone_line or change.stock_line or hunk.clone_start,
        kind=change.kind,
        scope=change.scope,
        detail=change.detail,
        before=change.before,
        after=change.after,
        guards=change.guards,
        effect=_effect(change) if change.kind == "dtype_changed" else "",
        hunk=hunk.id,
    )


def _effect(change: HunkChange) -> str:
    """Taking an upcast away narrows, as adding a downcast does."""
    bits = re.search(r"(\d+) to (\d+) bits", change.detail)
    if "downcast" in change.detail or "upcast" in change.detail:
        return "narrows" if ("downcast" in change.detail) != ("dropped" in change.detail) else "widens"
    if bits and bits[1] != bits[2]:
        return "narrows" if int(bits[2]) < int(bits[1]) else "widens"
    return ""


def render(data: DiffData, kinds: list[str]) -> str:
    """The findings as plain text: a summary, then for each file its hunks, their classes, and the diff."""
    lines = [_summary(data, kinds)]
    lines += [f"not compared line by line: {each.file}: {each.reason}" for each in data.skipped[:20]]
    if len(data.skipped) > 20:
        lines.append(f"… and {len(data.skipped) - 20} more files not compared line by line")
    lines += [f"never compared: {', '.join(data.ignored)}"] if data.ignored else []
    left = TEXT_HUNKS
    for file in data.files:
        lines += ["", _file_line(file)]
        for hunk in file.hunks[:left]:
            lines += _hunk_lines(hunk)
        if len(file.hunks) > left:
            lines.append(f"  … {len(file.hunks) - left} more hunks of this file are in the data, not in this text")
        left = max(0, left - len(file.hunks))
    return "\n".join(lines)


def _summary(data: DiffData, kinds: list[str]) -> str:
    differ = f"{data.file_count:,} of {data.compared:,} files differ, in {data.hunk_count:,} hunks"
    if not data.file_count:
        return f"no difference: {data.compared:,} files compared, all the same"
    if kinds:
        shown = sum(len(file.hunks) for file in data.files)
        return f"{differ}; {shown:,} shown hunks in {len(data.files):,} files have {' or '.join(kinds)}"
    counts = ", ".join(f"{kind} {count:,}" for kind, count in data.kind_counts.items())
    return f"{differ}\n{counts}" if counts else differ


def _file_line(file: FileDiff) -> str:
    numbers = f" (+{file.added_lines:,} -{file.removed_lines:,})" if file.hunks else ""
    return f"{file.change} {file.file}{numbers}" + (f": {file.note}" if file.note else "")


def _hunk_lines(hunk: Hunk) -> list[str]:
    lines = [f"  {hunk.id}" + (f" in {hunk.scope}" if hunk.scope else "")]
    for change in hunk.changes:
        guards = f", if {' and '.join(change.guards)}" if change.guards else ""
        lines.append(f"    {change.kind}: {change.detail}{guards}")
    # Control characters of a hostile file must not reach a terminal as they are.
    lines += [
        "    " + "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in line)
        for line in hunk.text.split("\n")
    ]
    if hunk.text_left_out:
        lines.append(f"    … {hunk.text_left_out:,} more lines of this hunk; raise max_text to see them")
    return lines
