"""How often a factor is applied, and in which configuration: the worlds table, by following the code."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field

from .base import Outcome, Status, Tool, ToolArgs, ToolContext, ToolData, ToolError
from .exactly_once_facts import Known, from_deployment, from_user, merged, spelled, why_unused
from .exactly_once_text import render
from .inside_call import SECONDS_OF_WORK, Reply, call_inside, work_within

OUT_OF_TIME = "more time than it was given"
"""How the script says that it ran out of time."""


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _spelled(value: Any) -> Any:
    return {key: spelled(item) for key, item in value.items()} if isinstance(value, dict) else value


Facts = Annotated[dict[str, str], BeforeValidator(_spelled)]
"""Guards and their values, spelled as guards spell them."""


class ExactlyOnceArgs(ToolArgs):
    """What to count, from where, and what is known about where it runs."""

    factor: str = Field(min_length=1, description="Name of the factor in the source, such as routed_scaling_factor.")
    entry: str = Field(
        default="",
        description="Where to begin: `path.py`, `path.py::Class`, `path.py::Class.method`, `Class` or `Class.method`. "
        "Empty: every class that reads the factor from a configuration and has a forward method.",
    )
    facts: Facts = Field(
        default_factory=dict,
        description="Known guards and their values, such as platform: cuda. A guard goes by its name in a table or by "
        "the last identifier of that name. They win over what the deployment states.",
    )
    sinks: str = Field(
        default="",
        description="More entries for sinks.toml, as TOML text: what calls that leave Python do with the factor.",
    )
    seconds: float = Field(
        default=45.0, gt=0, le=3_600, description=f"How long to follow code, all entries together. {SECONDS_OF_WORK}"
    )
    tables: bool = Field(
        default=True,
        description="False: follow nothing, only name the places that use the factor unlike their siblings.",
    )


class Part(ToolData):
    """Base of the parts of a reply: keys that aren't known are dropped, since the script runs on untrusted code."""

    model_config = ConfigDict(extra="ignore", frozen=True, serialize_by_alias=True)


class Entry(Part):
    """Where the code was entered."""

    path: str
    symbol: str
    line: int


class Clause(Part):
    """One guard and the values it has; any of them."""

    guard: str
    is_: list[str] = Field(alias="is")


class World(Part):
    """Combinations of guards that come to the same."""

    when: list[list[Clause]]
    """Alternatives, of each of which every clause holds."""
    text: Annotated[list[str], BeforeValidator(_listed)]
    """The same, for a reader."""
    more: bool = False
    """There are more alternatives than listed."""
    count: int | None
    """How often the factor is applied; None when it isn't known, an exception ends it, or the parts differ."""
    parts: list[int] = Field(default_factory=list)
    """Counts of the routed parts, where they differ."""
    unknown: str = ""
    """Why the count isn't known."""
    raises: str = ""
    """`path:line message` of the exception that ends it."""
    aside: bool = False
    """The exception says nothing of the factor, such as a check of another argument."""
    sites: list[int] = Field(default_factory=list)
    """Indices into `sites`, in order."""


class Summary(Part):
    """One count with the shortest conditions for it; the last one may say `otherwise`."""

    count: int | None
    parts: list[int] = Field(default_factory=list)
    unknown: str = ""
    raises: str = ""
    when: list[str] = Field(default_factory=list)
    """Alternatives for a reader, the shortest ones."""
    more: bool = False


class Site(Part):
    """A line that applies the factor."""

    path: str
    line: int
    kind: str
    """multiply, in-place, alpha, kernel, folded-into-weights, reciprocal or renormalised."""
    text: str
    symbol: str


class Guard(Part):
    """A condition that some world depends on."""

    name: str
    key: str = ""
    path: str
    line: int
    values: list[str]


class Blind(Part):
    """A line whose effect can't be seen."""

    path: str
    line: int
    why: str


class Finding(Part):
    """A place at which the factor isn't applied exactly once, in some world."""

    kind: str
    """never, twice or differs (parts of the output)."""
    role: str = ""
    """What this place has to do with it."""
    count: int | None = None
    parts: list[int] = Field(default_factory=list)
    path: str
    line: int
    end_line: int = 0
    symbol: str = ""
    when: str = ""
    why: str = ""


class Seen(Part):
    """A place that a suspect was compared with."""

    path: str
    line: int
    symbol: str = ""
    note: str = ""


class Suspect(Part):
    """A place that uses the factor unlike its siblings; it isn't counted, and no verdict rests on it."""

    kind: str
    """never, twice or wrong."""
    rule: str
    """Which comparison found it."""
    path: str
    line: int
    end_line: int = 0
    symbol: str = ""
    when: str = ""
    why: str = ""
    see: list[Seen] = Field(default_factory=list)


