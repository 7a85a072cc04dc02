"""Cut source text of any language into tokens and statements, comments set apart, strings whole."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_ENDINGS = {
    "python": "py pyi pyx", "cuda": "cu cuh hip", "c++": "c cc cpp cxx h hpp inl metal mm", "rust": "rs", "go": "go",
    "javascript": "js ts tsx jsx", "java": "java", "proto": "proto", "shell": "sh bash", "cmake": "cmake",
    "json": "json jsonl", "yaml": "yaml yml", "toml": "toml", "ini": "ini cfg", "prose": "md mdx rst txt",
    "notebook": "ipynb", "markup": "html css xml svg", "template": "jinja",
}  # fmt: skip
LANGUAGES = {ending: language for language, endings in _ENDINGS.items() for ending in endings.split()}
NAMES = {
    "Dockerfile": "shell",
    "Makefile": "shell",
    "CMakeLists.txt": "cmake",
    "requirements.txt": "ini",
    "BUILD": "python",
}
BRACES = frozenset({"cuda", "c++", "rust", "go", "javascript", "java", "proto"})
HASHES = frozenset({"python", "shell", "cmake", "yaml", "toml", "ini"})

_C = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?(\*/|\Z))|(?P<string>[LRu8]*"(\\.|[^"\\\n])*"?|'(\\.|[^'\\\n])*')"""
    r"""|(?P<line>\n)|(?P<number>0[xX][0-9a-fA-F]+\w*|\d[\d.']*([eE][+-]?\d+)?[fFuUlLh]*)|(?P<word>[A-Za-z_]\w*)"""
    r"""|(?P<op><<<|>>>|<<=|>>=|->|::|&&|\|\||[<>=!+\-*/%&|^]=|\+\+|--|<<|>>|[^\s\w])""",
    re.S | re.X,
)
_HASH = re.compile(
    r"""(?P<comment>\#[^\n]*)|(?P<string>[rRbBfFuU]*(\"\"\".*?(\"\"\"|\Z)|'''.*?('''|\Z)|"(\\.|[^"\\\n])*"?|'(\\.|[^'\\\n])*'?))"""
    r"""|(?P<line>\n)|(?P<number>0[xX][0-9a-fA-F]+|\d[\d._]*([eE][+-]?\d+)?)|(?P<word>[A-Za-z_]\w*)"""
    r"""|(?P<op>->|:=|\*\*=?|//=?|[<>=!+\-*/%&|^@]=|<<|>>|[^\s\w])""",
    re.S | re.X,
)


DEPTH = {"(": 1, "[": 1, ")": -1, "]": -1}


@dataclass
class Statement:
    """Tokens up to a `;`, `{`, `}`, or the end of a logical line, with the 0-based line of each token."""

    tokens: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    @property
    def start(self) -> int:
        """First line, 0-based."""
        return self.lines[0]

    @property
    def end(self) -> int:
        """Last line, 0-based."""
        return self.lines[-1]

    @property
    def text(self) -> str:
        """The tokens as one readable line."""
        joined = " ".join(self.tokens)
        return re.sub(r"\s*(\.|::|->|\(|\[)\s*|\s+([),;\]])", lambda m: m.group(1) or m.group(2), joined)


def language_of(path: str) -> str:
    """The language of a file by its name; `other` when unknown."""
    name = path.rsplit("/", 1)[-1]
    if name in NAMES or name.startswith("Dockerfile"):
        return NAMES.get(name, "shell")
    parts = name.rsplit(".", 1)
    return LANGUAGES.get(parts[1].lower(), "other") if len(parts) == 2 else "other"


def statements(text: str, language: str) -> list[Statement]:
    """All statements of a text, without comments."""
    pattern = _C if language in BRACES else _HASH
    found, current, line, depth = [], Statement(), 0, 0
    for match in pattern.finditer(text):
        kind, token = match.lastgroup or "", match.group()
        if kind == "comment":
            line += token.count("\n")
            continue
        if kind == "line":
            line += 1
            if current.tokens and _line_ends(current, language, depth):
                found.append(current)
                current = Statement()
            continue
        current.tokens.append(token)
        current.lines.append(line)
        if kind == "string":
            line += token.count("\n")
        elif token in DEPTH:
            depth = max(0, depth + DEPTH[token])
        if language in BRACES and (token in ("{", "}") or (token == ";" and not _in_for(current))):
            found.append(current)
            current, depth = Statement(), 0
    return [*found, current] if current.tokens else found


def _line_ends(current: Statement, language: str, depth: int) -> bool:
    """A line's end closes a statement in line-based languages, and for preprocessor lines and labels elsewhere."""
    if language in BRACES:
        return current.tokens[0] == "#" and current.tokens[-1] != "\\"
    return depth == 0 and current.tokens[-1] != "\\"


def _in_for(current: Statement) -> bool:
    return current.tokens[0] == "for" and current.tokens.count("(") > current.tokens.count(")")


def in_lines(found: list[Statement], ranges: list[tuple[int, int]]) -> list[Statement]:
    """Statements with a token on a changed line (0-based, half open), or around a place where lines came or went."""
    return [
        each
        for each in found
        if any(a <= each.end and b > each.start if a < b else each.start < a <= each.end for a, b in ranges)
    ]
