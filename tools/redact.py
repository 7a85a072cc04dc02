"""Take secrets out of text before it is shown, recorded or sent anywhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_NAME = rb"[A-Za-z0-9_.-]{0,40}(?:api_?key|secret|passwd|password|access_?token|auth_?token|hf_token|private_?key)"
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
    rb"(?i:(?P<keep4>\b" + _NAME + rb"[A-Za-z0-9_]{0,20}['\"]?\s{0,3}[=:]\s{0,3}['\"])[^'\"\s]{8,}(?=['\"]))",
    rb"(?P<keep5>\b(?:[A-Z0-9]+_){0,8}(?:API_?KEY|SECRET|PASSWORD|PASSWD|TOKEN)(?:_[A-Z0-9]+){0,8}=)[^\s'\"]{8,}",
    rb"(?i:(?P<keep6>--(?:[a-z0-9]+-)*(?:api-key|secret|password|auth-token|hf-token)[= ])[^\s'\"]{4,})",
]
_SECRET = re.compile(b"|".join(_PATTERNS))
_SIGNS = (b"sk-", b"hf_", b"gh", b"glpat-", b"xox", b"akia", b"asia", b"eyj", b"bearer", b"://", b"-----begin")
_SIGNS += (b"key", b"secret", b"passwd", b"password", b"token")
"""Every pattern holds one of these, in some case."""
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
    out, pending = [], bytearray()
    follows = in_key = False
    for line in raw.splitlines(keepends=True):
        low = line.lower()
        marked = any(sign in low for sign in _SIGNS)
        in_key = (in_key or b"-----begin" in low) and b"-----end" not in low
        if marked or follows or in_key:  # a value may stand on the line after its name
            pending += line
        else:
            out += [_SECRET.sub(_replacement, bytes(pending)), line] if pending else [line]
            pending.clear()
        follows = marked
    return b"".join([*out, _SECRET.sub(_replacement, bytes(pending))])


def _replacement(match: re.Match[bytes]) -> bytes:
    kept = next((part for part in match.groupdict().values() if part), b"")
    return kept + _MARK
