"""Values as a reader would write them."""

from __future__ import annotations

import hashlib
from typing import Any

from .values import ClassValue, Const, External, FunctionValue, Member, ModuleValue, Obj, Opaque, Power


def text_of(value: Any) -> str:
    """A value as a reader would write it."""
    if isinstance(value, Const):
        return repr(value.value)
    if isinstance(value, Opaque):
        return value.text
    if isinstance(value, Member):
        return f"{value.owner.name}.{value.name}"
    if isinstance(value, Obj):
        return value.text
    if isinstance(value, External):
        return value.dotted
    if isinstance(value, ClassValue):
        return value.owner.name
    if isinstance(value, FunctionValue):
        return value.function.qualname
    if isinstance(value, ModuleValue):
        return value.module.dotted
    if isinstance(value, Power):
        return "factor" if value.k == 1 else f"factor**{value.k}"
    return "…"


def short(text: str, most: int = 100) -> str:
    """A text cut to a length, its middle left out; different texts stay different."""
    if len(text) <= most:
        return text
    return f"{text[: most - 20]}…#{hash_of(text)}"


def hash_of(text: str) -> str:
    """A few characters that tell texts apart."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
