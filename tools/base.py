"""The tool contract: typed arguments in, one result out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from ..sandbox.base import Sandbox
from ..sandbox.deployment import Deployment


class Status(StrEnum):
    """How a call went. `no_data`: the instrument found nothing, which counts only beside a control that did."""

    OK = "ok"
    NO_DATA = "no_data"
    ERROR = "error"
    TIMEOUT = "timeout"
    DENIED = "denied"


class ToolArgs(BaseModel):
    """Base of every tool's arguments: unknown keys are refused. Field descriptions are what a model is told."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ToolData(BaseModel):
    """Base of every tool's machine-readable findings; playbook conditions are checked against its fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def control_found(self) -> bool | None:
        """Whether a control made by the tool itself found something; None when it made none.

        Where a call found nothing, only a control that found something turns that into evidence.
        """
        return None


ArgsT = TypeVar("ArgsT", bound=ToolArgs)
DataT = TypeVar("DataT", bound=ToolData)


@dataclass(frozen=True)
class Outcome(Generic[DataT]):
    """What a tool hands back; `call_tool` turns it into the recorded result.

    Attributes:
        status: ok, no_data, error or timeout.
        data: the findings for code, complete up to the tool's own stated limits.
        text: the findings for a reader, as plain text.
        commands: every command that ran inside the sandbox, in order.
        raw: files with unabridged output, kept as artefacts.
        truncated: what was left out and how to see it; empty when nothing was.
    """

    status: Status
    data: DataT
    text: str
    commands: list[tuple[str, ...]] = field(default_factory=list)
    raw: list[Path] = field(default_factory=list)
    truncated: str = ""


class ToolError(Exception):
    """A call that can't give an answer: the message names the value, where it came from and what would have worked."""


class ToolTimeout(ToolError):
    """The call was stopped at its time limit."""


@dataclass(frozen=True)
class ToolContext:
    """What a tool may use: the sandbox and the deployment's description. Nothing else of the host."""

    sandbox: Sandbox
    deployment: Deployment


class Tool(ABC, Generic[ArgsT, DataT]):
    """One instrument. Subclasses keep no state; their docstring is what a person and a model are told."""

    name: ClassVar[str]
    Args: ClassVar[type[ToolArgs]]
    Data: ClassVar[type[ToolData]]

    @abstractmethod
    def run(self, args: ArgsT, context: ToolContext) -> Outcome[DataT]:
        """Make the observation.

        Raises:
            ToolError: no answer can be given (missing file, bad regex); becomes status `error`.
            ToolTimeout: becomes status `timeout`.
            SandboxError: the sandbox failed; never turned into a result, it ends the case's current run.
        """
