"""The one place that calls a tool: validate, time, redact, keep the full output, clip, turn exceptions into results."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ..sandbox.errors import SandboxError, SleuthError
from ..sandbox.yamlfile import did_you_mean
from .base import Outcome, Status, Tool, ToolArgs, ToolContext, ToolData, ToolError, ToolTimeout
from .inside.paths import escape
from .redact import redact, redact_file, redact_value

TEXT_LIMIT = 6000
"""Characters of a result's text kept in the event; the whole text is an artefact."""


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\udc80-\udcff]")


class Artefact(BaseModel):
    """One kept file: SHA-256 of its content, size in bytes, what it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    digest: str
    size: int


class ToolResult(BaseModel):
    """What one call found, as recorded.

    Attributes:
        status: ok, no_data, error, timeout or denied.
        text: for a reader, head and tail when it is long.
        commands: every command that ran in the sandbox, word by word.
        artefacts: the unabridged text, data and raw output.
        data: digest of the artefact with the findings as JSON; empty when there are none.
        seconds: wall time.
        truncated: what was left out, and where it is; empty when nothing was.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    status: Status
    text: str
    commands: list[list[str]] = []
    artefacts: list[Artefact] = []
    data: str = ""
    seconds: float = 0.0
    truncated: str = ""


Keep = Callable[[str, Path], Artefact]
"""Puts a finished file into the case's artefacts under a descriptive name, and says where it went."""


@dataclass(frozen=True)
class Caller:
    """Calls tools for one case."""

    context: ToolContext
    keep: Keep
    scratch: Path
    """An existing folder for files that live as long as one call."""

    def call(self, tool: Tool[Any, Any], raw: dict[str, Any]) -> ToolResult:
        """Make one call.

        Returns:
            The result, also when the arguments are wrong or the tool fails: status `error` or `timeout`, and why.

        Raises:
            SandboxError: the sandbox itself failed, which is no result of the call.
        """
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="call-", dir=self.scratch) as scratch:
            sandbox = self.context.sandbox.scoped(Path(scratch))
            outcome = self._run(tool, raw, ToolContext(sandbox, self.context.deployment))
            seconds = round(time.monotonic() - start, 4)
            if isinstance(outcome, ToolResult):
                return outcome.model_copy(update={"seconds": seconds})
            return self._record(outcome, Path(scratch), seconds)

    def _run(self, tool: Tool[Any, Any], raw: dict[str, Any], context: ToolContext) -> Outcome[Any] | ToolResult:
        try:
            return tool.run(check_args(tool, raw), context)
        except ToolTimeout as error:
            return ToolResult(status=Status.TIMEOUT, text=_shown(str(error)))
        except SandboxError:
            raise
        except (ToolError, SleuthError) as error:
            return ToolResult(status=Status.ERROR, text=_shown(str(error)))
        except Exception as error:  # noqa: BLE001 - a tool that breaks is a result, not the end of the case
            where = _origin(error)
            return ToolResult(status=Status.ERROR, text=_shown(f"{tool.name} broke at {where}: {error!r}"))

    def _record(self, outcome: Outcome[ToolData], scratch: Path, seconds: float) -> ToolResult:
        data = json.dumps(redact_value(outcome.data.model_dump(mode="json")), sort_keys=True)
        kept = [self._keep_text("data.json", data, scratch)]
        text = printable(redact(outcome.text))
        shown = clip(text, TEXT_LIMIT)
        if shown != text:
            kept.append(self._keep_text("text.txt", text, scratch))
        for number, path in enumerate(outcome.raw):
            clean = scratch / f"redacted-{number}"
            redact_file(path, clean)
            kept.append(self.keep(f"raw-{number}", clean))
        return ToolResult(
            status=outcome.status,
            text=shown,
            commands=[redact_value(list(c)) for c in outcome.commands],
            artefacts=kept,
            data=kept[0].digest,
            seconds=seconds,
            truncated="; ".join(filter(None, (outcome.truncated, _shortened(text, shown, kept)))),
        )

    def _keep_text(self, name: str, text: str, scratch: Path) -> Artefact:
        path = scratch / name
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return self.keep(name, path)


def _shortened(text: str, shown: str, kept: list[Artefact]) -> str:
    return "" if shown == text else f"text shortened; whole in {kept[1].digest[:12]}"


def _shown(text: str) -> str:
    return clip(printable(redact(text)), TEXT_LIMIT)


def printable(text: str) -> str:
    r"""`text` without what disturbs a terminal or hides: control characters but tab and line end become `\xNN`."""
    return _CONTROL.sub(escape, text)


def check_args(tool: Tool[Any, Any], raw: dict[str, Any]) -> ToolArgs:
    """Validate a call's arguments.

    Raises:
        ToolError: every problem, each naming the argument, the value and what would have worked.
    """
    try:
        return tool.Args.model_validate(_whole(raw))
    except ValidationError as error:
        said = []
        for item in error.errors(include_url=False):
            name = ".".join(map(str, item["loc"]))
            if item["type"] == "extra_forbidden":
                said.append(f"{name}: unknown argument{did_you_mean(name, tool.Args.model_fields)}")
            elif item["type"] == "missing":
                said.append(f"{name}: this argument is required")
            else:
                said.append(f"{name}: {item['msg']} (got {item['input']!r:.200})")
        raise ToolError(f"{tool.name}: " + "; ".join(said)) from error


def _whole(value: Any) -> Any:
    r"""Half characters, which JSON can hold and UTF-8 can't: bytes of a name become `\xNN`, others are refused."""
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    if not isinstance(value, str):
        return value
    text = re.sub("[\udc80-\udcff]", escape, value)
    if found := re.search("[\ud800-\udfff]", text):
        raise ToolError(f"{value!a:.200} holds half a character, {found[0]!a}")
    return text


def clip(text: str, limit: int) -> str:
    """`text`, or its first two thirds and last third of `limit` characters with the gap stated."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n… {len(text) - head - tail:,} characters left out …\n{text[-tail:]}"


def _origin(error: BaseException) -> str:
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "an unknown place"
