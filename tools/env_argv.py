"""Read a server's command line the way its shell, its interpreter and argparse would."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

Scalar = bool | int | float | str | None
Value = Scalar | list[Scalar]

SHELLS = {"sh", "bash", "dash", "zsh", "ash", "ksh"}
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
PYTHON = re.compile(r"python[\d.]*")
OPTION = re.compile(r"--?[A-Za-z][\w.-]*(=.*)?", re.DOTALL)
INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
DECIMAL = re.compile(r"-?(0|[1-9]\d*)?\.\d+|-?[1-9](\.\d+)?[eE][+-]?\d+")
SEPARATORS = ";&|\n"
JOINED = re.compile(r"\d?>&\d|&>>?[ \t]*\S+")
REDIRECT = re.compile(r"\d?(>>?|<)(&\d)?")


@dataclass(frozen=True)
class Option:
    """One option: `spelled` as typed, `name` in snake_case, word `index` in the line."""

    spelled: str
    name: str
    value: Value
    index: int


@dataclass
class Command:
    """A command line, taken apart.

    Attributes:
        module: what `python -m` runs, or empty.
        program: the script or console command that runs, or empty.
        options: in order, repeats included.
        positionals: words that belong to no option, with their index.
        env: variables that the line itself sets, with their index.
        notes: what could not be read from it.
    """

    module: str = ""
    program: str = ""
    options: list[Option] = field(default_factory=list)
    positionals: list[tuple[str, int]] = field(default_factory=list)
    env: list[tuple[str, str, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def entry(self) -> str:
        """The dotted module that starts, as far as the line names one."""
        if self.module or not self.program.endswith(".py"):
            return self.module or PurePosixPath(self.program).name.replace("-", "_")
        return PurePosixPath(self.program).stem


Words = list[tuple[str, int]]


def parse_command(words: Sequence[str], flags: Collection[str] = ()) -> Command:
    """Take a command line apart.

    Args:
        words: the line, already split; one `sh -c "…"` is opened, and its words keep the index of
            the text that they stand in.
        flags: options (snake_case) that take no value, so that a word after one is a positional.

    Returns:
        The command. A value is a bool for a bare option (`--no-x` is x false), a number where the
        text is one, a list for several words, else the text.
    """
    command = Command()
    line = _unwrap([(w, n) for n, w in enumerate(words)], command)
    line = _program(_assignments(line, command), command)
    _options(line, command, set(flags))
    if any("$" in str(o.value) for o in command.options):
        command.notes.append("a value holds a shell variable, which is shown unexpanded")
    return command


def _unwrap(words: Words, command: Command) -> Words:
    """The words inside `sh -c`, of the part that looks most like a server's start."""
    names = [PurePosixPath(w).name for w, _ in words]
    at = next((n for n, name in enumerate(names) if name in SHELLS), -1)
    script = next((n for n in range(at + 1, len(words)) if re.fullmatch(r"-\w*c", words[n][0])), -1)
    if at < 0 or script < 0 or script + 1 >= len(words) or any("=" not in w for w in names[:at]):
        return words
    text, index = words[script + 1]
    try:
        parts = list(_segments(text))
    except ValueError as error:
        command.notes.append(f"the shell text can't be split: {error}")
        return words
    for part in parts:
        if part[0] == "export":
            _assignments([(w, index) for w in part[1:]], command)
    best = max(parts, key=lambda p: sum(w.startswith("--") for w in p), default=[])
    before = [(w, n) for w, n in words[:at] if ASSIGNMENT.fullmatch(w)]
    return before + [(w, index) for w in best]


def _segments(text: str) -> Iterator[list[str]]:
    """Simple commands of a shell text, without comments and redirections."""
    text = JOINED.sub("", text.replace("\\\n", " "))
    lexer = shlex.shlex(text, posix=True, punctuation_chars=SEPARATORS)
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    part: list[str] = []
    for token in [*lexer, ";"]:
        if token.strip(SEPARATORS):
            part.append(token)
        elif part:
            if not part[0].startswith("#"):
                yield _without_redirects(part)
            part = []


