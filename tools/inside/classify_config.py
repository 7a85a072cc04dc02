"""Classes of the changes in configuration files: which key has which other value."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .change_kinds import Change
from .hunks import Block

KEY = re.compile(r"""^(?P<indent>[\s-]*)(?P<key>"(?:\\.|[^"\\])*"|'[^']*'|[\w.$/-]+)\s*[:=](?P<value>\s.*|)$""")
SECTION = re.compile(r"^\s*\[+(?P<name>[^\]]+)\]+\s*$")


def classify_config(old: Sequence[str], new: Sequence[str], hunks: list[list[Block]]) -> list[list[Change]]:
    """Keys whose values differ in each hunk, unsettled; lines that hold no key are compared as they are."""
    sides = _keys(old), _keys(new)
    return [_hunk(old, new, sides, blocks) for blocks in hunks]


def _keys(lines: Sequence[str]) -> list[str]:
    """Dotted path of the key on each line, from indents and sections; empty for a line without a key."""
    found, stack, section = [], [(-1, "")], ""
    for line in lines:
        head, match = SECTION.match(line), KEY.match(line[:500])
        if head and "," not in line and '"' not in line:
            section, stack = head["name"].strip(), [(-1, "")]
            found.append("")
        elif match:
            indent, name = len(match["indent"]), match["key"].strip("\"'")
            while stack[-1][0] >= indent:
                stack.pop()
            path = ".".join(part for part in (stack[-1][1] or section, name) if part)
            stack.append((indent, path))
            found.append(path)
        else:
            found.append("")
    return found


def _value(line: str) -> str:
    match = KEY.match(line)
    text = match["value"] if match else line
    return re.sub(r"\s+#.*$", "", text).strip().rstrip(",").strip()


def _comment(line: str) -> bool:
    return line.lstrip().startswith(("#", "//", ";")) or not line.strip()


def _hunk(
    old: Sequence[str], new: Sequence[str], keys: tuple[list[str], list[str]], blocks: list[Block]
) -> list[Change]:
    gone = [(keys[0][n] or f"item {_value(old[n])}", n) for b in blocks for n in range(b.old_start, b.old_end)]
    came = [(keys[1][n] or f"item {_value(new[n])}", n) for b in blocks for n in range(b.new_start, b.new_end)]
    before = {key: n for key, n in gone if _telling(old[n])}
    after = {key: n for key, n in came if _telling(new[n])}
    found = []
    for key in [*before, *(key for key in after if key not in before)]:
        a, b = before.get(key), after.get(key)
        texts = _value(old[a]) if a is not None else "", _value(new[b]) if b is not None else ""
        if a is None or b is None or texts[0] != texts[1]:
            word = "added" if a is None else "is gone" if b is None else f"{texts[0]} → {texts[1]}"
            detail = f"{key}: {word}" if a is not None and b is not None else f"{key} {texts[0] or texts[1]} {word}"
            lines = a + 1 if a is not None else None, b + 1 if b is not None else None
            found.append(Change("config_changed", detail, *texts, *lines))
    return found


def _telling(line: str) -> bool:
    """Not a comment, and more than brackets."""
    return not _comment(line) and bool(line.strip(" \t\r[]{},"))
