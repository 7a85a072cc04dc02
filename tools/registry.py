"""Every tool by name. Adding one is a file, and a line here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..sandbox.yamlfile import did_you_mean
from .base import Tool

TOOLS = {
    "dead_parameter": ".dead_parameter:DeadParameter",
    "diff": ".diff:Diff",
    "env_probe": ".env_probe:EnvProbe",
    "exactly_once": ".exactly_once:ExactlyOnce",
    "factor_change": ".factor_change:FactorChange",
    "grep": ".grep:Grep",
    "power_count": ".power_count:PowerCount",
    "read_file": ".read_file:ReadFile",
    "recount": ".recount:Recount",
    "symbol_trace": ".symbol_trace:SymbolTrace",
    "twin_paths": ".twin_paths:TwinPaths",
}


class UnknownTool(KeyError):
    """No tool of that name; the message says which there are."""

    def __str__(self) -> str:
        return str(self.args[0])


def get_tool(name: str) -> Tool[Any, Any]:
    """The tool called `name`.

    Raises:
        UnknownTool: there is none; with a did-you-mean.
    """
    if name not in TOOLS:
        raise UnknownTool(f"unknown tool {name!r}{did_you_mean(name, TOOLS)}")
    module, _, attribute = TOOLS[name].partition(":")
    tool: Tool[Any, Any] = getattr(import_module(module, __package__), attribute)()
    return tool
