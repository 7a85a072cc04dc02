"""Count how often a factor is applied by running the deployment's own code, in the sandbox, on stand-ins."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from .base import Outcome, Status, Tool, ToolArgs, ToolContext, ToolData
from .inside_call import call_inside
from .power_text import render


class PowerArgs(ToolArgs):
    """What to run, and what is known about where it runs."""

    factor: str = Field(min_length=1, description="Name of the factor: an attribute, parameter or key.")
    entry: str = Field(
        min_length=1,
        description="What to run: `path.py:Class.method`, `path.py:function`, or `path.py:Class.first,second` for "
        "methods that run one after the other on one object and the same arguments.",
    )
    facts: dict[str, Any] = Field(
        default_factory=dict,
        description="Known answers by condition: `platform`, a module's variable, `getter()`, `type(attribute)`, "
        "`env.NAME` (null: unset; `env.*` null: all others are), or any condition that an earlier table names. "
        "What they leave open is tried.",
    )
    runs: int = Field(default=400, ge=1, le=20_000, description="How many runs to make at most.")
    seconds: float = Field(default=40.0, gt=0, le=3_600, description="How long to go on.")


class Condition(ToolData):
    """One condition of a world."""

    guard: str
    is_: str = Field(alias="is")


class World(ToolData):
    """Combinations of answers that have one outcome."""

    when: list[Condition]
    """Conditions that hold; none when nothing else was found."""
    count: int | None
    """How many times the routed part is multiplied; None when it isn't known."""
    unknown: str
    """Why not."""
    raises: str
    """`path:line message`, when the code raises instead."""
    sites: list[int]
    """Indices into `sites`, in the order of the first run."""
    runs: int
    """How many runs it stands for."""


class Site(ToolData):
    """A line that applies the factor."""

    path: str
    line: int
    kind: str
    """multiply, in-place, alpha, kernel, folded-into-weights, reciprocal or renormalised."""
    text: str
    symbol: str


class Guard(ToolData):
    """A question that matters, or that a fact answered."""

    name: str
    path: str
    line: int
    values: list[str]
    fixed: str | None
    """The answer that a fact gave."""


class Blind(ToolData):
    """A line whose effect can't be seen."""

    path: str
    line: int
    why: str


class Finding(ToolData):
    """A world in which the factor isn't applied exactly once."""

    kind: Literal["never", "twice", "unknown"]
    count: int | None
    path: str
    line: int
    end_line: int
    symbol: str
    when: str
    why: str


class Entry(ToolData):
    """What was run."""

    path: str
    symbol: str
    line: int


class PowerData(ToolData):
    """The worlds table."""

    factor: str
    entry: Entry
    worlds: list[World]
    sites: list[Site]
    guards: list[Guard]
    assumptions: list[str]
    """What the counts rest on."""
    blind: list[Blind]
    findings: list[Finding]
    complete: bool
    """Whether every combination of answers was run."""
    runs: int


class PowerCount(Tool[PowerArgs, PowerData]):
    """Run a function or method of the clone on stand-ins in which the factor is a prime and everything else is one: the
    power in what comes out is how often the factor was applied. Says so for each combination of conditions.
    """

    name = "power_count"
    Args = PowerArgs
    Data = PowerData

    def run(self, args: PowerArgs, context: ToolContext) -> Outcome[PowerData]:
        """See `Tool.run`. A table without a single count is `no_data`."""
        path, _, symbol = args.entry.rpartition(":")
        request = {**args.model_dump(exclude={"entry"}), "entry": {"path": path or symbol, "symbol": symbol}}
        reply = call_inside(context.sandbox, "power_count", request)
        data = PowerData.model_validate(reply.value)
        counted = any(world.count is not None for world in data.worlds)
        return Outcome(
            status=Status.OK if counted or any(world.raises for world in data.worlds) else Status.NO_DATA,
            data=data,
            text=render(data),
            commands=[reply.command],
            truncated="" if data.complete else f"not every combination was run, only {data.runs:,}",
        )
