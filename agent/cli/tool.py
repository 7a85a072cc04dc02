"""`sleuth tool NAME ARGS`: make one call by hand, as a case would, and print what it found."""

from __future__ import annotations

import argparse
import json
import sys

from ...sandbox.deployment import load_deployment
from ...sandbox.errors import UsageError
from ...tools.base import Status, ToolError
from ...tools.call import ToolResult, check_args
from ...tools.describe import describe
from ...tools.registry import UnknownTool, get_tool
from ..exitcodes import ExitCode
from ..one_call import one_call, whole_text
from ..plain import visible
from ..store import CaseFolder
from .common import add_deployment, overrides


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("name", metavar="NAME", help="the tool")
    parser.add_argument("args", nargs="?", default="{}", metavar="ARGS", help="its arguments as a JSON object")
    parser.add_argument("--describe", action="store_true", help="say what it takes and what it finds")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    add_deployment(parser)


def main(options: argparse.Namespace) -> int:
    """Make the call; nothing is recorded."""
    try:
        tool, args = get_tool(options.name), json.loads(options.args)
    except UnknownTool as error:
        raise UsageError(str(error)) from error
    except ValueError as error:
        raise UsageError(f'ARGS must be a JSON object, such as \'{{"pattern": "x"}}\': {error}') from error
    if options.describe:
        print(describe(tool))
        return ExitCode.CLEAN
    if not isinstance(args, dict):
        raise UsageError(f"ARGS must be a JSON object, not a {type(args).__name__}")
    try:
        check_args(tool, args)
    except ToolError as error:
        raise UsageError(f"{error}; `sleuth tool {tool.name} --describe` lists them") from error
    given = overrides(options)
    deployment = load_deployment(options.deployment, stock=given.get("stock"), tree=given.get("tree"))
    with one_call(deployment, tool, args) as (result, folder):
        return _print(result, folder, options.json)


def _print(result: ToolResult, folder: CaseFolder, as_json: bool) -> int:
    failed = result.status not in (Status.OK, Status.NO_DATA)
    if as_json and result.data:
        sys.stdout.write(folder.read(result.data).decode() + "\n")
    else:
        text = whole_text(result, folder)
        print(visible(text), file=sys.stderr if failed else sys.stdout)
    if result.truncated:
        print(f"shortened: {result.truncated}", file=sys.stderr)
    return ExitCode.FAILED if failed else ExitCode.CLEAN
