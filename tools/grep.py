"""Search the clone with ripgrep, and never let an empty answer stand without a control."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from ..sandbox.base import Command, Completed
from .base import Outcome, Status, Tool, ToolArgs, ToolContext, ToolData, ToolError, ToolTimeout
from .inside.paths import from_shown
from .inside_call import call_inside
from .rg_output import Counts, Matches, read_counts

MAX_LEAD_FILES = 2000
MANY = 100_000
"""Matching lines of one file from which a search is made in path order."""


def _one_line(pattern: str) -> str:
    if "\n" in pattern:
        raise ValueError("a pattern matches within one line, so it can't hold a line end; search for one of its lines")
    if "\0" in pattern:
        raise ValueError(r"write \x00 for a NUL")
    return pattern


OneLine = Annotated[str, AfterValidator(_one_line)]


class GrepArgs(ToolArgs):
    """What to look for, and where."""

    pattern: OneLine = Field(
        min_length=1, description="Regular expression (Rust syntax), or plain text with fixed=true."
    )
    paths: list[str] = Field(default=[], description="Files or folders, relative to the clone's root; empty = all.")
    globs: list[str] = Field(default=[], description="Only files that match, e.g. '*.py'; '!x' leaves x out.")
    fixed: bool = Field(default=False, description="Take the pattern as plain text.")
    word: bool = Field(default=False, description="Only whole words.")
    ignore_case: bool = Field(default=False, description="Letters match in either case.")
    max_hits: int = Field(default=200, ge=1, le=5000, description="Hits listed; all are counted and kept.")


class Hit(ToolData):
    """One matching line."""

    file: str
    line: int
    """From 1."""
    text: str


class FileCount(ToolData):
    """Matching lines in one file."""

    file: str
    count: int


class Hop(ToolData):
    """One step from the searched file towards a file with hits."""

    file: str
    line: int
    text: str
    via: str
    """imports, inherits, constructs, calls or refers."""
    name: str


class Lead(ToolData):
    """A file with hits that the searched file leads to."""

    file: str
    count: int
    distance: int
    path: list[Hop]


class Control(ToolData):
    """What the same instrument found elsewhere; only a control that found something makes an empty result count."""

    lines_read: int
    """Lines that the search did read where it found nothing."""
    total: int
    """Matching lines of the same pattern in the whole clone."""
    files: list[FileCount]
    """Where they are, most hits first."""
    leads: list[Lead]
    """Those that the searched files import, inherit from or construct, nearest first."""


class GrepData(ToolData):
    """What the search found."""

    hits: list[Hit]
    total: int
    """Matching lines, all of them."""
    files: list[FileCount]
    """Files with hits, most hits first."""
    control: Control | None
    """Made when nothing was found in a part of the clone."""
    problems: list[str]
    """What could not be searched."""

    def control_found(self) -> bool | None:
        """See `ToolData.control_found`: the same pattern hits elsewhere in the clone."""
        return self.control.total > 0 if self.control else None


class Grep(Tool[GrepArgs, GrepData]):
    """Search files of the clone for a pattern. When nothing is found in the named paths, the same pattern is run over
    the whole clone as a control, and the files with hits that the searched file imports or inherits from are named.
    """

    name = "grep"
    Args = GrepArgs
    Data = GrepData

    def run(self, args: GrepArgs, context: ToolContext) -> Outcome[GrepData]:
        """See `Tool.run`."""
        search = _Search(args, context)
        search.check_paths()
        done, found = search.matches()
        counts = search.count(search.paths) if done.clipped else Counts(found.counts, found.total)
        hits = found.hits(args.max_hits)
        data = GrepData(
            hits=[Hit(file=h.file, line=h.line, text=h.text) for h in hits],
            total=counts.total,
            files=_ranked(counts),
            control=search.control() if counts.total == 0 else None,
            problems=search.problems,
        )
        whole = counts.total > len(hits)
        return Outcome(
            status=Status.OK if data.total else Status.NO_DATA,
            data=data,
            text=_text(args, data),
            commands=search.commands,
            raw=[found.write(done.stdout.with_name("hits.txt"))] if whole else [],
            truncated=_truncated(data, done),
        )


class _Search:
    """The rg calls of one grep."""

    def __init__(self, args: GrepArgs, context: ToolContext) -> None:
        self.args, self.sandbox = args, context.sandbox
        self.commands: list[tuple[str, ...]] = []
        self.problems: list[str] = []
        self.files: list[str] = []
        self.paths: list[str] = []

    def rg(self, *mode: str, paths: list[str], pattern: str | None = None) -> Completed:
        """Run rg; ignored, hidden and binary files count too, since what is deployed is what lies there."""
        flags = ["--no-config", "--text", "--no-ignore", "--hidden", "--no-require-git", "--glob=!.git"]
        flags += [f"--glob={glob}" for glob in self.args.globs]
        if pattern is None:
            pattern = self.args.pattern
            switches = {"-F": self.args.fixed, "-w": self.args.word, "-i": self.args.ignore_case}
            flags += [flag for flag, on in switches.items() if on]
        argv = (self.sandbox.rg, *mode, *flags, "-e", pattern, "--", *(map(_relative, paths) if paths else ["./"]))
        self.commands.append(("rg", *argv[1:]))
        done = self.sandbox.exec(Command(argv, bare=True))
        if done.timed_out:
            raise ToolTimeout(f"grep {self.args.pattern!r}: {done.describe()}; name fewer paths")
        return done

    def check_paths(self) -> None:
        """Refuse names that aren't in the clone, or that lead out of it, before rg follows them."""
        if self.args.paths:
            seen = call_inside(self.sandbox, "look", {"paths": self.args.paths}).value
            self.files, self.paths = seen["files"], seen["names"]
            if seen["problems"]:
                raise ToolError("grep: " + "; ".join(seen["problems"]))

    def matches(self) -> tuple[Completed, Matches]:
        """The search itself. One that overflows is made again in path order, so that the same part is kept.

        Searching in parallel, rg holds all it has to say about a file in memory; in path order it writes as it goes.
        """
        done = self.rg("--json", f"--max-count={MANY}", paths=self.paths)
        found = Matches(done.stdout)
        if done.clipped or done.signal or MANY in found.counts.values():
            done = self.rg("--json", "--sort=path", paths=self.paths)
            found = Matches(done.stdout)
        if done.exit_code not in (0, 1) and not done.clipped:
            self._explain(done, found)
        return done, found

    def _explain(self, done: Completed, found: Matches) -> None:
        """Tell a search that could not be made from one that had to leave out some files."""
        said = done.error_text()
        if "regex" in said.partition("\n")[0]:
            said = " ".join(said.removeprefix("rg: ").split())
            raise ToolError(f"grep: bad pattern {self.args.pattern!r}: {said}; fixed=true takes it as plain text")
        if not found.finished:
            raise ToolError(f"grep: rg {done.describe()}: {said}")
        self.problems += said.splitlines()[:50]

    def count(self, paths: list[str], pattern: str | None = None) -> Counts:
        """Matching lines per file, without their text."""
        return read_counts(self.rg("--count", "--null", "--with-filename", paths=paths, pattern=pattern).stdout)

    def control(self) -> Control:
        """Show that the instrument works: it did read lines here, and the same pattern hits elsewhere."""
        lines = self.count(self.paths, pattern="^").total
        elsewhere = self.count([]) if self.paths else Counts({}, 0)
        return Control(lines_read=lines, total=elsewhere.total, files=_ranked(elsewhere), leads=self._leads(elsewhere))

    def _leads(self, elsewhere: Counts) -> list[Lead]:
        if not elsewhere.total or len(self.paths) > 5:
            return []
        hits = [f.model_dump() for f in _ranked(elsewhere)[:MAX_LEAD_FILES]]
        leads: list[Lead] = []
        for file in self.files:
            reply = call_inside(self.sandbox, "leads", {"file": file, "hits": hits})
            self.commands.append((*reply.command[:-1], f"(the {len(hits)} files above)"))
            leads += [Lead.model_validate(lead) for lead in reply.value["leads"]]
        return sorted(leads, key=lambda lead: lead.distance)


