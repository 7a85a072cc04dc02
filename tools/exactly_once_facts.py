"""What a deployment is known to be set to, as facts that fix the tracer's guards.

Only what somebody set counts. A default of the source isn't taken: engines often replace it when they start, and a
guard that is fixed wrongly makes a count wrong, while an open one only makes the table longer.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..sandbox.deployment import Deployment
from .env_facts import Answer
from .env_facts import Fact as Setting
from .env_sources import container, described, process

ARGUMENT_HOLDERS = ("_global_server_args", "server_args", "args")
"""What holds the launch arguments in the engines' sources."""
DEVICES = {"cpu": "cpu", "xpu": "xpu", "hpu": "hpu", "npu": "npu", "musa": "musa", "mps": "mps", "tpu": "tpu"}
"""Values of `--device` that mean one platform; `cuda` doesn't, PyTorch on ROCm goes by it too."""
PLATFORM_VARIABLES = {
    "NVIDIA_VISIBLE_DEVICES": "cuda",
    "HIP_VISIBLE_DEVICES": "hip",
    "ROCR_VISIBLE_DEVICES": "hip",
    "ASCEND_RT_VISIBLE_DEVICES": "npu",
    "ZE_AFFINITY_MASK": "xpu",
}
"""Variables that only one vendor's software reads."""
PLATFORM_IMAGES = {r"cu1\d\d\b|\bcuda|nvidia": "cuda", r"rocm": "hip", r"\bcann|ascend": "npu", r"\bxpu\b": "xpu"}
NESTED = {"text_config", "llm_config", "language_config", "thinker_config"}
"""Where a config.json of several models keeps the language model's."""


@dataclass(frozen=True)
class Known:
    """One fact: a guard, by a name it may go by, its value, and where that was read."""

    guard: str
    value: str
    source: str


def from_user(facts: Mapping[str, object]) -> list[Known]:
    """Facts that were given with the call."""
    return [Known(guard, spelled(value), "given") for guard, value in facts.items()]


def from_deployment(deployment: Deployment) -> list[Known]:
    """Facts that the deployment's description, running process or container states.

    A launch argument or config value counts under its own name where that name is of several words, and is then
    recognised wherever the source keeps it; a name of one word (`device`) only under what holds it (`args.device`).
    """
    found = [described(deployment, set())]
    if deployment.process:
        found.append(process(deployment.process.pid, set()))
    if deployment.container:
        found.append(container(deployment.container.inspect, set()))
    settings = [fact for fact in Answer([], found, {}).data([f.origin for f in found]).facts if fact.effective]
    claims = [known for fact in settings for known in _facts(fact)]
    return [*_platform(settings), *_agreed(claims)]


def _facts(fact: Setting) -> Iterator[Known]:
    if isinstance(fact.value, list):
        return
    names: list[str] = []
    if fact.kind == "env":
        names = [fact.name, f"env.{fact.name}"]
    elif fact.kind == "arg" and fact.name.isidentifier():
        names = [*_general(fact.name), *(f"{holder}.{fact.name}" for holder in ARGUMENT_HOLDERS)]
    elif fact.kind == "config":
        path = fact.name.split(".")
        if path[:-1] == [] or (len(path) == 2 and path[0] in NESTED):
            names = [*_general(path[-1]), f"config.{path[-1]}"]
    for name in names:
        yield Known(name, spelled(fact.value), fact.source)


def _general(name: str) -> list[str]:
    """The name, where it is particular enough to be recognised on its own."""
    return [name] if "_" in name.strip("_") else []


def _agreed(claims: Iterable[Known]) -> Iterator[Known]:
    """One fact a name; where an argument and a config key of one name differ, nothing is known."""
    by_name: dict[str, list[Known]] = {}
    for claim in claims:
        by_name.setdefault(claim.guard, []).append(claim)
    for same in by_name.values():
        if len({claim.value for claim in same}) == 1:
            yield same[0]


def _platform(settings: list[Setting]) -> Iterator[Known]:
    """The platform, where everything that speaks of it says the same."""
    claims = [*_platform_claims(settings)]
    if len({claim.value for claim in claims}) == 1:
        yield claims[0]


def _platform_claims(settings: list[Setting]) -> Iterator[Known]:
    for fact in settings:
        value, platform = str(fact.value), ""
        if fact.name == "process.accelerator":
            platform = value
        elif fact.kind == "arg" and fact.name == "device":
            platform = DEVICES.get(value, "")
        elif fact.kind == "env" and value.casefold() not in ("", "none", "void"):
            platform = PLATFORM_VARIABLES.get(fact.name, "")
        elif fact.name == "container.runtime":
            platform = "cuda" if value == "nvidia" else ""
        elif fact.name == "container.image":
            platform = next((p for pattern, p in PLATFORM_IMAGES.items() if re.search(pattern, value)), "")
        elif fact.name == "container.devices":
            platform = "hip" if "/dev/kfd" in value else ""
        if platform:
            yield Known("platform", platform, fact.source)


def spelled(value: object) -> str:
    """A value as guards spell theirs: `true`, `none`, a number or a word as it is."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value)


def merged(*groups: Iterable[Known]) -> list[Known]:
    """Facts of several sources; for one guard the first counts."""
    chosen: dict[str, Known] = {}
    for group in groups:
        for known in group:
            chosen.setdefault(known.guard.casefold(), known)
    return list(chosen.values())


def why_unused(known: Known, guards: Mapping[str, list[str]]) -> str:
    """Why a fact fixed nothing: no guard of that name, with the nearest, or none of its values.

    Args:
        known: the fact.
        guards: the values of every guard that the tables name.
    """
    short = {_last(guard): values for guard, values in guards.items()}
    names = {name.casefold(): values for name, values in (short | dict(guards)).items() if name}
    wanted = known.guard.casefold()
    if wanted in names:
        return f"its values are {', '.join(names[wanted])}"
    near = difflib.get_close_matches(wanted, names, n=1, cutoff=0.6)
    return "no world depends on a guard of that name" + (f"; did you mean {near[0]!r}?" if near else "")


def _last(guard: str) -> str:
    """The identifier by which people know a guard; empty where it ends in something else."""
    last = guard.rpartition(".")[2].removesuffix("()")
    return last if last.isidentifier() else ""
