"""Read lines of a file in the clone."""

from __future__ import annotations

from pydantic import Field

from .base import Outcome, Status, Tool, ToolArgs, ToolContext, ToolData
from .inside.paths import from_shown, to_shown
from .inside_call import call_inside


class ReadArgs(ToolArgs):
    """Which lines."""

    path: str = Field(min_length=1, description="File, relative to the clone's root.")
    start: int = Field(default=1, ge=1, description="First line, from 1.")
    lines: int = Field(default=200, ge=1, le=2000, description="How many lines.")


class ReadData(ToolData):
    """What stands there."""

    file: str
    start: int
    """First line shown, from 1."""
    end: int
    """Last line shown."""
    total_lines: int
    size: int
    """Bytes in the whole file."""
    sha256: str
    """Of the whole file."""
    lines: list[str]


class ReadFile(Tool[ReadArgs, ReadData]):
    """Read some lines of a text file in the clone, with their numbers."""

    name = "read_file"
    Args = ReadArgs
    Data = ReadData

    def run(self, args: ReadArgs, context: ToolContext) -> Outcome[ReadData]:
        """See `Tool.run`. An empty file is `no_data`."""
        reply = call_inside(context.sandbox, "read", args.model_dump())
        found = reply.value
        end = args.start + len(found["lines"]) - 1
        data = ReadData(file=to_shown(from_shown(args.path)), start=args.start, end=end, **found)
        body = "\n".join(f"{n:6}  {line}" for n, line in enumerate(data.lines, args.start))
        left = data.total_lines - len(data.lines)
        return Outcome(
            status=Status.OK if data.lines else Status.NO_DATA,
            data=data,
            text=f"{args.path}, lines {args.start}-{end} of {data.total_lines}\n{body}"
            if body
            else f"{args.path}: empty",
            commands=[reply.command],
            truncated=f"{left:,} of {data.total_lines:,} lines not shown; ask for them with start and lines"
            if left
            else "",
        )
