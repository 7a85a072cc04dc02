"""Count again, before a patch and after it: a block's sums over ranks, or how often a scale is applied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from .base import Outcome, Status, Tool, ToolArgs, ToolContext, ToolData
from .exactly_once_facts import from_deployment, from_user, merged, spelled
from .inside_call import SECONDS_OF_WORK, call_inside, work_within
from .twin_paths import patched

ROWS = 6
"""Rows and differences of a table in the text for a reader; the data has more."""


def _spelled(value: Any) -> Any:
    return {key: spelled(item) for key, item in value.items()} if isinstance(value, dict) else value


class RecountArgs(ToolArgs):
    """What to count, from where, and for which patch."""

    counted: Literal["reductions", "scale"] = Field(
        description="reductions: sums over ranks (all-reduce, reduce-scatter, combine) of what a block returns. "
        "scale: how often a factor has got into what a kernel or a further layer is handed."
    )
    factor: str = Field(default="", description="For a scale, the name it goes by in the source.")
    factors: list[str] = Field(
        default=[],
        description="Instead of `factor`: names that it may go by. Taken is the first that the patch mentions more or "
        "less often, else the first that stands in its files.",
    )
    entries: list[str] = Field(
        default=[],
        description="Where to begin: `path.py::Class.method`, `path.py::Class`, `Class.method`. Empty: where the "
        "patch's changed functions are reached from.",
    )
    patch: str | None = Field(
        default=None, description="A patch's id: count with its files as it found them, and as it left them."
    )
    facts: Annotated[dict[str, str], BeforeValidator(_spelled)] = Field(
        default_factory=dict,
        description="Known guards and their values, as for exactly_once; they win over what the deployment states.",
    )
    seconds: float = Field(
        default=45.0, gt=0, le=3_600, description=f"How long to follow code, all entries together. {SECONDS_OF_WORK}"
    )


class RecountRow(ToolData):
    """Worlds that come to the same."""

    count: int | None
    """None when it isn't known, or the parts differ."""
    parts: list[int]
    """Counts of the parts, where they differ."""
    unknown: str
    """Why there is no count."""
    when: list[str]
    """The shortest alternatives."""
    sites: list[str]
    """`path:line` of the places that count, in order."""
    calls: list[str]
    """What stands there."""


class Difference(ToolData):
    """Worlds that don't come to the same after the patch."""

    kind: str
    """twice: more often than before, and more than once. never: no longer, and no guard decides that alone.
    parts_differ: the parts no longer have one count. again: once, where a guard left it out before. handed_over: no
    longer, but with another value of one guard it is. replaced: no longer, but it is handed to something new of which
    nothing is known. reworded: it hangs on a guard that is new and on one that is gone. other_ranks: over another
    group. more: once, where it never was. fewer, once: less often than before. unknown: there is no count on one side.
    """
    before: str
    """The count, or why there is none."""
    after: str
    when: list[str]
    """The shortest alternatives."""
    hangs_on: list[str]
    """For a count of none on one side: the guards' values that decide it alone, or what it is handed to instead."""
    new_guards: list[str]
    """Of these, the ones that weren't asked before the patch."""


class RecountTable(ToolData):
    """One entry, followed."""

    entry: str
    line: int
    before: list[RecountRow]
    """Empty when there is nothing to compare with, or the entry is new."""
    after: list[RecountRow]
    differences: list[Difference]
    """The gravest first."""
    complete: bool
    """Every world has a count, on both sides."""
    strangers: list[str]
    """Calls that what is followed is handed to on one side only, or counted otherwise."""
    assumptions: list[str]
    blind: list[str]
    """Lines whose effect can't be seen."""
    failed: str
    """Why nothing was counted; empty when something was."""


class RecountData(ToolData):
    """The tables of all entries."""

    factor: str
    """The name that was followed; empty for reductions."""
    tables: list[RecountTable]
    differences: list[Difference]
    """Those of all tables."""
    kinds: list[str]
    """Kinds of `differences`, sorted."""
    counts: list[int]
    """Counts that occur now, sorted."""
    changed: list[str]
    """`path: function` of what the patch changes."""
    elsewhere: list[str]
    """What it changes outside functions."""
    not_followed: list[str]
    """Those of `changed` that no entry led to in both states."""
    compared: bool
    complete: bool
    """Every table is and nothing in it is out of sight, and all that the patch changes was followed."""

    def control_found(self) -> bool | None:
        """See `ToolData.control_found`: something was counted."""
        return any(row.count for table in self.tables for row in [*table.before, *table.after])


