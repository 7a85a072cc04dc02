"""Text from a deployment, made safe to show: it can't steer a terminal, reorder a line, or break out of Markdown."""

from __future__ import annotations

import re


def visible(text: str) -> str:
    r"""`text` with everything that isn't printed spelled out (`\x1b`, `\u202e`), line ends and tabs apart."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else _spelled(c) for c in text)


def _spelled(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def prose(text: str) -> str:
    """`text` as plain words of one Markdown line: no tag, link, entity, formula, list or heading comes out of it."""
    flat = visible(" ".join(text.split()))
    escaped = re.sub(r"([\\`*_\[\]<>#|&~$!])|(?<=\w)(?=://|@)|(?<=\bwww)(?=\.)", lambda m: f"\\{m[1] or ''}", flat)
    return re.sub(r"^(\d*)([-+=.)])(?=\s|$|[-=])", r"\1\\\2", escaped)


def code(text: str) -> str:
    """`text` as a Markdown code span, whatever backticks it holds."""
    flat = visible(" ".join(text.split())) or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", flat)), default=0) + 1)
    pad = " " if flat[0] == "`" or flat[-1] == "`" or flat.strip() != flat else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def cell(markdown: str) -> str:
    """Markdown for a table's cell, where a bar ends the cell even inside a code span."""
    return re.sub(r"(?<!\\)\|", r"\\|", markdown)


def fenced(lines: list[str], language: str = "text") -> list[str]:
    """Lines as a Markdown code block that nothing inside them can end."""
    shown = [part for line in lines for part in visible(line).split("\n")]
    longest = max((len(run) for line in shown for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *shown, fence]
