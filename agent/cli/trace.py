"""`sleuth trace FACTOR`: how often a factor is applied to the routed output, in which configuration, and where.

What is imported here must load quickly: an answer that is kept is shown within half a second.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...sandbox.errors import UsageError
from ...sandbox.wheel import fetch_source
from ...tools.exactly_once_cache import TraceCache
from ...tools.exactly_once_text import render
from ..exitcodes import ExitCode
from ..plain import visible
from .common import overrides, seconds

PYPI = "pypi:"
SECONDS = 45.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("factor", metavar="FACTOR", help="the name it goes by in the source")
    parser.add_argument("-d", "--deployment", type=Path, metavar="FILE", help="a sleuth.yaml (default: ./sleuth.yaml)")
    parser.add_argument("--tree", metavar="DIR", help="source to follow; no sleuth.yaml is needed then")
    parser.add_argument(
        "--stock", metavar="DIR|pypi:NAME==VERSION", help="stock source, where the tree is patched stock"
    )
    parser.add_argument("--patch", action="append", default=[], metavar="FILE", help="lay this patch over the source")
    parser.add_argument(
        "--entry", default="", metavar="WHERE", help="path.py, path.py::Class, Class, Class.method (default: found)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="GUARD=VALUE", help="something known, such as platform=cuda"
    )
    parser.add_argument(
        "--sinks", type=Path, metavar="FILE", help="what more calls out of Python do (docs/exactly-once.md)"
    )
    text = f"how long to follow code (default: {SECONDS:g})"
    parser.add_argument("--seconds", type=seconds, default=SECONDS, metavar="S", help=text)
    parser.add_argument(
        "--suspects", action="store_true", help="only name places that use it unlike their siblings; takes seconds"
    )
    parser.add_argument("--no-cache", action="store_true", help="neither use nor keep an answer")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="json has every world")


def main(options: argparse.Namespace) -> int:
    """Trace and print; 0 whatever was counted, since a count isn't a verdict on a patch."""
    args = _args(options)
    cache = None if options.no_cache else TraceCache.open()
    if options.deployment is None and (options.tree or options.stock):
        data = _alone(options, args, cache)
    else:
        data = _described(options, args, cache)
    if options.format == "json":
        json.dump(data, sys.stdout, ensure_ascii=True)
        print()
    else:
        print(visible(render(data)))
    return ExitCode.CLEAN


def _args(options: argparse.Namespace) -> dict[str, Any]:
    if not options.factor.isidentifier():
        raise UsageError(f"{options.factor!r}: a factor is one name as the source spells it, such as mscale")
    return {
        "factor": options.factor,
        "entry": options.entry,
        "facts": _facts(options.set),
        "seconds": options.seconds,
        "tables": not options.suspects,
        "sinks": _sinks(options.sinks) if options.sinks else "",
    }


def _facts(items: list[str]) -> dict[str, str]:
    """`["guard=value", …]` as a dict; a guard's name may itself hold `==`."""
    found: dict[str, str] = {}
    for item in items:
        guard, _, value = item.rpartition("=")
        if not guard or guard[-1] in "=!<>" or not value.strip():
            raise UsageError(f"--set {item}: GUARD=VALUE expected, such as platform=cuda")
        if found.setdefault(guard, value) != value:
            raise UsageError(f"--set {guard}: given twice, as {found[guard]!r} and {value!r}")
    return found


def _sinks(path: Path) -> str:
    """The text of a sinks file, checked here, where its name can be told."""
    from ...tools.inside.exactly_once.sinks import load
    from ...tools.inside.fail import InsideError

    try:
        text = path.read_text("utf-8")
        load(text, str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--sinks {path}: {getattr(error, 'strerror', None) or error}") from error
    except InsideError as error:
        raise UsageError(f"--sinks {error}") from error
    return text


def _alone(options: argparse.Namespace, args: Mapping[str, Any], cache: TraceCache | None) -> dict[str, Any]:
    """The answer for a source by itself; a kept one is found without loading anything else."""
    if options.tree and options.stock:
        raise UsageError("--tree and --stock together need a sleuth.yaml (-d FILE)")
    option = "--tree" if options.tree else "--stock"
    source = options.tree or options.stock
    source = source if source.startswith(PYPI) else str(_there(option, source, Path.is_dir, "folder"))
    patches = [_there("--patch", path, Path.exists, "file") for path in options.patch]
    if cache:
        root = fetch_source(source.removeprefix(PYPI)) if source.startswith(PYPI) else Path(source)
        kept = cache.load(cache.key({"args": args}, [root, *patches]))
        if kept is not None:
            return kept
    from ..tracing import alone, trace_alone

    return trace_alone(alone(source, patches), args, cache)


def _there(option: str, text: str, test: Callable[[Path], bool], kind: str) -> Path:
    path = Path(text).expanduser().absolute()
    if not test(path):
        raise UsageError(f"{option} {text}: no such {kind}")
    return path


def _described(options: argparse.Namespace, args: Mapping[str, Any], cache: TraceCache | None) -> dict[str, Any]:
    """The answer for what a sleuth.yaml describes."""
    if options.patch:
        raise UsageError("--patch goes with --tree or --stock; a sleuth.yaml has its own `patches`")
    from ...sandbox.deployment import load_deployment
    from ..tracing import trace_described

    given = overrides(options)
    path = options.deployment or Path("sleuth.yaml")
    if not path.exists():
        raise UsageError(f"there is no {path}; name the source with --tree DIR, --stock or -d FILE")
    return trace_described(load_deployment(path, stock=given.get("stock"), tree=given.get("tree")), args, cache)
