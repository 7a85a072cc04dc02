"""Compare the stock tree with the clone: which files differ, in which hunks, and what each hunk changes."""

from __future__ import annotations

import difflib
import os
import re
import time
from typing import Any

from .change_kinds import KINDS
from .compare_files import Plan, Row, describe_all
from .compare_trees import Difference, Listing, differences, listing, printable, read, requested
from .fail import InsideError

DEFAULTS = {"context": 3, "max_hunks": 2000, "max_file_bytes": 8 << 20, "max_text": 20_000, "seconds": 45.0}
LINELESS = re.compile(r"line ending at the end|no lines$")
UNSEEN = re.compile(r"bytes only|can't be read")
REPLY_TEXT = 24 << 20
"""Most characters of diff text in one reply, well under the sandbox's output limit once spelled as JSON."""


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Compare `request["stock"]` with `request["root"]`.

    Args:
        request: roots `root` and `stock`; `paths` (default everything); `kinds` (only hunks with one of these classes);
            `context` in lines; `max_hunks`; `max_file_bytes`; `max_text` in characters per file; `seconds` for
            classifying.

    Returns:
        `files` (see `compare_files.describe`), `compared`, `identical`, `skipped` and `ignored` with reasons,
        `kind_counts` and `hunk_count` over all hunks, shown or not, `left_out`: sentences on what isn't shown, and
        `unclassified`: files whose changes no class tells.

    Raises:
        InsideError: an unknown class, a missing root, or a path that can't be compared.
    """
    wanted = {**DEFAULTS, **{key: value for key, value in request.items() if value is not None}}
    kinds = _kinds(wanted.get("kinds") or [])
    plan = _plan(wanted)
    names = requested(list(wanted.get("paths") or []), plan.root, plan.stock)
    new, old = listing(plan.root, names), listing(plan.stock, names)
    found = list(differences(plan.root, plan.stock, new, old))
    changed = [each for each in found if isinstance(each, Difference)]
    _note_moves(changed, plan)
    rows = describe_all(changed, plan)
    reply = {
        "compared": len(found), "identical": len(found) - len(changed), "skipped": _skipped((old, new), rows),
        "ignored": sorted({f"{n} × {why}" for each in (old, new) for why, n in each.ignored.items()}),
        "kind_counts": _counts(rows), "hunk_count": sum(len(row["hunks"]) for row in rows), "file_count": len(rows),
        "unclassified": _unseen((old, new), rows),
    }  # fmt: skip
    shown = _filtered(rows, kinds) if kinds else rows
    left_out = _clip(shown, int(wanted["max_hunks"])) + _unclassified(rows)
    return {**reply, "files": shown, "left_out": left_out}


def _plan(wanted: dict[str, Any]) -> Plan:
    root, stock = (os.fsencode(wanted[name]) for name in ("root", "stock"))
    for name, path in (("clone", root), ("stock tree", stock)):
        if not os.path.isdir(path):
            raise InsideError(f"the {name} is missing: {printable(path)} is no folder")
    return Plan(
        root,
        stock,
        context=int(wanted["context"]),
        file_bytes=int(wanted["max_file_bytes"]),
        text_bytes=int(wanted["max_text"]),
        deadline=time.monotonic() + float(wanted["seconds"]),
    )


def _skipped(listings: tuple[Listing, Listing], rows: list[Row]) -> list[dict[str, str]]:
    """What was not compared, or by bytes only, each with the reason."""
    skipped = {printable(name): why for each in listings for name, why in each.unreadable.items()}
    skipped.update({row["file"]: row["note"] for row in rows if not row["hunks"] and UNSEEN.search(row["note"])})
    return [{"file": name, "reason": why} for name, why in sorted(skipped.items())]


def _unseen(listings: tuple[Listing, Listing], rows: list[Row]) -> list[str]:
    """Files that differ, or may, in ways no class tells: binary, too large, unreadable, a link, not classified."""
    names = {printable(name) for each in listings for name in each.unreadable}
    for row in rows:
        classless = not row["hunks"] and row["change"] != "mode" and LINELESS.search(row["note"]) is None
        if classless or row["method"] in ("late", "failed"):
            names.add(row["file"])
    return sorted(names)


def _kinds(asked: list[str]) -> set[str]:
    for name in asked:
        if name not in KINDS:
            close = difflib.get_close_matches(name, KINDS, 3, 0.5)
            hint = f"; did you mean {', '.join(close)}?" if close else f"; known: {', '.join(KINDS)}"
            raise InsideError(f"kinds: {name!r} is not a class of change{hint}")
    return set(asked)


def _note_moves(changed: list[Difference], plan: Plan) -> None:
    """Say of an added file that it is a deleted one under another name; case alone counts too."""
    gone = {each.name: each for each in changed if each.change == "deleted" and not each.note}
    sizes: dict[int, list[Difference]] = {}
    for each in gone.values():
        sizes.setdefault(each.size, []).append(each)
    for new in [each for each in changed if each.change == "added" and not each.note and each.size]:
        for old in sizes.get(new.size, []):
            if new.size <= plan.file_bytes and _same(plan, old.name, new.name):
                case = ", only the case of its name differs" if old.name.lower() == new.name.lower() else ""
                new.note = f"same content as {printable(old.name)}, which is gone{case}"
                break


def _same(plan: Plan, old: bytes, new: bytes) -> bool:
    try:
        return read(os.path.join(plan.stock, old)) == read(os.path.join(plan.root, new))
    except OSError:
        return False


def _counts(rows: list[Row]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in rows:
        for hunk in row["hunks"]:
            for change in hunk["changes"]:
                counts[change["kind"]] = counts.get(change["kind"], 0) + 1
    return dict(sorted(counts.items()))


def _filtered(rows: list[Row], kinds: set[str]) -> list[Row]:
    """Only the hunks with one of the classes, only the files with such a hunk."""
    kept = []
    for row in rows:
        hunks = [h for h in row["hunks"] if kinds & {change["kind"] for change in h["changes"]}]
        if hunks:
            kept.append({**row, "hunks": hunks})
    return kept


def _clip(rows: list[Row], most: int) -> list[str]:
    """Cut hunks after `most`, and their texts when the reply would grow too large; say what was cut."""
    shown, cut, text, blank = 0, 0, 0, 0
    for row in rows:
        keep = max(0, min(len(row["hunks"]), most - shown))
        cut += len(row["hunks"]) - keep
        row["hunks"] = row["hunks"][:keep]
        shown += keep
        for hunk in row["hunks"]:
            text += len(hunk["text"])
            if text > REPLY_TEXT:
                blank += 1
                hunk["text_left_out"] += hunk["text"].count("\n") + 1
                hunk["text"] = ""
    said = (
        [f"{cut:,} of {shown + cut:,} hunks are not shown (max_hunks {most:,}); narrow paths or kinds"] if cut else []
    )
    return said + ([f"{blank:,} hunks are listed without their text"] if blank else [])


def _unclassified(rows: list[Row]) -> list[str]:
    said = []
    for method, why in (("late", "the time for classifying was spent"), ("failed", "the rules failed on them")):
        names = [row["file"] for row in rows if row["method"] == method]
        if names:
            said.append(f"{len(names):,} files are without classes, {why}: {', '.join(names[:5])}")
    return said
