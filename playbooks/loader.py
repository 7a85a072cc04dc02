"""Find and read playbooks; every problem of a file is told at once, with its line and key."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..sandbox.errors import ConfigError, UsageError
from ..sandbox.yamlfile import Document, Problem, did_you_mean, fail, load, validate
from .check import check
from .schema import Parameter, Playbook

BUILTIN = Path(__file__).parent / "builtin"


@dataclass(frozen=True)
class Loaded:
    """A playbook that passed every check.

    Attributes:
        playbook: what it says.
        path: the file.
        digest: SHA-256 of the file.
    """

    playbook: Playbook
    path: Path
    digest: str


def available(folder: Path | None = None) -> list[Path]:
    """Playbook files: those of `folder`, then the built-in ones, in name order."""
    folders = [*([folder] if folder else []), BUILTIN]
    return [path for base in folders for path in sorted(base.glob("*.yaml"))]


def find(name: str, folder: Path | None = None) -> Path:
    """The file of the playbook `name`: a path to a YAML file, or a name in `folder` or among the built-in ones.

    Raises:
        UsageError: there is none; with a did-you-mean.
    """
    if name.endswith((".yaml", ".yml")) or "/" in name:
        return Path(name)
    known = {path.stem: path for path in reversed(available(folder))}
    if name not in known:
        raise UsageError(f"no playbook {name!r}{did_you_mean(name, known)}")
    return known[name]


def read(path: Path) -> Loaded:
    """Read and check one playbook.

    Raises:
        ConfigError: every problem found, one a line, as `file:line: key: problem`.
    """
    document = load(path)
    playbook = validate(document, Playbook)
    problems = list(_name_problems(playbook, document)) + [document.problem(loc, text) for loc, text in check(playbook)]
    if problems:
        raise fail(problems)
    return Loaded(playbook, path, hashlib.sha256(path.read_bytes()).hexdigest())


def _name_problems(playbook: Playbook, document: Document) -> Iterator[Problem]:
    if playbook.name != document.path.stem:
        yield document.problem(("name",), f"{playbook.name!r} must be the file's own name, {document.path.stem!r}")


def read_all(folder: Path | None = None) -> tuple[list[Loaded], list[ConfigError]]:
    """Every playbook that can be found, and the errors of those that can't be used."""
    good: list[Loaded] = []
    bad: list[ConfigError] = []
    for path in available(folder):
        try:
            good.append(read(path))
        except ConfigError as error:
            bad.append(error)
    return good, bad


def parameters(playbook: Playbook, given: dict[str, str]) -> dict[str, Any]:
    """The parameters of a run: defaults, with what the user gave read as the default's type.

    Raises:
        UsageError: an unknown parameter, one that is required and missing, or a value that isn't of its type.
    """
    unknown = [name for name in given if name not in playbook.parameters]
    if unknown:
        hint = did_you_mean(unknown[0], playbook.parameters)
        raise UsageError(f"--param {unknown[0]}: {playbook.name} has no such parameter{hint}")
    missing = [n for n, p in playbook.parameters.items() if p.default is None and n not in given]
    if missing:
        about = playbook.parameters[missing[0]].about
        raise UsageError(f"{playbook.name} needs --param {missing[0]}=… ({about})")
    return {
        name: _read_value(name, spec, given[name]) if name in given else spec.default
        for name, spec in playbook.parameters.items()
    }


def _read_value(name: str, spec: Parameter, text: str) -> Any:
    kind = type(spec.default)
    try:
        if kind is bool:
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]
        if kind is list:
            return [part.strip() for part in text.split(",") if part.strip()]
        value = kind(text) if kind in (int, float) else text
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(text)
        return value
    except (ValueError, KeyError):
        raise UsageError(f"--param {name}={text}: {kind.__name__} expected, such as {spec.default!r}") from None
