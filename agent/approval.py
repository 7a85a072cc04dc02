"""Who may allow a tool call."""

from __future__ import annotations

from typing import Protocol

from .events import Call


class Approver(Protocol):
    """Allows or denies one call at a time."""

    def refusal(self, call: Call) -> str:
        """Why `call` may not be made; empty when it may."""
        ...


class AllowAll:
    """For headless runs of the tools there are: each only reads, inside the sandbox or what the deployment names."""

    def refusal(self, call: Call) -> str:
        """Nothing is refused."""
        return ""


class Deny:
    """Refuses the named tools."""

    def __init__(self, tools: list[str]) -> None:
        """`tools`: names that may not be called."""
        self.tools = tools

    def refusal(self, call: Call) -> str:
        """Refuse a call of one of the named tools."""
        return f"{call.tool} was denied on the command line (--deny)" if call.tool in self.tools else ""
