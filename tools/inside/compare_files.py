"""The hunks of one differing file, classified."""

from __future__ import annotations

import gc
import os
import time
from dataclasses import dataclass
from typing import Any

from .change_kinds import Change
from .classify import TESTS, classify
from .classify_tokens import language_of
from .compare_trees import Difference, printable, read
from .hunks import Hunk, blocks, diff_text, group, split_lines

Row = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What to show of each file.

    Attributes:
        root: the clone's root.
        stock: the stock tree's root.
        context: unchanged lines around a change.
        file_bytes: larger files are compared by bytes only.
        text_bytes: most characters of diff text per file.
        deadline: `time.monotonic()` after which lines are compared but no longer classified.
    """

    root: bytes
    stock: bytes
    context: int
    file_bytes: int
    text_bytes: int
    deadline: float


def describe(difference: Difference, plan: Plan) -> Row:
    """One differing entry as the reply's row, with hunks where it is text of a reasonable size."""
    row: Row = {
        "file": printable(difference.name), "change": difference.change, "note": difference.note, "hunks": [],
        "added_lines": 0, "removed_lines": 0, "language": language_of(printable(difference.name)), "method": "none",
    }  # fmt: skip
    if difference.change not in ("modified", "added", "deleted") or difference.note in (
        "symlink",
        "fifo",
        "socket",
        "device",
    ):
        return row
    if difference.size > plan.file_bytes:
        note = f"{difference.size:,} bytes, over {plan.file_bytes:,}: compared by bytes only"
        return {**row, "note": "; ".join(filter(None, (difference.note, note)))}
    try:
        sides = _sides(difference, plan)
    except OSError as error:
        return {**row, "note": f"can't be read: {error.strerror}"}
    if any(b"\0" in side for side in sides):
        sizes = f"binary, {len(sides[0]):,} → {len(sides[1]):,} bytes"
        change = "binary" if difference.change == "modified" else difference.change
        return {**row, "change": change, "note": "; ".join(filter(None, (difference.note, sizes)))}
    return _text_row(row, sides, plan)


def _sides(difference: Difference, plan: Plan) -> tuple[bytes, bytes]:
    old = read(os.path.join(plan.stock, difference.name)) if difference.change != "added" else b""
    new = read(os.path.join(plan.root, difference.name)) if difference.change != "deleted" else b""
    return old, new


def _text_row(row: Row, sides: tuple[bytes, bytes], plan: Plan) -> Row:
    old, new = (split_lines(side.decode("utf-8", "backslashreplace")) for side in sides)
    found = blocks(old, new)
    hunks = group(found, len(old), len(new), plan.context)
    row["added_lines"] = sum(b.new_end - b.new_start for b in found)
    row["removed_lines"] = sum(b.old_end - b.old_start for b in found)
    if not found:
        note = "line ending at the end of the file differs" if sides[0] != sides[1] and old == new else ""
        return {**row, "note": "; ".join(filter(None, (row["note"], note or "no lines")))}
    changes, row["method"] = _classes(row, old, new, hunks, plan)
    left = plan.text_bytes
    for n, (hunk, each) in enumerate(zip(hunks, changes, strict=True), 1):
        text, missing = diff_text(hunk, old, new, left)
        left = max(0, left - len(text))
        row["hunks"].append(_hunk_row(f"{row['file']}#{n}", hunk, each, text, missing))
    return row


def _classes(row: Row, old: list[str], new: list[str], hunks: list[Hunk], plan: Plan) -> tuple[list[list[Change]], str]:
    if row["change"] != "modified":
        return [[_whole(row, max(len(old), len(new)))] for _ in hunks], "whole"
    if time.monotonic() > plan.deadline:
        return [[] for _ in hunks], "late"
    found = classify(row["file"], old, new, [hunk.blocks for hunk in hunks])
    return found.hunks, found.method


def _whole(row: Row, lines: int) -> Change:
    """A file that is new or gone is one change."""
    added = row["change"] == "added"
    detail = f"{'new' if added else 'deleted'} file, {lines} lines"
    if TESTS.search(row["file"]):
        return Change("test_only", detail, "", "", None if added else 1, 1 if added else None)
    kind = "text_changed" if row["language"] == "prose" else "code_added" if added else "code_removed"
    return Change(kind, detail, "", "", None if added else 1, 1 if added else None)


def _hunk_row(name: str, hunk: Hunk, changes: list[Change], text: str, missing: int) -> Row:
    scope = next((change.scope for change in changes if change.scope), "")
    return {
        "id": name,
        "stock_start": hunk.old_start + 1, "stock_lines": hunk.old_end - hunk.old_start,
        "clone_start": hunk.new_start + 1, "clone_lines": hunk.new_end - hunk.new_start,
        "scope": scope, "text": text, "text_left_out": missing, "changes": [change.as_dict() for change in changes],
    }  # fmt: skip


def describe_all(found: list[Difference], plan: Plan) -> list[Row]:
    """Rows of all differing entries, in order."""
    # Syntax trees are large and hold no cycles: collecting while they grow takes a third of the time.
    gc.disable()
    return [describe(each, plan) for each in found]
