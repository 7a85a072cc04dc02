"""All comparisons of one factor's uses in a tree, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..collecting import no_collection
from ..exactly_once.program import Program
from . import dropped, epilogues, handed, normalised, runners, storage, wrappers
from .survey import Place, Survey, Suspect

RULES: tuple[Callable[[Survey], Iterator[Suspect]], ...] = (
    epilogues.look,
    runners.look,
    wrappers.look,
    normalised.look,
    storage.look,
    dropped.look,
    handed.look,
)


def find(program: Program, factor: str) -> dict[str, Any]:
    """Places where a factor is used unlike in their siblings.

    Returns:
        `suspects` (rule, kind, path, line, end_line, symbol, when, why, see), `compared` (how many functions of
        each file were compared with others).
    """
    with no_collection():
        survey = Survey(program, factor)
        found = [suspect for look in RULES for suspect in look(survey)]
    return {
        "suspects": [_data(suspect) for suspect in dict.fromkeys(found)],
        "compared": {path: len(names) for path, names in sorted(survey.compared.items())},
    }


def _data(suspect: Suspect) -> dict[str, Any]:
    return {
        "kind": suspect.kind,
        "rule": suspect.rule,
        **_place(suspect.place),
        "end_line": suspect.place.line,
        "when": suspect.when,
        "why": suspect.why,
        "see": [{**_place(place), "note": place.note} for place in suspect.see],
    }


def _place(place: Place) -> dict[str, Any]:
    return {"path": place.path, "line": place.line, "symbol": place.symbol}
