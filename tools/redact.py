"""Take secrets out of text before it is shown, recorded or sent anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_NAME = rb"(?:api_?key|secret|passwd|password|access_?token|auth_?token|hf_token|private_?key)"
_PATTERNS = [
    rb"(?P<keep1>-----BEGIN [A-Z ]*PRIVATE KEY-----)[\s\S]*?(?=-----END|\Z)",
    rb"\bsk-[A-Za-z0-9_-]{16,}",
    rb"\bhf_[A-Za-z0-9]{20,}",
    rb"\bgh[pousr]_[A-Za-z0-9]{20,}",
    rb"\bglpat-[A-Za-z0-9_-]{16,}",
    rb"\bxox[baprs]-[A-Za-z0-9-]{10,}",
    rb"\bA(?:KIA|SIA)[0-9A-Z]{16}\b",
    rb"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    rb"(?P<keep2>\bBearer\s+)[A-Za-z0-9._~+/=-]{16,}",
    rb"(?P<keep3>://[^/\s:@'\"]{1,64}:)[^/\s:@'\"]{3,}(?=@)",
    rb"(?i:(?P<keep4>" + _NAME + rb"[A-Za-z0-9_]{0,20}['\"]?\s{0,3}[=:]\s{0,3}['\"])[^'\"\s]{8,}(?=['\"]))",
    rb"(?P<keep5>(?:API_?KEY|SECRET|PASSWORD|PASSWD|TOKEN)(?:_[A-Z0-9]+){0,8}=)[^\s'\"]{8,}",
    rb"(?i:(?P<keep6>--(?:[a-z0-9]+-){0,6}(?:api-key|secret|password|auth-token|hf-token)[= ])[^\s'\"]{4,})",
]
_SECRET = re.compile(b"|".join(_PATTERNS))
_SIGNS = b"-----BEGIN sk- hf_ ghp_ gho_ ghu_ ghs_ ghr_ glpat- xox AKIA ASIA eyJ Bearer :// TOKEN".split()
_NAMES = b"api_key apikey api-key secret passw private_key privatekey access_token accesstoken".split()
_NAMES += b"auth_token authtoken auth-token hf-token".split()
"""Every pattern holds one of these signs as it stands, or one of these names in any case."""
_SHORT = 4096
_MARK = b"<redacted>"
_BLOCK = 1 << 20
_LONGEST_KEY = 64 << 10
"""Bytes in which a private key has come to its end."""


def redact(text: str) -> str:
    """`text` with what looks like a key, token, password or private key replaced by `<redacted>`; names are kept."""
    return _redact_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def redact_value(value: Any) -> Any:
    """The same for every string inside a JSON-like value."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list | tuple):
        return [redact_value(item) for item in value]
    if isinstance(value, dict):
        return {key: redact_value(item) for key, item in value.items()}
    return value


def redact_file(source: Path, target: Path) -> None:
    """Copy a file of any size while redacting it, in blocks that end at a line's end and outside a private key."""
    with source.open("rb") as read, target.open("wb") as write:
        while block := read.read(_BLOCK):
            block += read.readline(_BLOCK)
            open_key = block.rfind(b"-----BEGIN")
            while open_key >= 0 and b"-----END" not in block[open_key:] and len(block) - open_key < _LONGEST_KEY:
                more = read.readline(_LONGEST_KEY)
                if not more:
                    break
                block += more
            write.write(_redact_bytes(block))


def _redact_bytes(raw: bytes) -> bytes:
    """Redact the stretches in which a secret may be; trying every pattern at every byte would take a second a MB."""
    if len(raw) < _SHORT:
        return _SECRET.sub(_replacement, raw)
    out, done = [], 0
    for start, end in _stretches(raw):
        out += [raw[done:start], _SECRET.sub(_replacement, raw[start:end])]
        done = end
    return b"".join([*out, raw[done:]])


def _stretches(raw: bytes) -> list[tuple[int, int]]:
    """Lines with a sign or a name, each with the next one, where a value may stand; in order, without overlaps."""
    low = raw.lower()
    found = [s for sign in _SIGNS for s in _lines_with(sign, raw)] + [
        s for name in _NAMES for s in _lines_with(name, low)
    ]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _lines_with(sign: bytes, raw: bytes) -> Iterator[tuple[int, int]]:
    at = raw.find(sign)
    while at >= 0:
        start = raw.rfind(b"\n", 0, at) + 1
        key_end = raw.find(b"-----END", at) if sign == b"-----BEGIN" else at
        end = _line_end(raw, at if key_end < at else key_end)
        yield start, (len(raw) if key_end < at else _line_end(raw, end))
        at = raw.find(sign, end)


def _line_end(raw: bytes, at: int) -> int:
    return raw.find(b"\n", at) + 1 or len(raw)


def _replacement(match: re.Match[bytes]) -> bytes:
    kept = next((part for part in match.groupdict().values() if part), b"")
    return kept + _MARK
