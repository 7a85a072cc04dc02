"""What a tool takes and what it finds, for whoever writes a playbook or calls it by hand."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

from .base import Tool

WIDTH = 100


def describe(tool: Tool[Any, Any]) -> str:
    """The tool's purpose, its arguments with type and default, and the fields of its findings, as plain text."""
    lines = [tool.name, *_wrapped(inspect.getdoc(type(tool)) or "", 2), "", "arguments"]
    for name, field in tool.Args.model_fields.items():
        default = "required" if field.is_required() else f"default {field.default!r}"
        lines += [f"  {name}: {_shown(field.annotation)}, {default}", *_wrapped(field.description or "", 6)]
    return "\n".join([*lines, "", "findings (`data`)", *_fields(tool.Data, 2)])


def _fields(model: type[BaseModel], indent: int) -> Iterator[str]:
    texts = _docstrings(model)
    for name, field in model.model_fields.items():
        yield f"{' ' * indent}{name}: {_shown(field.annotation)}"
        yield from _wrapped(texts.get(name, ""), indent + 4)
        for inner in _models(field.annotation):
            yield from _fields(inner, indent + 4)


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The text under each field in the class's source, or in the Attributes list of its docstring."""
    body = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = _listed(inspect.getdoc(model) or "")
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            found[ast.unparse(field.target)] = inspect.cleandoc(str(text.value.value))
    return found


def _listed(doc: str) -> dict[str, str]:
    lines = doc.partition("Attributes:\n")[2].splitlines()
    return {name.strip(): text.strip() for name, found, text in (line.partition(": ") for line in lines) if found}


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for arg in get_args(annotation) for model in _models(arg)]


def _shown(annotation: Any) -> str:
    if isinstance(annotation, type) and not get_args(annotation):
        return "nothing" if annotation is type(None) else annotation.__name__
    return str(annotation).replace("typing.", "").replace("sleuth.tools.", "").replace("NoneType", "nothing")


def _wrapped(text: str, indent: int) -> list[str]:
    lead = " " * indent
    return textwrap.wrap(" ".join(text.split()), WIDTH, initial_indent=lead, subsequent_indent=lead)
