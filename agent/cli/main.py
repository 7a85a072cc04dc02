"""The command line: parse, dispatch, and turn every way of failing into one message and one exit code."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from ..exitcodes import ExitCode

COMMANDS = {
    "run": "work through a playbook on a deployment",
    "resume": "go on with an interrupted case",
    "show": "print a case, or one of its artefacts",
    "cases": "list the cases",
    "export": "write a case as md, json or jsonl",
    "playbooks": "list, show or check playbooks",
    "tool": "call one tool by hand",
    "trace": "count how often a factor is applied, in which configuration",
}
"""Each is a module of this folder with `add_arguments(parser)` and `main(options) -> int`."""

EPILOG = """\
exit status: 0 nothing found, 1 a suspect is guilty, 2 usage or config, 3 inconclusive, 4 tool or sandbox failure,
5 budget spent, 70 internal error, 130 interrupted. Results go to stdout, progress and errors to stderr."""


def parser(command: str | None = None) -> argparse.ArgumentParser:
    """The argument parser; only the module of `command` is imported."""
    top = argparse.ArgumentParser(
        prog="sleuth",
        description="Find the patch that broke an LLM serving deployment, and clear the rest.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="store_true", help="print the version and exit")
    subparsers = top.add_subparsers(dest="command", metavar="COMMAND")
    for name, about in COMMANDS.items():
        sub = subparsers.add_parser(name, help=about, description=about, allow_abbrev=False)
        if name == command:
            import_module(f".{name}", __package__).add_arguments(sub)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line.

    Returns:
        An `ExitCode` as an int. Errors are one message on stderr; $SLEUTH_DEBUG adds the traceback.
    """
    try:
        code = _dispatch(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _say("interrupted", ExitCode.INTERRUPTED)
    except BrokenPipeError:
        return _reader_gone()
    except OSError as error:
        return _say(f"{error.filename or 'the system'}: {error.strerror or error}", ExitCode.FAILED)
    except Exception as error:  # noqa: BLE001 - an uncaught one would exit 1, which CI reads as `guilty`
        return _explain(error)


def _dispatch(words: list[str]) -> int:
    command = next((word for word in words if not word.startswith("-")), None)
    try:
        options = parser(command).parse_args(words)
    except SystemExit as ended:
        return int(ended.code or 0)
    if options.version:
        return _version()
    if options.command is None:
        parser().print_help(sys.stderr)
        return ExitCode.USAGE
    code: int = import_module(f".{options.command}", __package__).main(options)
    return code


def _version() -> int:
    from ..session import own_version

    print(f"sleuth {own_version()}")
    return ExitCode.CLEAN


def _explain(error: Exception) -> ExitCode:
    from ...sandbox.errors import SleuthError, UsageError

    if isinstance(error, UsageError):
        return _say(str(error), ExitCode.USAGE)
    if isinstance(error, SleuthError):
        return _say(str(error), ExitCode.FAILED)
    return _say(f"internal error: {error!r}; please report it (SLEUTH_DEBUG=1 shows where)", ExitCode.INTERNAL)


def _reader_gone() -> ExitCode:
    """Whoever read the output has gone; Python would complain about what is left in the buffer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.FAILED


def _say(text: str, code: ExitCode) -> ExitCode:
    if os.environ.get("SLEUTH_DEBUG"):
        import traceback

        traceback.print_exc()
    with contextlib.suppress(OSError, ValueError):  # a log that is full mustn't turn into exit status 1
        print(f"sleuth: {text}", file=sys.stderr, flush=True)
    return code


def _reopen_closed() -> None:
    """Give a process that was started with closed standard streams ones that lead nowhere.

    Otherwise the next file that is opened becomes its standard output.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            assert os.open(os.devnull, os.O_RDWR) == number
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115, PTH123 - for good


def run() -> None:
    """Entry point of the console script; a termination signal counts as an interruption."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    _reopen_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(int(main()))
