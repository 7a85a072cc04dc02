"""YAML files a user writes: read with line numbers, checked against a pydantic model, all problems told at once."""

from __future__ import annotations

import difflib
import os
import types
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from .errors import ConfigError

Loc = tuple[str | int, ...]
ModelT = TypeVar("ModelT", bound=BaseModel)

MAX_BYTES = 4 << 20
PLAIN = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
MERGE = "tag:yaml.org,2002:merge"
MAX_NODES = 100_000
"""Nodes after aliases are expanded: a few nested aliases can otherwise stand for billions."""


@dataclass(frozen=True)
class Problem:
    """One thing wrong in a file: `line` counts from 1 (0 = the file as a whole), `key` is dotted."""

    path: Path
    line: int
    key: str
    text: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{place}: {self.key}: {self.text}" if self.key else f"{place}: {self.text}"


@dataclass(frozen=True)
class Document:
    """A parsed YAML file.

    Attributes:
        path: where it was read from.
        value: its content as plain Python values.
        lines: line (from 1) of every key and list item, by location.
        written: numbers as the file spells them, by location.
    """

    path: Path
    value: Any
    lines: dict[Loc, int]
    written: dict[Loc, str]

    def line(self, loc: Loc) -> int:
        """Line of `loc`, or of its nearest ancestor that stands in the file."""
        while loc and loc not in self.lines:
            loc = loc[:-1]
        return self.lines.get(loc, 1)

    def problem(self, loc: Loc, text: str) -> Problem:
        """A problem at `loc` of this file."""
        return Problem(self.path, self.line(loc), ".".join(map(str, loc)), text)


def fail(problems: Iterable[Problem]) -> ConfigError:
    """The error that carries all `problems`, one a line, in file order."""
    return ConfigError("\n".join(map(str, sorted(problems, key=lambda p: (str(p.path), p.line)))))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest known word, else `; known: a, b, c`, else nothing."""
    names = sorted(map(str, known))
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known: {', '.join(names[:40])}" if names else ""


class _Loader(yaml.SafeLoader):
    """SafeLoader without dates: a version such as 2026-01-01 stays the text the user wrote."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in rules if tag != "tag:yaml.org,2002:timestamp"]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Builder:
    """Turns a node graph into values while noting lines, refusing duplicate keys and alias bombs."""

    def __init__(self, path: Path, loader: _Loader) -> None:
        self.path, self.loader, self.left = path, loader, MAX_NODES
        self.lines: dict[Loc, int] = {}
        self.written: dict[Loc, str] = {}

    def build(self, node: yaml.Node, loc: Loc) -> Any:
        self.lines.setdefault(loc, node.start_mark.line + 1)
        self.left -= 1
        if self.left < 0:
            raise fail([Problem(self.path, 0, "", f"more than {MAX_NODES:,} values once aliases are expanded")])
        if not isinstance(node, yaml.ScalarNode) and node.tag not in PLAIN:
            line = node.start_mark.line + 1
            raise fail([Problem(self.path, line, "", f"not valid YAML: the tag {node.tag!r} isn't known here")])
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, loc)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(child, (*loc, n)) for n, child in enumerate(node.value)]
        value = self.loader.construct_object(node, deep=True)
        if isinstance(value, int | float) and not isinstance(value, bool):
            self.written[loc] = str(node.value)
        return value

    def _mapping(self, node: yaml.MappingNode, loc: Loc) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for _, value_node in (pair for pair in node.value if pair[0].tag == MERGE):
            merged |= self._merge(value_node, loc)
        for key_node, value_node in (pair for pair in node.value if pair[0].tag != MERGE):
            key = self._key(key_node, own)
            self.lines[(*loc, key)] = key_node.start_mark.line + 1
            self.written.pop((*loc, key), None)
            own[key] = self.build(value_node, (*loc, key))
        return {**merged, **own}

    def _key(self, node: yaml.Node, known: dict[str, Any]) -> str:
        line = node.start_mark.line + 1
        if not isinstance(node, yaml.ScalarNode):
            raise fail([Problem(self.path, line, "", "a key must be a word, not a list or a mapping")])
        key = self.loader.construct_object(node, deep=True)
        if not isinstance(key, str | int | float) or isinstance(key, bool):
            raise fail([Problem(self.path, line, str(node.value), "a key must be a word; put it in quotes")])
        if str(key) in known:
            raise fail([Problem(self.path, line, str(key), "this key stands twice in one mapping")])
        return str(key)

    def _merge(self, node: yaml.Node, loc: Loc) -> dict[str, Any]:
        """What `<<` brings in; unlike PyYAML's own merging, every value counts against the limit."""
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for part in reversed(parts):  # the first that has a key wins
            if not isinstance(part, yaml.MappingNode):
                line = part.start_mark.line + 1
                raise fail([Problem(self.path, line, "<<", "only a mapping, or a list of them, can be merged")])
            merged |= self.build(part, loc)
        return merged


