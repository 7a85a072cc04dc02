"""Find where a symbol really lives, starting from a file that leads to it, and what happens to it there."""

from __future__ import annotations

from pydantic import Field

from .base import Outcome, Status, Tool, ToolArgs, ToolContext, ToolData
from .inside_call import call_inside
from .trace_text import render

APPLIES = ("multiply", "divide")
READS = ("condition", "assertion", "passed", "called", "read")


class TraceArgs(ToolArgs):
    """What to follow, and from where."""

    symbol: str = Field(
        min_length=1,
        description="Identifier; `Class.attribute` keeps only what belongs to that class or its relatives.",
    )
    entry: str = Field(
        min_length=1,
        description="Python file, relative to the clone's root; `path.py:Class.method` starts in one definition.",
    )
    max_depth: int = Field(default=4, ge=0, le=12, description="How many times a path may go from file to file.")
    max_lines: int = Field(
        default=8_000,
        ge=0,
        le=1_000_000,
        description="Lines of definitions to read in files that don't mention the symbol; more reaches further.",
    )


class Hop(ToolData):
    """One line on the way from the entry to where the symbol lives."""

    file: str
    line: int
    """From 1."""
    text: str
    via: str
    """imports, inherits, constructs, calls or refers."""
    name: str
    """What the line names: a module, class or function."""
    to_file: str
    """The file that it leads to."""


class Mention(ToolData):
    """One thing that one line does with the symbol."""

    file: str
    line: int
    """From 1."""
    column: int
    """From 1, in bytes."""
    text: str
    """The line, without its indentation, clipped at 200 characters."""
    kind: str
    """definition, attribute_assignment, assignment, parameter, keyword_argument, multiply, divide, condition,
    assertion, passed, called, read, import or string (a text that spells the name: getattr, a dict's key)."""
    scope: str
    """Dotted name of the enclosing class or function; empty at module level."""
    detail: str
    """The value, default, test, callee or expression, whichever matters for the kind."""
    guards: list[str]
    """Conditions of the enclosing function under which the line runs, outermost first; all of them hold."""
    alias: str
    """The local name that carries the value here; empty where the symbol itself is written."""
    sets: bool
    """Whether it gives the symbol a value."""
    distance: int
    """Weighted steps from the entry: construct and inherit 1, call 2, refer 3, import 4."""


class Home(ToolData):
    """A file that sets, defines or applies the symbol."""

    file: str
    distance: int
    """See `Mention.distance`."""
    reason: str
    """What it does there, with line numbers."""


class Unseen(ToolData):
    """A line of a visited definition whose effect the trace can't follow."""

    file: str
    line: int
    """From 1; 0 when the whole file is meant."""
    text: str
    """The line, or why it can't be parsed."""
    kind: str
    """getattr or setattr (with a computed name), kwargs, dynamic_import, exec, namespace, monkey_patch, lambda,
    closure, star_import, unresolved_import or unparsable."""
    scope: str
    touches: bool
    """Whether the same definition also mentions the symbol."""


class Reached(ToolData):
    """How far the trace went."""

    files_opened: int
    files_entered: int
    definitions: int
    """Classes, functions and variables read."""
    depth: int
    """The most files a path went through."""
    other_owners: int
    """Mentions left out because they belong to another class than the one named; 0 for a plain symbol."""
    cut: str
    """Which limit ended it early, and what that left out; empty when none did."""


class FileCount(ToolData):
    """Lines of one file that hold the symbol's name."""

    file: str
    count: int


class LeftOut(ToolData):
    """How many entries the lists don't hold."""

    occurrences: int
    unseen: int


class TraceData(ToolData):
    """Where the symbol lives, and what happens to it on the way."""

    symbol: str
    entry: str
    occurrences: list[Mention]
    """Every mention in what was reached, files in order of distance; at most 2,000."""
    setters: list[Mention]
    """Those that give it a value: assignments, definitions, keyword arguments, setattr, dict keys."""
    applications: list[Mention]
    """Those that multiply or divide by it: operators, in-place ones, mul_ and div_, `alpha=`."""
    assertions: list[Mention]
    """Those in an assert."""
    readers: list[Mention]
    """Those that test, pass, call or read it, assertions included."""
    chain: list[Hop]
    """The way from the entry to `home`; empty when it is the entry itself, or when there is none."""
    home: str | None
    """The nearest file that sets, defines or applies it; else that takes or hands it on; else that reads it."""
    homes: list[Home]
    """All files reached that do to it what `home` does, nearest first."""
    unseen: list[Unseen]
    """What the trace could not follow, that which touches the symbol first; at most 300."""
    reached: Reached
    elsewhere: list[FileCount]
    """Filled when nothing was reached: files of the clone that mention the symbol all the same, at most 20."""
    left_out: LeftOut

    def control_found(self) -> bool | None:
        """See `ToolData.control_found`: the name does occur in the clone, the entry just doesn't lead there."""
        return None if self.occurrences else bool(self.elsewhere)


class SymbolTrace(Tool[TraceArgs, TraceData]):
    """Starting at a file, follow imports, base classes, constructions and calls to where a symbol really lives. Lists
    who sets it, where it is multiplied or divided by and under which conditions, who reads it, and what can't be seen.
    """

    name = "symbol_trace"
    Args = TraceArgs
    Data = TraceData

    def run(self, args: TraceArgs, context: ToolContext) -> Outcome[TraceData]:
        """See `Tool.run`. A symbol that isn't met is `no_data`."""
        reply = call_inside(context.sandbox, "trace", args.model_dump())
        data = read(args, reply.value)
        left = data.left_out.model_dump()
        parts = [f"{count:,} {name} are not listed" for name, count in left.items() if count]
        return Outcome(
            status=Status.OK if data.occurrences else Status.NO_DATA,
            data=data,
            text=render(data),
            commands=[reply.command],
            truncated="; ".join([*parts, *([data.reached.cut] if data.reached.cut else [])]),
        )


def read(args: TraceArgs, reply: dict[str, object]) -> TraceData:
    """The script's reply as data, with the occurrences sorted by what they do."""
    every = [Mention.model_validate(one) for one in _list(reply["occurrences"])]
    return TraceData.model_validate(
        {
            **reply,
            "symbol": args.symbol,
            "entry": args.entry,
            "occurrences": every,
            "setters": [o for o in every if o.sets],
            "applications": [o for o in every if o.kind in APPLIES],
            "assertions": [o for o in every if o.kind == "assertion"],
            "readers": [o for o in every if o.kind in READS or (o.kind == "string" and not o.sets)],
        }
    )


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
