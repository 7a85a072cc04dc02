"""What an expression of a playbook may call. Every function of nothing is nothing, never an error and never true."""

from __future__ import annotations

import builtins
import functools
import inspect
import keyword
import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel


class ExpressionError(ValueError):
    """An expression that can't be parsed, uses what the language doesn't have, or has no value here."""


def _of_nothing(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, but null as soon as one argument is: `len(data.hits)` of a call that failed is not 0."""

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return None if any(arg is None for arg in args) else function(*args)

    return call


def items_of(value: Any) -> list[Any]:
    """The items of a list, or the keys of a mapping.

    Raises:
        ExpressionError: it has none; a text isn't a list of letters.
    """
    if isinstance(value, list | tuple | Mapping):
        return list(value)
    kind = "text" if isinstance(value, str) else type(value).__name__
    raise ExpressionError(f"a list is needed here, not {shown(value):.40} ({kind})")


def shown(value: Any) -> str:
    """A value as a reader sees it: null is `nothing`, a list its items."""
    if value is None:
        return "nothing"
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value)) or "nothing"
    return str(value)


def plain(value: Any) -> Any:
    """A value as JSON can hold it: findings become mappings."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return value


def _all(items: Any) -> bool:
    """Whether every item is true."""
    return all(items_of(items))


def _any(items: Any) -> bool:
    """Whether one item is true."""
    return any(items_of(items))


def _basename(path: Any) -> str:
    """What stands behind a path's last slash."""
    return shown(path).rpartition("/")[2]


def _endswith(text: Any, end: Any) -> bool:
    """Whether a text ends so."""
    return shown(text).endswith(shown(end))


def _escape(text: Any) -> str:
    """A text as a regular expression that matches just it."""
    return re.escape(shown(text))


def _first(items: Any, default: Any = None) -> Any:
    """The first item, else `default`."""
    return default if items is None else next(iter(items_of(items)), default)


def _head(text: Any, separator: Any) -> str:
    """What stands before a separator; empty when the text doesn't hold it."""
    before, found, _ = shown(text).partition(shown(separator) or " ")
    return before if found else ""


def _identifiers(text: Any) -> list[str]:
    """Names in a piece of Python, in order, without keywords, builtins, `self` and what stands in quotes."""
    code = re.sub(r"(?<!\w)[rRbBuUfF]{0,2}(?:'[^']*'|\"[^\"]*\")", "", shown(text))
    names = re.findall(r"[A-Za-z_]\w*", code)
    known = {*keyword.kwlist, *dir(builtins), "self"}
    return list(dict.fromkeys(name for name in names if name not in known))


def _join(separator: Any, items: Any) -> str:
    """The items as one text."""
    return shown(separator).join(map(shown, items_of(items)))


def _called(scope: Any) -> str:
    """The name by which a function is called, from its dotted name: `b` for `A.b`, `A` for `A.__init__`."""
    return shown(scope).removesuffix(".__init__").rpartition(".")[2]


def _len(items: Any) -> int:
    """How many items, or characters."""
    return len(items if isinstance(items, str) else items_of(items))


def _list(items: Any) -> Any:
    """The items as a list."""
    return items_of(items)


def _lower(text: Any) -> str:
    """A text in small letters."""
    return shown(text).lower()


def _matches(pattern: Any, text: Any) -> bool:
    """Whether a regular expression (Python syntax) matches somewhere in a text.

    Raises:
        ExpressionError: the pattern repeats a repetition, which can take for ever on a text that doesn't match.
    """
    if re.search(r"[+*}]\??\)(?:[+*]|\{\d*,)", shown(pattern)):
        raise ExpressionError(f"the pattern {shown(pattern)!r} repeats a repetition; write it without")
    return re.search(shown(pattern), shown(text)) is not None


def _max(items: Any) -> Any:
    """The largest item; null when there is none."""
    return max(items_of(items), default=None)


def _min(items: Any) -> Any:
    """The smallest item; null when there is none."""
    return min(items_of(items), default=None)


def _sorted(items: Any) -> Any:
    """The items in order."""
    return sorted(items_of(items))


def _startswith(text: Any, start: Any) -> bool:
    """Whether a text begins so."""
    return shown(text).startswith(shown(start))


def _str(value: Any) -> Any:
    """A value as text."""
    return shown(value)


def _sum(items: Any) -> Any:
    """The sum of numbers."""
    return sum(items_of(items))


def _unique(items: Any) -> Any:
    """The items without repetitions, in order."""
    return list(dict.fromkeys(items_of(items)))


_TEXTS = (_basename, _called, _endswith, _escape, _head, _identifiers, _join, _lower, _matches, _startswith, _str)
_LISTS = (_all, _any, _len, _list, _max, _min, _sorted, _sum, _unique)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "first": _first,
    **{f.__name__[1:]: _of_nothing(f) for f in (*_TEXTS, *_LISTS)},
}
"""Every function by name; `first` is the one that turns nothing into something."""


def misuse(name: str, count: int) -> str:
    """What is wrong with a call of `name` with `count` arguments; empty when nothing is."""
    signature = inspect.signature(FUNCTIONS[name])
    try:
        signature.bind(*range(count))
    except TypeError:
        words = ", ".join(signature.parameters)
        return f"{name} takes ({words}), not {count} argument{'s' if count != 1 else ''}"
    return ""