def load(path: Path) -> Document:
    """Parse the YAML file at `path`.

    Raises:
        ConfigError: it can't be read, isn't UTF-8 text, is over 4 MiB, or isn't YAML; with the line where known.
    """
    text = _read(path)
    try:
        loader = _Loader(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise fail([Problem(path, line, "", f"not text: character {error.character:#04x} isn't allowed")]) from error
    try:
        node = loader.get_single_node()
        builder = _Builder(path, loader)
        value = builder.build(node, ()) if node is not None else None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        said = ", ".join(filter(None, (error.context, error.problem)))
        raise fail([Problem(path, line, "", f"not valid YAML: {said}")]) from error
    except RecursionError as error:
        raise fail([Problem(path, 0, "", "not valid YAML: nested too deep")]) from error
    except (yaml.YAMLError, ValueError) as error:
        raise fail([Problem(path, 0, "", f"not valid YAML: {error}")]) from error
    finally:
        loader.dispose()
    return Document(path, value, builder.lines, builder.written)


def _read(path: Path) -> str:
    try:
        if not path.is_file():
            raise fail([Problem(path, 0, "", _no_file(path))])
        if path.stat().st_size > MAX_BYTES:
            size = path.stat().st_size
            raise fail([Problem(path, 0, "", f"{size:,} bytes; a file over {MAX_BYTES:,} is taken for a mistake")])
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise fail([Problem(path, 0, "", f"can't be read: {error.strerror}")]) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise fail([Problem(path, line, "", f"not UTF-8 text (byte 0x{error.object[error.start]:02x})")]) from error


def _no_file(path: Path) -> str:
    if path.is_dir():
        return "is a folder, not a file"
    if os.path.lexists(path):
        return "is no regular file, or a link to nothing"
    if not path.parent.is_dir():
        return f"doesn't exist (nor does {path.parent})"
    near = [p.name for p in path.parent.iterdir() if p.suffix in (".yaml", ".yml")]
    return f"doesn't exist{did_you_mean(path.name, near)}"


def validate(document: Document, model: type[ModelT]) -> ModelT:
    """Check a document against a pydantic model.

    Raises:
        ConfigError: with every problem found, each with file, line, key and what would have worked.
    """
    if not isinstance(document.value, dict):
        found = "empty" if document.value is None else f"a {type(document.value).__name__}"
        needed = ", ".join(name for name, f in model.model_fields.items() if f.is_required())
        raise fail([Problem(document.path, 1, "", f"the file is {found}; it must be a mapping with {needed}")])
    try:
        return model.model_validate(document.value)
    except ValidationError as error:
        raise fail([_explain(document, model, e) for e in error.errors(include_url=False)]) from error


def _explain(document: Document, model: type[BaseModel], error: ErrorDetails) -> Problem:
    loc: Loc = tuple(error["loc"])
    while loc and loc not in document.lines and error["type"] != "missing":
        loc = loc[:-1]
    if error["type"] == "extra_forbidden":
        return document.problem(loc, f"unknown key{did_you_mean(str(loc[-1]), _fields(model, loc[:-1]))}")
    if error["type"] == "missing":
        return document.problem(loc, "this key is required")
    text = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    given = _given(error["input"])
    told = not given or (isinstance(error["input"], str) and given in text)
    return document.problem(loc, text if told else f"{text} (got {given})")


def _given(value: Any) -> str:
    """A scalar as a reader would know it again; nothing for a list or mapping."""
    if not isinstance(value, str | int | float | bool | None):
        return ""
    try:
        text = repr(value)
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 120 else f"{text[:120]}…"


def _fields(model: type[BaseModel], loc: Loc) -> list[str]:
    """Names that a mapping at `loc` of `model` may have."""
    kinds: list[Any] = [model]
    for part in loc:
        kinds = [k for kind in kinds for k in _step(kind, part)]
    return [name for kind in kinds if _is_model(kind) for name in kind.model_fields]


def _step(kind: Any, part: str | int) -> list[Any]:
    if _is_model(kind) and part in kind.model_fields:
        return _unwrap(kind.model_fields[part].annotation)
    return [kind] if _is_model(kind) else []


def _unwrap(annotation: Any) -> list[Any]:
    """The models inside Optional, Union, list, dict, tuple and Annotated."""
    if _is_model(annotation):
        return [annotation]
    if get_origin(annotation) in (Union, types.UnionType, list, dict, tuple) or get_args(annotation):
        return [k for arg in get_args(annotation) for k in _unwrap(arg)]
    return []


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
