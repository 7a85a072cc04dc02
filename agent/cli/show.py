"""`sleuth show CASE`: print a case, or one of its artefacts byte for byte."""

from __future__ import annotations

import argparse
import sys

from ..case import fold
from ..exitcodes import ExitCode
from ..log import read_log
from ..report import report
from ..store import find_case
from .common import add_case, add_home, home


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    add_case(parser)
    parser.add_argument(
        "--artefact", metavar="DIGEST", help="print this artefact instead (the start of its digest will do)"
    )
    add_home(parser)


def main(options: argparse.Namespace) -> int:
    """Print it."""
    folder = find_case(home(options), options.case)
    if options.artefact:
        sys.stdout.buffer.write(folder.read(folder.artefact(options.artefact).name))
    else:
        sys.stdout.write(report(fold(read_log(folder.events))))
    return ExitCode.CLEAN
