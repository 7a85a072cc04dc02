"""Hide values whose names say that they are secret."""

from __future__ import annotations

import json
import re
from itertools import pairwise

from .env_argv import Value

ALWAYS = {"password", "passwd", "passphrase", "secret", "secrets", "credential", "credentials"}
ALWAYS |= {"apikey", "authorization", "bearer"}
KEYED = {"api", "access", "private", "auth", "encryption", "signing", "secret", "ssh", "hf"}
HARMLESS_END = {
    "file",
    "path",
    "dir",
    "len",
    "length",
    "count",
    "size",
    "id",
    "ids",
    "type",
    "name",
}
HARMLESS_END |= {"backend", "enabled", "ttl", "timeout", "limit", "mode", "version", "algorithm"}
HARMLESS_KEY = {"cache", "sort", "public", "partition", "routing", "primary", "state", "dict"}
SPECIAL = {"bos", "eos", "pad", "unk", "sep", "cls", "mask", "image", "video", "audio", "start"}
SPECIAL |= {"end", "special", "stop", "per", "next", "first", "last", "begin", "think", "tool"}
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
IN_TEXT = [
    (re.compile(r"(://[^/\s:@]*:)([^/\s@]+)(?=@)"), 2),
    (re.compile(r"(\b[Bb]earer\s+)(\S+)"), 2),
]
OPTION = re.compile(r"(--?)([A-Za-z][\w-]*)([= ])([^\s'\"]+)")


def is_secret(name: str) -> bool:
    """Whether a variable, option or (dotted) config key is named like a secret."""
    return any(_secret_word(part) for part in name.split("."))


def _secret_word(name: str) -> bool:
    words = [w.lower() for w in WORD.findall(name)]
    if not words:
        return False
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if words[-3:] == ["access", "key", "id"]:
        return True
    if last in HARMLESS_END:
        return False
    if not ALWAYS.isdisjoint(words) or any(a in KEYED and b in ("key", "keys") for a, b in pairwise(words)):
        return True
    if last == "token":
        return before not in SPECIAL
    return last == "key" and before not in HARMLESS_KEY and name.upper() == name


def hide(name: str, value: Value) -> Value:
    """The value, or `<redacted> (N characters)` for what is secret by its name or in its text.

    Numbers and flags named like tokens are counts and switches, so they are shown.
    """
    if isinstance(value, list):
        return [_scalar(hide(name, v)) for v in value]
    if not value or isinstance(value, bool):
        return value
    if is_secret(name) and (isinstance(value, str) or not name.lower().endswith("token")):
        return _mark(str(value))
    return in_text(value) if isinstance(value, str) else value


def _scalar(value: Value) -> bool | int | float | str | None:
    return json.dumps(value) if isinstance(value, list) else value


def _mark(text: str) -> str:
    return f"<redacted> ({len(text)} characters)"


def in_text(text: str) -> str:
    """Text without passwords in addresses, bearer tokens, secret options and secret JSON keys."""
    if text.startswith("{"):
        try:
            return json.dumps(_clean(json.loads(text)), ensure_ascii=False)
        except (ValueError, RecursionError):
            pass
    for pattern, group in IN_TEXT:
        text = pattern.sub(lambda m, g=group: m[1] + _mark(m[g]), text)  # type: ignore[misc]
    return OPTION.sub(_hide_option, text)


def _hide_option(match: re.Match[str]) -> str:
    dashes, name, between, value = match.groups()
    return f"{dashes}{name}{between}{_mark(value)}" if is_secret(name) else match[0]


def _clean(value: object, name: str = "") -> object:
    if isinstance(value, dict):
        return {k: _clean(v, str(k)) for k, v in value.items()}
    if isinstance(value, list):
        return [_clean(v, name) for v in value]
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return hide(name, value) if plain else value  # type: ignore[arg-type]
