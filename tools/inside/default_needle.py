"""Find the few files, and the lines in them, that are worth parsing for a set of names."""

from __future__ import annotations

import re
from collections.abc import Callable

from .default_source import Source
from .fail import InsideError


class Needle:
    """What a file must hold to be parsed: a plain word, on a line of the right form."""

    def __init__(self, env: list[str], args: list[str], typed: list[str]) -> None:
        snakes = [_plain(p) for p in env + args]
        kebabs = [p.replace("_", "-") for p in snakes[len(env) :]]
        self.words = {w.encode() for w in (*snakes, *kebabs)}
        self.words |= {f"--{t.replace('_', '-')}".encode() for t in typed}
        # A word that holds another is found with it.
        self.words -= {w for w in self.words for part in self.words if part != w and part in w}
        env_re, arg_re, typed_re = (_any_of(names) for names in (env, args, typed))
        dashed = f"(?:{arg_re}|(?:{typed_re})\\w*)".replace("_", "[-_]").replace(r"\w*", r"[\w-]*")
        forms = [
            rf"""["'](?:{env_re})["']""",
            rf"^[ \t]*(?:{env_re})[ \t]*[:=]",
            rf"""["']--?{dashed}["']""",
            rf"^[ \t]+(?:{arg_re})[ \t]*:",
        ]
        self.form = re.compile("|".join(forms).encode())
        self.field = re.compile(rf"[ \t]+(?:{arg_re})[ \t]*:".encode())
        declared = rf"^[ \t]+(?:{typed_re})\w*[ \t]*:[ \t]*\w+\["
        self.declared = re.compile(declared.encode(), re.MULTILINE)

    def starts(self, data: bytes) -> set[int]:
        """Offsets of the lines that may hold a site."""
        found = set()
        for word in self.words:
            at = data.find(word)
            while at >= 0:
                found.add(data.rfind(b"\n", 0, at) + 1)
                at = data.find(word, at + len(word))
        ends = ((n, data.find(b"\n", n) % (len(data) + 1)) for n in found)
        starts = {n for n, end in ends if self.form.search(data[n:end])}
        # Options declared in annotations need not be spelled anywhere.
        if b"Arg(" in data:
            starts |= {m.start() for m in self.declared.finditer(data)}
        return starts

    def lines(self, source: Source) -> list[int]:
        """Lines that may hold a site, sorted; a field only where its class looks like a record."""
        lines = sorted(map(source.line, self.starts(source.data)))
        fields = {n for n in lines if self.field.match(source.lines[n - 1])}
        return [n for n in lines if n not in fields or source.may_declare(n)]


def _plain(pattern: str) -> str:
    """The longest part of a glob that is no wildcard."""
    longest = max(re.split(r"[*?]", pattern), key=len)
    if len(longest) < 3 and longest != pattern:
        raise InsideError(f"{pattern!r} fits too much: a pattern needs three letters in a row")
    return longest


def _any_of(patterns: list[str]) -> str:
    """One regular expression for all; it matches nothing when there are none."""
    globs = [p + "*" if p.endswith("_") else p for p in patterns if p]
    parts = [re.escape(g).replace(r"\*", r"\w*").replace(r"\?", r"\w") for g in globs]
    return "|".join(parts) or r"(?!)"


def matcher(patterns: list[str]) -> Callable[[str], bool]:
    """Whether a whole name fits one of the names and globs; a trailing `_` counts as `_*`."""
    match = re.compile(_any_of(patterns)).fullmatch
    return lambda name: bool(name) and match(name) is not None
