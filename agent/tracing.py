"""Ask the tracer about a source that a command line or a sleuth.yaml names, and keep the answer."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..sandbox.deployment import PYPI, Deployment, load_deployment
from ..sandbox.errors import SleuthError, UsageError
from ..sandbox.wheel import fetch_source
from ..tools.base import Status
from ..tools.exactly_once_cache import TraceCache
from ..tools.exactly_once_facts import from_deployment
from ..tools.registry import get_tool
from .one_call import one_call

SPARE = 2.5
"""Time limit of the sandbox, as a multiple of what the tracer may take."""
MEMORY_MB = 4096


class TraceFailed(SleuthError):
    """There is no answer, and the question isn't at fault."""


def alone(source: str, patches: Sequence[Path]) -> Deployment:
    """A source by itself, with patches laid over it.

    Raises:
        ConfigError: it, or a patch, isn't there.
    """
    kind = "stock" if patches or source.startswith(PYPI) else "tree"
    described = {"version": 1, "name": "trace", kind: source, "patches": [str(path) for path in patches]}
    with tempfile.TemporaryDirectory(prefix="sleuth-") as scratch:
        place = Path(scratch) / "sleuth.yaml"
        place.write_text(json.dumps(described), "utf-8")
        return load_deployment(place)


def trace_alone(deployment: Deployment, args: Mapping[str, Any], cache: TraceCache | None) -> dict[str, Any]:
    """The answer for a source by itself; the caller has looked into the cache."""
    return _asked(deployment, args, cache, {"args": args})


def trace_described(deployment: Deployment, args: Mapping[str, Any], cache: TraceCache | None) -> dict[str, Any]:
    """The answer for what a sleuth.yaml describes, from the cache where it is there."""
    facts = [[fact.guard, fact.value, fact.source] for fact in from_deployment(deployment)]
    question = {"args": args, "facts": facts}
    kept = cache.load(cache.key(question, _sources(deployment))) if cache else None
    return _asked(deployment, args, cache, question) if kept is None else kept


def _asked(
    deployment: Deployment, args: Mapping[str, Any], cache: TraceCache | None, question: Mapping[str, Any]
) -> dict[str, Any]:
    """Have the tracer answer; what it said of a tree that changed meanwhile isn't kept.

    Raises:
        UsageError: the question names something that isn't there.
        TraceFailed: the tracer or its sandbox broke, or the time was up.
    """
    key = cache.key(question, _sources(deployment)) if cache else ""
    data = _call(_widened(deployment, args["seconds"]), args)
    # Had there been more time, the answer might have been another one.
    if cache and not data["timed_out"] and cache.key(question, _sources(deployment)) == key:
        cache.save(key, data)
    return data


def _sources(deployment: Deployment) -> list[Path]:
    """The tree, and the patches that are laid over it."""
    if deployment.tree is not None:
        return [deployment.tree]
    assert deployment.stock is not None  # Deployment refuses a description without either
    is_wheel = deployment.stock.startswith(PYPI)
    source = fetch_source(deployment.stock.removeprefix(PYPI)) if is_wheel else Path(deployment.stock)
    return [source, *(entry.path for entry in deployment.patches)]


def _widened(deployment: Deployment, seconds: float) -> Deployment:
    """The deployment with a sandbox that has room for a long trace."""
    limits = deployment.sandbox.limits
    wider = {"seconds": max(limits.seconds, seconds * SPARE), "memory_mb": max(limits.memory_mb, MEMORY_MB)}
    sandbox = deployment.sandbox.model_copy(update={"limits": limits.model_copy(update=wider)})
    return deployment.model_copy(update={"sandbox": sandbox})


def _call(deployment: Deployment, args: Mapping[str, Any]) -> dict[str, Any]:
    with one_call(deployment, get_tool("exactly_once"), dict(args)) as (result, folder):
        if result.status in (Status.OK, Status.NO_DATA):
            data: dict[str, Any] = json.loads(folder.read(result.data))
            return data
        # What the script says about the question starts with the question's own words.
        broke = result.status is not Status.ERROR or result.text.startswith(("trace_factor", "exactly_once broke"))
        raise TraceFailed(result.text) if broke else UsageError(result.text)
