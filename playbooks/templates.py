"""`${expression}` inside the strings of a playbook."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .expressions import Expression, parse
from .functions import ExpressionError, plain, shown

_SLOT = re.compile(
    r"""\$\$ | \$\{ ((?: [^}'"] | '(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*" )*) \}""", re.VERBOSE | re.DOTALL
)
"""`$$` stands for one `$`; a `}` inside quotes doesn't end a slot."""


def expressions(value: Any) -> Iterator[Expression]:
    """Every expression inside the strings of a JSON-like value.

    Raises:
        ExpressionError: one that can't be parsed, or a `${` without its `}`.
    """
    if isinstance(value, str):
        _refuse_open(value)
        yield from (parse(slot[1]) for slot in _SLOT.finditer(value) if slot[1] is not None)
    elif isinstance(value, list):
        for item in value:
            yield from expressions(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from expressions(item)


def _refuse_open(text: str) -> None:
    if "${" in _SLOT.sub("", text):
        raise ExpressionError(f"{text!r}: a '${{' is never closed; write '$${{' for the characters themselves")


def fill(value: Any, scope: Mapping[str, Any]) -> Any:
    """A call's arguments with every `${…}` evaluated; a string that is one slot and nothing else takes its value.

    Raises:
        ExpressionError: an expression that has no value here, or nothing to put into the middle of a text: a search for
            the word `nothing` would be a different question.
    """
    if isinstance(value, list):
        return [fill(item, scope) for item in value]
    if isinstance(value, dict):
        return {key: fill(item, scope) for key, item in value.items()}
    if not isinstance(value, str):
        return value
    whole = _SLOT.fullmatch(value)
    if whole and whole[1] is not None:
        return plain(parse(whole[1]).evaluate(scope))
    return _SLOT.sub(lambda slot: "$" if slot[1] is None else _something(slot[1], scope), value)


def _something(expression: str, scope: Mapping[str, Any]) -> str:
    value = parse(expression).evaluate(scope)
    if value is None or value == []:
        raise ExpressionError(f"{expression!r} is nothing here")
    return shown(value)


def fill_text(text: str, scope: Mapping[str, Any]) -> str:
    """`text` with every `${…}` as a reader sees it; what isn't there is `nothing`.

    Raises:
        ExpressionError: an expression that has no value here.
    """
    return _SLOT.sub(lambda slot: "$" if slot[1] is None else shown(parse(slot[1]).evaluate(scope)), text)