def _without_redirects(part: list[str]) -> list[str]:
    cut = next((n for n, w in enumerate(part) if REDIRECT.match(w)), len(part))
    return part[:cut] or [""]


def _assignments(words: Words, command: Command) -> Words:
    """Drop `NAME=value` and `env`, `exec`, `nohup` in front, keeping what they set."""
    while words:
        word, index = words[0]
        match = ASSIGNMENT.fullmatch(word)
        if match:
            command.env.append((match[1], match[2], index))
        elif PurePosixPath(word).name not in ("env", "exec", "nohup"):
            break
        words = words[1:]
    return words


def _program(words: Words, command: Command) -> Words:
    """Drop the interpreter and the name of what it runs; launchers before it go with it."""
    names = [PurePosixPath(w).name for w, _ in words]
    at = next((n for n, name in enumerate(names) if PYTHON.fullmatch(name)), -1)
    if at < 0:
        if words and not words[0][0].startswith("-"):
            command.program = words[0][0]
            return words[1:]
        return words
    rest = words[at + 1 :]
    while rest and rest[0][0].startswith("-"):
        word = rest[0][0]
        if word == "-m" or word == "-c":
            command.module = rest[1][0] if word == "-m" and len(rest) > 1 else ""
            return rest[2:]
        rest = rest[2:] if word in ("-X", "-W") else rest[1:]
    command.program = rest[0][0] if rest else ""
    return rest[1:]


def _options(words: Words, command: Command, flags: set[str]) -> None:
    at = 0
    while at < len(words):
        word, index = words[at]
        at += 1
        if word == "--":
            command.positionals += words[at:]
            return
        if not OPTION.fullmatch(word):
            command.positionals.append((word, index))
            continue
        spelled, equals, inline = word.partition("=")
        name = snake(spelled)
        values = [inline] if equals else []
        # A negative number is a value; only a dash before a letter starts an option.
        while not equals and name not in flags and at < len(words):
            if words[at][0] == "--" or OPTION.fullmatch(words[at][0]):
                break
            values.append(words[at][0])
            at += 1
        command.options.append(_option(spelled, name, values, index, flags))


def _option(spelled: str, name: str, values: list[str], index: int, flags: set[str]) -> Option:
    if values:
        value: Value = typed(values[0]) if len(values) == 1 else [typed(v) for v in values]
        return Option(spelled, name, value, index)
    if name.startswith("no_") and name not in flags:
        return Option(spelled, name.removeprefix("no_"), False, index)
    return Option(spelled, name, True, index)


def snake(option: str) -> str:
    """`--moe-runner-backend` as `moe_runner_backend`."""
    return option.lstrip("-").replace("-", "_")


def typed(text: str) -> Scalar:
    """A number or a truth value where the text is exactly one as written, else the text."""
    if text in ("true", "True"):
        return True
    if text in ("false", "False"):
        return False
    if INTEGER.fullmatch(text):
        return int(text)
    return float(text) if DECIMAL.fullmatch(text) else text


def flat(value: object, prefix: str = "") -> Iterator[tuple[str, Value]]:
    """Leaves of a JSON value by dotted key; a list of plain values is one leaf."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from flat(item, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list) and any(isinstance(v, list | dict) for v in value):
        for number, item in enumerate(value):
            yield from flat(item, f"{prefix}.{number}" if prefix else str(number))
    elif isinstance(value, dict):
        yield prefix, "{}"
    elif isinstance(value, bool | int | float | str | list) or value is None:
        yield prefix, value


def inner(option: Option) -> list[tuple[str, Value]]:
    """What an option's JSON object holds, by key; empty when its value is no object."""
    if not isinstance(option.value, str) or not option.value.startswith("{"):
        return []
    try:
        return list(flat(json.loads(option.value)))
    except (ValueError, RecursionError):
        return []
