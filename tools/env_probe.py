"""What a deployment is really set to, and where each value comes from."""

from __future__ import annotations

import json
import re
from typing import ClassVar, Literal

from pydantic import Field

from ..sandbox.deployment import Deployment
from .base import Outcome, Status, Tool, ToolArgs, ToolContext, ToolError
from .env_argv import Value, snake
from .env_facts import Answer, EnvProbeData, Fact
from .env_sources import Findings, container, described, options_typed, process
from .inside_call import Reply, call_inside

Source = Literal["described", "process", "container", "defaults"]
VALUE_WIDTH = 80


class EnvProbeArgs(ToolArgs):
    """What to look up."""

    names: list[str] = Field(
        default=[],
        description="Names, globs or prefixes ending in `_`: variables (SGLANG_OPT_*), launch "
        "arguments (--moe-runner-backend or moe_runner_backend), model config keys, dotted "
        "where nested (rope_scaling.factor), platform facts (process.*, container.*). Empty: "
        "everything that is set.",
    )
    sources: list[Source] = Field(
        default=[],
        description="Where to look; empty: all that the deployment names, and defaults.",
    )


class EnvProbe(Tool[EnvProbeArgs, EnvProbeData]):
    """Look up what the deployment is set to.

    Covers environment variables, launch arguments, model config values and platform facts.
    Reads the deployment's description, the running process, the container's description, and the
    defaults in the source for what nobody set; says where each value comes from and where places
    disagree. A running process beats a container, which beats the description. Secrets are hidden.
    """

    name: ClassVar[str] = "env_probe"
    Args = EnvProbeArgs
    Data = EnvProbeData

    def run(self, args: EnvProbeArgs, context: ToolContext) -> Outcome[EnvProbeData]:
        """Look in every source and bring the answers together.

        Raises:
            ToolError: a source is asked for that the deployment doesn't name, or none can be read.
            ToolTimeout, SandboxError: as `call_inside`.
        """
        wanted = _sources(args, context.deployment)
        found = _read(wanted, context.deployment, set())
        reply = _defaults(args, found, context) if "defaults" in wanted else None
        if reply is not None and (flags := _flags(reply)):
            found = _read(wanted, context.deployment, flags)
        if wanted != ["defaults"] and found and all(f.failed and not f.readings for f in found):
            raise ToolError("; ".join(w for f in found for w in f.failed))
        answer = Answer(args.names, found, reply.value if reply else {})
        data = answer.data(wanted)
        return Outcome(_status(args, data), data, _render(data), [reply.command] if reply else [])


def _sources(args: EnvProbeArgs, deployment: Deployment) -> list[str]:
    """Sources to read, without those by default that the deployment doesn't name."""
    named = {"process": deployment.process, "container": deployment.container}
    missing = [n for n, value in named.items() if value is None]
    for name in args.sources:
        if name in missing:
            key = "pid: NUMBER" if name == "process" else "inspect: FILE"
            raise ToolError(
                f"sources: {deployment.path.name} names no {name}; add `{name}: {{{key}}}`, or leave it out"
            )
    every = ["process", "container", "described", "defaults"]
    return [n for n in every if (n in args.sources if args.sources else n not in missing)]


def _read(wanted: list[str], deployment: Deployment, flags: set[str]) -> list[Findings]:
    found = []
    if "process" in wanted and deployment.process:
        found.append(process(deployment.process.pid, flags))
    if "container" in wanted and deployment.container:
        found.append(container(deployment.container.inspect, flags))
    if "described" in wanted:
        found.append(described(deployment, flags))
    return found


def _defaults(args: EnvProbeArgs, found: list[Findings], context: ToolContext) -> Reply | None:
    """Ask the tree for defaults, and for the options that the typed spellings stand for."""
    asked = [n for n in args.names if "." not in n and not _vague(n)]
    env = [n for n in asked if _is_variable(n)]
    options = [snake(n) for n in asked if not _is_variable(n)]
    exact = [n for n in options if not re.search(r"[*?]|_$", n)]
    typed = sorted({*options_typed(found), *exact}) if options or not args.names else []
    if not env and not typed and not options:
        return None
    entry = next((e for f in found if (e := f.command.entry())), "")
    request = {"env": env, "args": options, "typed": typed, "entry": entry}
    return call_inside(context.sandbox, "defaults", request)


def _is_variable(name: str) -> bool:
    return name.upper() == name and not name.startswith("-")


def _vague(name: str) -> bool:
    """A glob that fits half the tree."""
    parts = re.split(r"[*?]", name)
    return len(parts) > 1 and max(map(len, parts)) < 3


def _flags(reply: Reply) -> set[str]:
    aliases: dict[str, dict[str, object]] = reply.value["aliases"]
    return {typed for typed, option in aliases.items() if option["flag"]}


def _status(args: EnvProbeArgs, data: EnvProbeData) -> Status:
    if any(f.effective for f in data.facts) or set(args.names) - set(data.unset):
        return Status.OK
    # What a source that failed might have said is unknown: that is no proof of absence.
    return Status.ERROR if data.failed else Status.NO_DATA


def _render(data: EnvProbeData) -> str:
    rows = [(f.name, shown(f.value), _place(f)) for f in data.facts]
    widths = [max([len(r[n]) for r in rows], default=0) for n in (0, 1)]
    lines = [f"{n:{widths[0]}}  {v:{widths[1]}}  {s}" for n, v, s in rows]
    for conflict in data.conflicts:
        lines.append(f"CONFLICT {conflict.name}: {conflict.why}")
        lines += [f"    {shown(c.value)}  ({c.source})" for c in conflict.values]
    if data.unset:
        where = ", ".join(data.looked_at)
        lines.append(f"neither set nor with a known default: {', '.join(data.unset)} (looked at: {where})")
    lines += [f"NOT READ {text}" for text in data.failed]
    lines += [f"note: {text}" for text in data.notes]
    return "\n".join(lines) or "nothing is set"


def _place(fact: Fact) -> str:
    marks = [fact.note] if fact.note else []
    if not fact.effective:
        marks.insert(0, "not in effect")
    return f"{fact.source}  [{'; '.join(marks)}]" if marks else fact.source


def shown(value: Value) -> str:
    """A value on one line, at most `VALUE_WIDTH` characters."""
    plain = isinstance(value, str) and value.isprintable() and value == value.strip() and value
    text = value if plain else json.dumps(value, ensure_ascii=not isinstance(value, list))
    assert isinstance(text, str)
    return text if len(text) <= VALUE_WIDTH else text[: VALUE_WIDTH - 1] + "…"
