"""`sleuth playbooks list|show|check`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ...playbooks import loader
from ...sandbox.errors import ConfigError, UsageError
from ..exitcodes import ExitCode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("action", choices=["list", "show", "check"])
    parser.add_argument("names", nargs="*", metavar="NAME|FILE", help="which; `check` takes all when none is named")
    parser.add_argument("--playbooks", type=Path, metavar="DIR", help="look for playbooks here first")


def main(options: argparse.Namespace) -> int:
    """List, print or check playbooks."""
    if options.action == "list":
        return _list(options.playbooks)
    if options.action == "show":
        return _show(options)
    return _check(options)


def _list(folder: Path | None) -> int:
    good, bad = loader.read_all(folder)
    for loaded in good:
        print(f"{loaded.playbook.name:<20} {loaded.playbook.title}")
    for error in bad:
        print(f"sleuth: {error}", file=sys.stderr)
    return ExitCode.USAGE if bad else ExitCode.CLEAN


def _show(options: argparse.Namespace) -> int:
    if len(options.names) != 1:
        raise UsageError("playbooks show: name one playbook")
    path = loader.find(options.names[0], options.playbooks)
    loader.read(path)
    sys.stdout.write(path.read_text(encoding="utf-8"))
    return ExitCode.CLEAN


def _check(options: argparse.Namespace) -> int:
    paths = [loader.find(name, options.playbooks) for name in options.names] or loader.available(options.playbooks)
    problems = 0
    for path in paths:
        try:
            loaded = loader.read(path)
            print(f"{path}: ok, {len(loaded.playbook.steps)} steps")
        except ConfigError as error:
            problems += 1
            print(error, file=sys.stderr)
    return ExitCode.USAGE if problems else ExitCode.CLEAN
