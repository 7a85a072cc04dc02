"""Dispatch one request to the script named on the command line."""

from __future__ import annotations

import codecs
import importlib
import json
import os
import sys

from .fail import InsideError
from .paths import to_shown


def main() -> None:
    """Read a JSON request from stdin, call `run(request)` of the named sibling, print its reply or error as JSON."""
    script = importlib.import_module(f".{sys.argv[1]}", __package__)
    request = json.loads(sys.stdin.buffer.read())
    try:
        answer = {"reply": script.run(request)}
    except InsideError as error:
        answer = {"error": str(error)}
    except Exception as error:  # noqa: BLE001 - whatever a hostile tree sets off, the user is told in one line
        answer = {"error": f"{sys.argv[1]} broke on this tree: {type(error).__name__}: {error}"}
    except OSError as error:
        answer = {"error": f"{sys.argv[1]}: {_name(error)}{error.strerror or error}"}
    except MemoryError:
        answer = {"error": f"{sys.argv[1]}: more memory needed than the sandbox's limit (sandbox.limits.memory_mb)"}
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "shown"))


def _name(error: OSError) -> str:
    return f"{to_shown(os.fsdecode(error.filename))}: " if isinstance(error.filename, str | bytes) else ""


def _shown(error: UnicodeError) -> tuple[str, int]:
    r"""Bytes of names and texts that aren't UTF-8, which Python holds as lone surrogates, are written as `\xNN`."""
    assert isinstance(error, UnicodeEncodeError)
    codes = (ord(c) for c in error.object[error.start : error.end])
    written = (rf"\\x{c - 0xDC00:02x}" if 0xDC80 <= c <= 0xDCFF else rf"\\u{c:04x}" for c in codes)
    return "".join(written), error.end


codecs.register_error("shown", _shown)
