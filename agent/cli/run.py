"""`sleuth run PLAYBOOK -d sleuth.yaml`: open a case and work it to its end."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ...playbooks import loader
from ...sandbox.errors import UsageError
from ...sandbox.yamlfile import did_you_mean
from ...tools.registry import TOOLS
from ..approval import Deny
from ..case import fold
from ..exitcodes import ExitCode
from ..log import read_log
from ..narrate import Narrator
from ..report import report
from ..session import Options, start
from ..store import CaseFolder
from .common import add_deployment, add_home, add_limits, home, overrides, pairs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("playbook", metavar="PLAYBOOK", help="a playbook's name, or a YAML file")
    add_deployment(parser)
    parser.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="set a parameter")
    parser.add_argument("--playbooks", type=Path, metavar="DIR", help="look for playbooks here first")
    add_home(parser)
    add_limits(parser)


def main(options: argparse.Namespace) -> int:
    """Run the playbook; the case goes to stdout, progress to stderr."""
    playbook = loader.find(options.playbook, options.playbooks)
    folder = start(
        home(options), options.deployment, playbook, pairs(options.param), overrides(options), run_options(options)
    )
    return finish(folder)


def run_options(options: argparse.Namespace) -> Options:
    """How to run, from the command line.

    Raises:
        UsageError: `--deny` names a tool that doesn't exist, so nothing would be denied.
    """
    for name in options.deny:
        if name not in TOOLS:
            raise UsageError(f"--deny {name}: no such tool{did_you_mean(name, TOOLS)}")
    return Options(
        listen=None if options.quiet else Narrator(),
        approver=Deny(options.deny),
        max_calls=options.max_calls,
        max_seconds=options.max_seconds,
    )


def finish(folder: CaseFolder) -> int:
    """Print the case and give its exit code."""
    case = fold(read_log(folder.events))
    sys.stdout.write(report(case))
    return case.closed.exit_code if case.closed else ExitCode.INTERRUPTED
