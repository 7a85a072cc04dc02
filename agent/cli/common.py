"""Arguments and small things that several commands share."""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path

from ...sandbox.errors import UsageError


def add_home(parser: argparse.ArgumentParser) -> None:
    """`--home`: where cases are kept."""
    text = "folder that cases are kept in (default: $SLEUTH_HOME, else ./.sleuth)"
    parser.add_argument("--home", type=Path, metavar="DIR", help=text)


def home(options: argparse.Namespace) -> Path:
    """The folder that cases are kept in."""
    chosen: Path = options.home or Path(os.environ.get("SLEUTH_HOME") or ".sleuth")
    return chosen.absolute()


def add_case(parser: argparse.ArgumentParser) -> None:
    """`CASE`: which case."""
    parser.add_argument("case", metavar="CASE", help="a case's id, the start of one, or `last`")


def add_deployment(parser: argparse.ArgumentParser) -> None:
    """`-d`, `--stock`, `--tree`: what is investigated."""
    parser.add_argument(
        "-d", "--deployment", type=Path, default=Path("sleuth.yaml"), metavar="FILE", help="default: ./sleuth.yaml"
    )
    parser.add_argument("--stock", metavar="DIR|pypi:NAME==VERSION", help="use this stock source instead")
    parser.add_argument("--tree", metavar="DIR", help="use this deployed source instead")


def overrides(options: argparse.Namespace) -> dict[str, str]:
    """What the command line says instead of sleuth.yaml, as paths that hold in every folder."""
    given = {"stock": options.stock, "tree": options.tree}
    return {k: v if v.startswith("pypi:") else str(Path(v).absolute()) for k, v in given.items() if v}


def add_limits(parser: argparse.ArgumentParser) -> None:
    """`--max-calls`, `--max-seconds`, `--deny`, `-q`: how far a run may go, and how much it says."""
    parser.add_argument(
        "--max-calls", type=_count, metavar="N", help="ask nothing more after N tool calls in the whole case (exit 5)"
    )
    parser.add_argument("--max-seconds", type=seconds, metavar="S", help="ask nothing more after S seconds (exit 5)")
    parser.add_argument("--deny", action="append", default=[], metavar="TOOL", help="refuse calls of this tool")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: a whole number from 1 is needed")
    return int(text)


def seconds(text: str) -> float:
    """A number of seconds from the command line."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}: a number of seconds above 0 is needed")
    return number


def pairs(items: list[str]) -> dict[str, str]:
    """`["k=v", …]` as a dict.

    Raises:
        UsageError: an item without `=`, or a name that is given twice.
    """
    found: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals:
            raise UsageError(f"--param {item}: NAME=VALUE expected")
        if name in found:
            raise UsageError(f"--param {name}: given twice, as {found[name]!r} and {value!r}")
        found[name] = value
    return found
