"""`sleuth resume CASE`: go on where an interrupted or killed run left off."""

from __future__ import annotations

import argparse

from ..session import resume
from ..store import find_case
from .common import add_case, add_home, add_limits, home
from .run import finish, run_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    add_case(parser)
    add_home(parser)
    add_limits(parser)


def main(options: argparse.Namespace) -> int:
    """Finish the case; no call that has a recorded result is made again."""
    return finish(resume(find_case(home(options), options.case), run_options(options)))