class Recount(Tool[RecountArgs, RecountData]):
    """Count a block's sums over ranks (all-reduce, reduce-scatter, combine), or how often a scale is applied, by
    following the code; with a patch, before it and after it, and say in which worlds the two differ.
    """

    name = "recount"
    Args = RecountArgs
    Data = RecountData

    def run(self, args: RecountArgs, context: ToolContext) -> Outcome[RecountData]:
        """See `Tool.run`. `no_data` when no entry has a count."""
        if args.patch is None and not args.entries:
            text = "neither a patch nor an entry is named, so there is nowhere to begin"
            return Outcome(Status.NO_DATA, _data(_NOTHING), text)
        known = merged(from_user(args.facts), from_deployment(context.deployment))
        request = args.model_dump(exclude={"patch"}) | {"facts": {fact.guard: fact.value for fact in known}}
        request |= work_within(args.seconds, context.sandbox.limits.seconds)
        sides = patched(args.patch, context, self.name)
        if sides:
            request |= {"before": sides["stock"], "after": sides["root"]}
        reply = call_inside(context.sandbox, "recount", request)
        data = _data(reply.value)
        counted = any(row.count is not None or row.parts for t in data.tables for row in [*t.before, *t.after])
        return Outcome(
            status=Status.OK if counted else Status.NO_DATA,
            data=data,
            text=render(data, args),
            commands=[reply.command],
            raw=[reply.raw],
        )


_NOTHING: dict[str, Any] = {
    "factor": "", "tables": [], "changed": [], "elsewhere": [], "not_followed": [], "compared": False,
}  # fmt: skip


def _data(reply: dict[str, Any]) -> RecountData:
    tables = [RecountTable.model_validate(table) for table in reply["tables"]]
    differences = [each for table in tables for each in table.differences]
    names = ("factor", "changed", "elsewhere", "not_followed", "compared")
    return RecountData(
        tables=tables,
        differences=differences,
        kinds=sorted({each.kind for each in differences}),
        counts=sorted({row.count for table in tables for row in table.after if row.count is not None}),
        complete=bool(tables)
        and all(table.complete and not table.blind and not table.strangers for table in tables)
        and not reply["not_followed"]
        and not reply["elsewhere"],
        **{name: reply[name] for name in names},
    )


def render(data: RecountData, args: RecountArgs) -> str:
    """The tables; with a patch, first what differs."""
    what = data.factor if args.counted == "scale" else "sums over ranks"
    lines = [f"{what}: {len(data.tables)} entries followed" + (", before the patch and after it" * data.compared)]
    lines += [f"not followed: {each}" for each in [*data.not_followed, *data.elsewhere]]
    for table in data.tables:
        lines += ["", f"{table.entry} (line {table.line})", *_table(table, data.compared)]
    return "\n".join(lines)


def _table(table: RecountTable, compared: bool) -> Iterator[str]:
    if table.failed:
        yield f"  nothing was counted: {table.failed}"
    for each in table.differences[:ROWS]:
        yield f"  DIFFERS ({each.kind}): {each.before} before, {each.after} now, when {' OR '.join(each.when[:2])}"
        yield from (f"    decided by {name}" for name in each.hangs_on[:ROWS])
    if compared and not table.differences and not table.failed:
        yield "  the same in every world"
    for row in table.after[:ROWS]:
        said = " and ".join(map(str, row.parts)) or (str(row.count) if row.count is not None else row.unknown)
        places = f" at {', '.join(row.sites)}" if row.sites else ""
        yield f"  {said}{places}, when {' OR '.join(row.when[:2])}"
    if len(table.after) > ROWS:
        yield f"  … {len(table.after) - ROWS} more rows; the data has them"
    yield from (f"  assumes: {text}" for text in table.assumptions[:ROWS])
    yield from (f"  can't be seen: {text}" for text in table.blind[:ROWS])