class Table(Part):
    """The worlds table of one entry."""

    factor: str
    entry: Entry
    worlds: list[World]
    sites: list[Site]
    guards: list[Guard]
    facts_used: list[str] = Field(default_factory=list)
    assumptions: list[str]
    """What the counts rest on."""
    blind: list[Blind]
    """What could change the count and can't be seen."""
    summary: list[Summary] = Field(default_factory=list)
    findings: list[Finding] = Field(default_factory=list)
    slice: dict[str, str] = Field(default_factory=dict)
    """The class of an object for which alone this table holds, where there is one table a class."""
    steps: int = 0


class Fact(Part):
    """Something known about where the code runs."""

    guard: str
    value: str
    source: str
    used: bool
    """It fixed a guard that was met."""
    why: str = ""
    """Of a given one: why it didn't."""


class ExactlyOnceData(ToolData):
    """The tables of all entries that were followed."""

    factor: str
    tables: list[Table]
    findings: list[Finding]
    """Those of all tables."""
    suspects: list[Suspect] = Field(default_factory=list)
    """Places that deviate from their siblings; looked for where no entry is named."""
    compared: dict[str, int] = Field(default_factory=dict)
    """For each file, how many of its functions were compared with others for that."""
    counts: list[int]
    """Every count that occurs, in order."""
    undecided: int
    """Worlds without a count that don't end in an exception."""
    raising: int
    """Worlds that end in an exception."""
    facts: list[Fact]
    entries_left_out: int
    files: dict[str, str]
    """SHA-256 of every file that was read, as text."""
    broken: dict[str, str]
    """Files that couldn't be read as Python, and why."""
    timed_out: bool
    """More time might have decided more."""

    def control_found(self) -> bool | None:
        """See `ToolData.control_found`: the factor was seen to be applied somewhere, or some world was counted."""
        return any(table.sites for table in self.tables) or bool(self.counts) or bool(self.compared)


class ExactlyOnce(Tool[ExactlyOnceArgs, ExactlyOnceData]):
    """Follow a factor from its configuration to the output and say, for every combination of guards that matters, how
    often the routed part is multiplied by it and where. What can't be decided is unknown, with the reason.
    """

    name = "exactly_once"
    Args = ExactlyOnceArgs
    Data = ExactlyOnceData

    def run(self, args: ExactlyOnceArgs, context: ToolContext) -> Outcome[ExactlyOnceData]:
        """See `Tool.run`. Tables without a count, an exception or a finding are `no_data`."""
        known = merged(from_user(args.facts), from_deployment(context.deployment))
        reply = _ask(args, known, context)
        data = _data(args, reply.value, known)
        left = data.entries_left_out
        return Outcome(
            status=Status.OK if data.counts or data.raising or data.findings or data.compared else Status.NO_DATA,
            data=data,
            text=render(data.model_dump()),
            commands=[reply.command],
            raw=[reply.raw],
            truncated=f"{left:,} entries weren't followed; name one with `entry`" if left else "",
        )


def _ask(args: ExactlyOnceArgs, known: list[Known], context: ToolContext) -> Reply:
    request = args.model_dump() | {"facts": {fact.guard: fact.value for fact in known}}
    request |= work_within(args.seconds, context.sandbox.limits.seconds)
    try:
        return call_inside(context.sandbox, "trace_factor", request)
    except ToolError as error:
        about_entry = args.entry and str(error).startswith(f"{args.entry.partition('::')[0]}:")
        near = _near(args.entry, context) if about_entry else ""
        raise ToolError(f"{error}{near}") if near else error from None


def _near(entry: str, context: ToolContext) -> str:
    """`; did you mean 'x'?` for an entry that isn't there."""
    found = call_inside(context.sandbox, "near_names", {"name": entry}).value["near"]
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


def _data(args: ExactlyOnceArgs, reply: dict[str, Any], known: list[Known]) -> ExactlyOnceData:
    tables = [Table.model_validate(table) for table in reply["tables"]]
    worlds = [world for table in tables for world in table.worlds]
    raising = sum(bool(world.raises) for world in worlds)
    parts = {count for world in worlds for count in (world.parts if world.count is None else [world.count])}
    return ExactlyOnceData(
        factor=args.factor,
        tables=tables,
        findings=[finding for table in tables for finding in table.findings],
        suspects=[Suspect.model_validate(suspect) for suspect in reply["suspects"]],
        compared=reply["compared"],
        counts=sorted(parts),
        undecided=sum(world.count is None and not world.parts for world in worlds) - raising,
        raising=raising,
        facts=[_fact(fact, args, tables) for fact in known],
        entries_left_out=reply["entries_left_out"],
        files=reply["files"],
        broken=reply["broken"],
        timed_out=any(OUT_OF_TIME in world.unknown for world in worlds),
    )


def _fact(known: Known, args: ExactlyOnceArgs, tables: list[Table]) -> Fact:
    used = any(known.guard in table.facts_used for table in tables)
    guards = {guard.name: guard.values for table in tables for guard in table.guards}
    why = why_unused(known, guards) if not used and known.guard in args.facts else ""
    return Fact(guard=known.guard, value=known.value, source=known.source, used=used, why=why)
