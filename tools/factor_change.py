"""What a patch does to how often a factor is applied: the worlds before and after it, counted by two instruments."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from .base import Outcome, Status, Tool, ToolArgs, ToolContext, ToolData
from .exactly_once import Facts, Part, Site
from .exactly_once_facts import Known, from_deployment, from_user, merged
from .factor_change_judge import confirmed, judge
from .factor_change_text import render
from .inside_call import SECONDS_OF_WORK, Reply, call_inside, work_within
from .twin_paths import patched

SLOWEST = 3.0
"""The time limit, as a multiple of what an ordinary machine needs."""


class FactorChangeArgs(ToolArgs):
    """Which patch, which factor, from where, and what is known."""

    factor: str = Field(min_length=1, description="Name of the factor in the source, such as routed_scaling_factor.")
    patch: str | None = Field(
        default=None, description="The patch's id, as `sleuth.yaml` lists it; there is no answer without."
    )
    entry: str = Field(
        default="",
        description="Where to begin: as for exactly_once. A file that doesn't mention the factor stands for the "
        "classes that it imports and names, which do. Empty: classes that read the factor from a configuration and "
        "name what the patch changes.",
    )
    facts: Facts = Field(default_factory=dict, description="Known guards and their values; they win over all others.")
    assume: Facts = Field(
        default_factory=dict,
        description="What is taken where nobody states it, such as platform: cuda. The answer holds for it alone.",
    )
    ordinary: Facts = Field(
        default_factory=dict,
        description="Settings to look at first where all worlds are too many; nothing is cleared for them alone.",
    )
    deployment_facts: bool = Field(
        default=True, description="Ask about the deployment as it is set; false: about every setting."
    )
    sinks: str = Field(default="", description="More entries for sinks.toml, as TOML text.")
    seconds: float = Field(default=240.0, gt=0, le=3_600, description=f"How long to follow code. {SECONDS_OF_WORK}")


class Row(Part):
    """Worlds of one entry in which the patch can matter, and what became of them."""

    kind: str
    """same; right (now once); broken (was once, isn't now); let through (raised, is wrong now); refused (raises now);
    wrong before (and is still); unknown."""
    before: str
    after: str
    count_before: int | None
    count_after: int | None
    when: list[str]
    """Alternatives for a reader, the shortest ones."""
    more: bool = False
    sites: list[Site]
    """Where the factor is applied, after the patch."""


class EntryChange(Part):
    """What became of one entry's worlds."""

    path: str
    symbol: str
    line: int
    slice: dict[str, str]
    """Settings for which alone this holds."""
    rows: list[Row]
    certain: list[str]
    """Configurations in which no world is right, and some are wrong that weren't."""
    blind: list[str]
    """What could change the count and can't be seen, with the patch alone."""
    failed: str
    """Why there are no rows."""
    facts_used: list[str]
    assumptions: list[str]


class UnitRow(Part):
    """What a method of a changed class comes to."""

    method: str
    before: str
    after: str
    count_before: int | None
    count_after: int | None
    when: list[str]


class Sibling(Part):
    """A class that is made in the place of a changed one."""

    path: str
    name: str
    line: int
    contract: dict[str, dict[str, list[int]]]
    same: bool
    """It applies the factor as often, where the parameters are true and where they are false."""


class Unit(Part):
    """A changed class by itself."""

    path: str
    name: str
    methods: list[str]
    rows: list[UnitRow]
    cubes: list[dict[str, list[str]]] | None
    """Conditions on the constructor's parameters, outside of which nothing differs; None if none are known."""
    why: str
    """Why none are."""
    contract: dict[str, dict[str, list[int]]]
    """For parameters that matter, the counts where they are true and where they are false."""
    siblings: list[Sibling]
    run: dict[str, dict[str, list[int]]] = Field(default_factory=dict)
    """The same counts by running the code on stand-ins."""
    agrees: bool | None = None
    """Both instruments say the same; None if running it told nothing."""


class Run(Part):
    """The counts that running an entry on stand-ins gave."""

    symbol: str
    counts: list[int]
    complete: bool
    """Every combination of answers was run."""


class FactorChangeData(ToolData):
    """What a patch does to the count."""

    factor: str
    patch: str
    outcome: str
    """broken, exact, inert, same contract, not reached, disagreement or undecided."""
    reasons: list[str]
    """Why, for a reader."""
    twice: bool
    """In some world that it breaks, the factor is applied more than once."""
    never: bool
    """In some world that it breaks, the factor is never applied."""
    confirmed: bool
    """Running the changed code on stand-ins gave the same counts."""
    only_here: bool
    """Nothing but the classes that were entered makes objects of the changed classes."""
    changed: list[str]
    loose: list[str]
    units: list[Unit]
    runs: list[Run]
    """The entries, run with the patch, where no changed class can be run by itself."""
    entries: list[EntryChange]
    facts: dict[str, str]
    """Those that fixed a guard: name and value, with where it was read."""
    stated: bool
    """Some of these come from the deployment."""

    def control_found(self) -> bool | None:
        """See `ToolData.control_found`: the factor was seen to be applied, before or after."""
        return any(row.count_before or row.count_after for each in self.entries for row in each.rows) or None


class FactorChange(Tool[FactorChangeArgs, FactorChangeData]):
    """Say what a patch does to how often a factor is applied: in which worlds the count changes, from what to what.

    The clone is followed with and without the patch; the classes that it changes are also run on stand-ins.
    """

    name = "factor_change"
    Args = FactorChangeArgs
    Data = FactorChangeData

    def run(self, args: FactorChangeArgs, context: ToolContext) -> Outcome[FactorChangeData]:
        """See `Tool.run`. `no_data` when the entry never comes to what the patch changes."""
        if args.patch is None:
            return _nothing(args)
        stated = from_deployment(context.deployment) if args.deployment_facts else []
        known = merged(from_user(args.facts), stated, [Known(g, v, "assumed") for g, v in args.assume.items()])
        reply = _ask(args, known, context)
        found, ran = confirmed(reply.value, args, known, context)
        used = {name for entry in found["entries"] for name in entry["facts_used"]}
        data = FactorChangeData(
            factor=args.factor,
            patch=args.patch,
            **judge(found),
            only_here=found["only_here"],
            changed=found["changed"],
            loose=found["loose"],
            units=[Unit.model_validate(unit) for unit in found["units"]],
            runs=[Run.model_validate(run) for run in found["runs"]],
            entries=[EntryChange.model_validate(entry) for entry in found["entries"]],
            facts={k.guard: f"{k.value} ({k.source})" for k in known if k.guard in used},
            stated=any(k.guard in used for k in stated),
        )
        return Outcome(
            status=Status.NO_DATA if data.outcome == "not reached" else Status.OK,
            data=data,
            text=render(data.model_dump()),
            commands=[reply.command, *ran],
            raw=[reply.raw],
        )


def _nothing(args: FactorChangeArgs) -> Outcome[FactorChangeData]:
    why = "no patch is named, so there is no state before it to compare with"
    found: dict[str, Any] = {key: [] for key in ("changed", "loose", "units", "runs", "entries")}
    found |= dict.fromkeys(("twice", "never", "confirmed", "only_here", "stated"), False)
    data = FactorChangeData(factor=args.factor, patch="", outcome="undecided", reasons=[why], facts={}, **found)
    return Outcome(Status.NO_DATA, data, why)


def _ask(args: FactorChangeArgs, known: list[Known], context: ToolContext) -> Reply:
    roots = patched(args.patch, context, "factor_change")
    request = {
        "before": roots["stock"],
        "after": roots["root"],
        "facts": {fact.guard: fact.value for fact in known},
        **args.model_dump(include={"factor", "entry", "ordinary", "sinks"}),
        **work_within(args.seconds, args.seconds * SLOWEST),
    }
    return call_inside(context.sandbox, "trace_change", request, args.seconds * SLOWEST)
