"""`sleuth export CASE --format F`: a case in another form."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..exitcodes import ExitCode
from ..export import export
from ..store import find_case
from .common import add_case, add_home, home


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    add_case(parser)
    parser.add_argument("--format", default="md", metavar="F", help="md (default), json or jsonl")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write here instead of stdout")
    add_home(parser)


def main(options: argparse.Namespace) -> int:
    """Write the export to stdout, or whole to a file."""
    content = export(find_case(home(options), options.case), options.format)
    if options.output:
        options.output.write_bytes(content)
    else:
        sys.stdout.buffer.write(content)
    return ExitCode.CLEAN
