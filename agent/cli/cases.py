"""`sleuth cases`: every case, newest last, with how it ended."""

from __future__ import annotations

import argparse
import sys

from ..case import fold
from ..exitcodes import ExitCode
from ..log import read_log
from ..plain import visible
from ..store import CaseError, CaseFolder, cases
from .common import add_home, home


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    add_home(parser)


def main(options: argparse.Namespace) -> int:
    """One case a line: id, deployment, how it ended."""
    found = cases(home(options))
    for folder in found:
        print(visible(_line(folder)))
    if not found:
        print(f"no cases in {home(options)}", file=sys.stderr)
    return ExitCode.CLEAN


def _line(folder: CaseFolder) -> str:
    try:
        case = fold(read_log(folder.events))
    except CaseError as error:
        return f"{folder.id}  unreadable: {error}"
    deployment = case.opened.deployment if case.opened else "?"
    ended = f"exit {case.closed.exit_code}  {case.closed.summary}" if case.closed else "open, can be resumed"
    return f"{folder.id}  {deployment}  {ended}"
