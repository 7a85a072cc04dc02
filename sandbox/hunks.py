"""One file's hunks, fitted into its text."""

from __future__ import annotations

from unidiff.patch import Hunk, PatchedFile

from .errors import PatchError

EMPTY = ""
"""Line type that unidiff gives to an empty line after a hunk, which isn't part of it."""


class Text:
    """The lines of one file while hunks go in, top to bottom."""

    def __init__(self, text: str, label: str, reverse: bool) -> None:
        """Begin with the file as it is; `label` names patch and file in errors, `reverse` takes hunks out."""
        self.lines, self.label, self.reverse = split_lines(text), label, reverse
        self.drift = 0
        self.floor = 0

    def apply(self, file: PatchedFile, notes: list[str]) -> str:
        """The text with every hunk in; hunks found elsewhere than they say are noted.

        Raises:
            PatchError: a hunk doesn't fit.
        """
        for number, hunk in enumerate(file, 1):
            old, new = sides(hunk)
            start = hunk.source_start
            if self.reverse:
                old, new, start = new, old, hunk.target_start
            expected = max(0, start - (1 if old else 0)) + self.drift
            place = self._find(old, expected)
            if place is None:
                raise PatchError(f"{self.label}: hunk {number} (line {start}) {self._why(old, new, expected)}")
            if place != expected:
                notes.append(f"{self.label}: hunk {number} found {place - expected:+d} lines from where it says")
            self.lines[place : place + len(old)] = new
            self.drift += len(new) - len(old) + place - expected
            self.floor = place + len(new)
        return "".join(self.lines)

    def _find(self, old: list[str], expected: int) -> int | None:
        """Where `old` stands, nearest to `expected` and below the hunks already in."""
        last = len(self.lines) - len(old)
        for distance in range(max(expected - self.floor, last - expected, 0) + 1):
            for place in dict.fromkeys((expected - distance, expected + distance)):
                if self.floor <= place <= last and self.lines[place : place + len(old)] == old:
                    return place
        return None

    def _why(self, old: list[str], new: list[str], expected: int) -> str:
        if new and self._find(new, expected) is not None:
            return "is already in the tree" if not self.reverse else "isn't in the tree, so it can't be taken out"
        for offset, line in enumerate(old):
            at = expected + offset
            have = self.lines[at] if at < len(self.lines) else None
            if have != line:
                return f"doesn't fit: at line {at + 1} {_difference(line, have)}"
        return "doesn't fit"


def _difference(line: str, have: str | None) -> str:
    if have is None:
        return f"the patch expects {line.rstrip()!r}, the file ends"
    if have.rstrip("\r\n") == line.rstrip("\r\n"):
        return f"the patch expects the line end {_end(line)!r}, the tree has {_end(have)!r}"
    return f"the patch expects {line.rstrip()!r}, the tree has {have.rstrip()!r}"


def _end(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def split_lines(text: str) -> list[str]:
    r"""Lines with their ends, cut at `\n` only, as diff counts them (form feeds and `\r` stay inside)."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def sides(hunk: Hunk) -> tuple[list[str], list[str]]:
    r"""A hunk's lines before and after, with `\ No newline at end of file` applied to the line it follows."""
    old: list[str] = []
    new: list[str] = []
    touched: list[list[str]] = []
    for line in hunk:
        if line.line_type == EMPTY:
            continue
        if line.line_type == "\\":
            for side in touched:
                side[-1] = side[-1].removesuffix("\n")
            continue
        touched = [old] if line.is_removed else [new] if line.is_added else [old, new]
        for side in touched:
            side.append(line.value)
    return old, new