def _relative(path: str) -> str:
    return "./" if path == "." else f"./{from_shown(path)}"


def _ranked(counts: Counts) -> list[FileCount]:
    ordered = sorted(counts.files.items(), key=lambda item: (-item[1], item[0]))
    return [FileCount(file=file, count=count) for file, count in ordered]


def _truncated(data: GrepData, done: Completed) -> str:
    parts = []
    if data.total > len(data.hits):
        parts.append(f"{len(data.hits):,} of {data.total:,} hits are listed")
    if done.clipped:
        parts.append(f"rg's own output was stopped at {done.stdout.stat().st_size:,} bytes (the counts are complete)")
    return "; ".join(parts)


def _text(args: GrepArgs, data: GrepData) -> str:
    if not data.total:
        return _empty_text(args, data)
    lines = [f"{data.total:,} lines match {args.pattern!r} in {len(data.files)} files"]
    lines += [f"{hit.file}:{hit.line}: {hit.text}" for hit in data.hits]
    if data.total > len(data.hits):
        lines.append(f"… {data.total - len(data.hits):,} more hits; per file:")
        lines += [f"{f.count:7}  {f.file}" for f in data.files[:30]]
    return "\n".join(lines + data.problems)


def _empty_text(args: GrepArgs, data: GrepData) -> str:
    where = ", ".join(args.paths) or "the whole clone"
    control = data.control
    assert control is not None  # an empty search always makes one
    lines = [f"no line matches {args.pattern!r} in {where} ({control.lines_read:,} lines read)"]
    if not args.paths:
        return "\n".join(
            [*lines, "control: there is nowhere else to look; check the pattern's spelling", *data.problems]
        )
    if not control.total:
        return "\n".join([*lines, "control: nor does any line of the whole clone; check the spelling", *data.problems])
    lines.append(
        f"control: the same pattern matches {control.total:,} lines in {len(control.files)} files of the clone"
    )
    for lead in control.leads[:5]:
        lines.append(f"  {where} leads to {lead.file} ({lead.count} hits):")
        lines += [f"    {hop.file}:{hop.line} {hop.via} {hop.name}: {hop.text.strip()}" for hop in lead.path]
    known = {lead.file for lead in control.leads[:5]}
    lines += [f"  {f.count:5}  {f.file}" for f in control.files[:12] if f.file not in known]
    return "\n".join(lines + data.problems)
