"""Exports of a case: one file a format, found by its name."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from pathlib import Path

from ...sandbox.errors import UsageError
from ...sandbox.yamlfile import did_you_mean
from ..store import CaseFolder


def formats() -> list[str]:
    """Names of the formats there are."""
    return sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))


def export(folder: CaseFolder, name: str) -> bytes:
    """A case in the format `name`.

    Raises:
        UsageError: no such format.
        CaseError: the case can't be read.
    """
    if name not in formats():
        raise UsageError(f"no format {name!r}{did_you_mean(name, formats())}")
    content: bytes = import_module(f".{name}", __package__).export(folder)
    return content
