"""`sleuth trace FACTOR`: how often a factor is applied to the routed output, in which configuration, and where."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from ...sandbox.deployment import Deployment, load_deployment
from ...sandbox.errors import UsageError
from ...tools.base import Status
from ...tools.registry import get_tool
from ..exitcodes import ExitCode
from ..one_call import one_call, whole_text
from ..plain import visible
from .common import overrides, pairs, seconds

SPARE = 1.4
"""Time limit of the sandbox, as a multiple of what the tracer may take."""
MEMORY_MB = 4096


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
    parser.add_argument(
        "--seconds", type=seconds, default=45.0, metavar="S", help="how long to follow code (default: 45)"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="json has every world")


def main(options: argparse.Namespace) -> int:
    """Trace and print; 0 whatever was counted, since a count isn't a verdict on a patch."""
    args = {
        "factor": options.factor,
        "entry": options.entry,
        "facts": pairs(options.set, "--set"),
        "seconds": options.seconds,
        "sinks": _text(options.sinks) if options.sinks else "",
    }
    with tempfile.TemporaryDirectory(prefix="sleuth-") as scratch:
        deployment = _deployment(options, Path(scratch))
        with one_call(deployment, get_tool("exactly_once"), args) as (result, folder):
            failed = result.status not in (Status.OK, Status.NO_DATA)
            if options.format == "json" and result.data:
                sys.stdout.write(folder.read(result.data).decode() + "\n")
            else:
                print(visible(whole_text(result, folder)), file=sys.stderr if failed else sys.stdout)
            if result.truncated:
                print(f"shortened: {result.truncated}", file=sys.stderr)
            return ExitCode.FAILED if failed else ExitCode.CLEAN


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--sinks {path}: {getattr(error, 'strerror', None) or error}") from error


def _deployment(options: argparse.Namespace, scratch: Path) -> Deployment:
    """What a sleuth.yaml describes; or a source by itself, with the patches of the command line over it."""
    if options.deployment is None and (options.tree or options.stock):
        if options.tree and options.stock:
            raise UsageError("--tree and --stock together need a sleuth.yaml (-d FILE)")
        deployment = load_deployment(_described(options.tree or options.stock, options.patch, scratch))
    else:
        if options.patch:
            raise UsageError("--patch goes with --tree or --stock; a sleuth.yaml has its own `patches`")
        given = overrides(options)
        path = options.deployment or Path("sleuth.yaml")
        deployment = load_deployment(path, stock=given.get("stock"), tree=given.get("tree"))
    limits = deployment.sandbox.limits
    wider = {
        "seconds": max(limits.seconds, options.seconds * SPARE),
        "memory_mb": max(limits.memory_mb, MEMORY_MB),
    }
    sandbox = deployment.sandbox.model_copy(update={"limits": limits.model_copy(update=wider)})
    return deployment.model_copy(update={"sandbox": sandbox})


def _described(source: str, patches: list[str], scratch: Path) -> Path:
    """A description of a source and the patches to lay over it."""
    place = source if source.startswith("pypi:") else str(Path(source).expanduser().absolute())
    alone = "stock" if patches or place.startswith("pypi:") else "tree"
    found = {"version": 1, "name": "trace", alone: place, "patches": [str(Path(p).absolute()) for p in patches]}
    described = scratch / "sleuth.yaml"
    described.write_text(json.dumps(found), "utf-8")
    return described
