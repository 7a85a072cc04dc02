"""One JSON document: the case as folded, its events, and what artefacts there are."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from pydantic import BaseModel

from ..case import fold
from ..log import read_log
from ..store import CaseFolder

FORMAT = "sleuth.case/1"


def export(folder: CaseFolder) -> bytes:
    """Keys: `format`, `case` (the folded case file), `events` (number, time in seconds since 1970, event),
    `artefacts` (size in bytes by SHA-256).
    """
    records = list(read_log(folder.events))
    state = fold(records)
    document = {
        "format": FORMAT,
        "case": {f.name: getattr(state, f.name) for f in dataclasses.fields(state)},
        "events": [{"n": r.number, "at": r.at, "event": r.event} for r in records],
        "artefacts": {p.name: p.stat().st_size for p in sorted(folder.artefacts.iterdir()) if p.name[0] != "."},
    }
    return json.dumps(document, default=_plain, indent=1).encode() + b"\n"


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} has no JSON form")
