"""Run `sleuth trace` on the releases before and after known bugs, and count what it gets right.

    python bench/corpus.py [--corpus FILE] [--kinds scale-] [--only ID …] [--by worlds] [--git DIR] [--out table.jsonl]

A row of the corpus names a bug, the release that had it and the release that fixed it, the file in either, and a
factor. Releases are fetched as wheels into a cache outside the project (sleuth's own, or --cache), commits are taken
from the repositories given with --git; what can't be had is listed and not counted. The trace finds its entry by
itself, unless `--entry row` hands it the row's file.

What is counted. By default the judge is what `sleuth trace --suspects` says: the places that use the factor unlike
their siblings. A release is *flagged* when a suspect of the right kind has the row's file as its path (`after_file` for
the fixed release): kind `never` for rows scale-never, `twice` for scale-twice, any kind but `unknown` for the others.
Where in the file doesn't matter; `near` says whether it is within 40 lines of the row's lines or in the function or
class that the row names first. Suspects in other files count for nothing; `others` says how many there are. A release
that isn't flagged is *clean* when places of the row's file were compared with others, else *unknown*: nothing there was
looked at. That a file is clean means that its uses agree with each other, not that every count is one.

With `--by worlds` the judge is the findings of the worlds tables, followed for as long as `--follow` says. What isn't
flagged is *unknown* when no world was traced, when a finding of kind `unknown` has the row's file as its path, or when
a world of an entry in that file has no count and doesn't end in an exception; else it is *clean*.

When the command prints no JSON it has *failed*. A pair is right when the release before is flagged and the one after is
clean. A false alarm is a fixed release that is flagged, also when what was flagged is another, real defect.

A row's factor is free text; `corpus_judge.names` says how it becomes the identifiers that are traced, one trace each.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from corpus_judge import Json, Judgement, Place, by_suspects, by_worlds, names
from corpus_trees import NoTree, Trees

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "bench" / "corpus" / "dev.jsonl"
SHARE = 0.8
"""The share of the pairs from PyPI that has to be right."""
ALARMS = 1
"""How many fixed releases may be flagged."""


class Failed(Exception):
    """A trace that printed no table; the message says what it printed."""


@dataclass
class Tracer:
    """Runs the installed command; the same question is asked once."""

    command: str
    seconds: float
    by: str
    follow: float
    answers: dict[tuple[str, ...], tuple[list[Json], float]] = field(default_factory=dict)

    def trace(self, factor: str, tree: Path, entry: str | None) -> tuple[list[Json], float]:
        """What is said of a factor, and the seconds that took; of the worlds, one table an entry.

        Raises:
            Failed: no answer came back.
        """
        argv = [self.command, "trace", factor, "--tree", str(tree), "--format", "json"]
        argv += ["--entry", entry] if entry else []
        argv += ["--suspects"] if self.by == "suspects" else ["--seconds", f"{self.follow:g}"]
        if tuple(argv) not in self.answers:
            start = time.perf_counter()
            tables = self._run(argv)
            self.answers[tuple(argv)] = tables, time.perf_counter() - start
        return self.answers[tuple(argv)]

    def _run(self, argv: list[str]) -> list[Json]:
        try:
            done = subprocess.run(
                argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=self.seconds, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failed(str(error)) from error
        try:
            said = json.loads(done.stdout)
        except ValueError as error:
            last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no JSON"]
            raise Failed(f"exit {done.returncode}: {last[0]}") from error
        found = said.get("tables", [said]) if self.by == "worlds" and isinstance(said, dict) else said
        answers = found if isinstance(found, list) else [found]
        if not all(isinstance(answer, dict) for answer in answers):
            raise Failed("the JSON isn't an answer")
        return answers


@dataclass(frozen=True)
class Outcome:
    """One line of the table.

    Attributes:
        skipped: why the row wasn't run; everything below is empty then.
    """

    id: str
    kind: str
    pypi: bool
    skipped: str = ""
    names: list[str] = field(default_factory=list)
    before: Judgement = field(default_factory=lambda: Judgement(""))
    after: Judgement = field(default_factory=lambda: Judgement(""))
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        statuses = [self.before.status, self.after.status]
        if statuses == ["flagged", "clean"]:
            return "right"
        if self.after.status == "flagged":
            return "FALSE ALARM"
        if "failed" in statuses:
            return "failed"
        return "unknown" if "unknown" in statuses else "missed"

    def text(self) -> str:
        if self.skipped:
            return f"{self.id:<22} {self.kind:<14} skipped: {self.skipped}"
        sides = f"before: {self.before.text()}; after: {self.after.text()}"
        return f"{self.id:<22} {self.kind:<14} {sides}; {self.verdict} ({self.seconds:.1f} s)"


def run_row(row: Json, trees: Trees, tracer: Tracer, with_entry: bool) -> Outcome:
    """Trace both releases of a row, or say why that can't be."""
    pypi = not any(str(row[key]).startswith("git+") for key in ("before_pkg", "after_pkg"))
    try:
        sides = [(trees.root(row[f"{side}_pkg"], file), file, side) for side, file in _files(row)]
    except NoTree as error:
        return Outcome(row["id"], row["kind"], pypi, skipped=str(error))
    text = "\n".join((root / file).read_text(encoding="utf-8", errors="replace") for root, file, _ in sides)
    traced = names(row.get("factor") or "", text)
    if not traced:
        return Outcome(row["id"], row["kind"], pypi, skipped=f"no identifier stands for {row.get('factor')!r}")
    judged, seconds = [], 0.0
    for root, file, side in sides:
        place = Place(row["kind"], file, (row[f"{side}_lines"][0], row[f"{side}_lines"][-1]), row.get("symbol") or "")
        judgement, took = _judge_release(place, traced, root, tracer, with_entry)
        judged.append(judgement)
        seconds += took
    return Outcome(row["id"], row["kind"], pypi, "", traced, judged[0], judged[1], seconds)


def _files(row: Json) -> list[tuple[str, str]]:
    return [("before", row["file"]), ("after", row.get("after_file") or row["file"])]


def _judge_release(
    place: Place, traced: Sequence[str], root: Path, tracer: Tracer, with_entry: bool
) -> tuple[Judgement, float]:
    answers: list[Json] = []
    seconds = 0.0
    for name in traced:
        try:
            found, took = tracer.trace(name, root, place.file if with_entry else None)
        except Failed as error:
            return Judgement("failed", why=str(error)), seconds
        answers += found
        seconds += took
    return (by_suspects if tracer.by == "suspects" else by_worlds)(place, answers), seconds


def summary(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The closing lines: pairs from PyPI first, then by kind, then what wasn't run."""
    ran = [outcome for outcome in outcomes if not outcome.skipped]
    pairs = [outcome for outcome in ran if outcome.pypi]
    yield ""
    if pairs:
        right = _those(pairs, "right")
        alarms = _those(pairs, "FALSE ALARM")
        met = "met" if len(right) >= SHARE * len(pairs) else "MISSED"
        yield f"pairs from PyPI: {len(right)} of {len(pairs)} right ({len(right) / len(pairs):.0%}; {SHARE:.0%}: {met})"
        met = "met" if len(alarms) <= ALARMS else "MISSED"
        yield f"false alarms: {len(alarms)} (at most {ALARMS}: {met}){_ids(alarms)}"
        for verdict in ("unknown", "missed", "failed"):
            yield f"{verdict}: {len(_those(pairs, verdict))}{_ids(_those(pairs, verdict))}"
    for kind in sorted({outcome.kind for outcome in ran}):
        counted = Counter(outcome.verdict for outcome in ran if outcome.kind == kind)
        yield f"{kind}: " + ", ".join(f"{number} {verdict}" for verdict, number in counted.most_common())
    git = [outcome for outcome in ran if not outcome.pypi]
    yield f"from git, not in the pairs above: {len(git)} run, {len(_those(git, 'right'))} right"
    skipped = [outcome.id for outcome in outcomes if outcome.skipped]
    yield f"skipped, not counted: {len(skipped)}" + (f": {', '.join(skipped)}" if skipped else "")


def _those(outcomes: Sequence[Outcome], verdict: str) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.verdict == verdict]


def _ids(outcomes: Sequence[Outcome]) -> str:
    return ": " + ", ".join(outcome.id for outcome in outcomes) if outcomes else ""


def read_rows(path: Path, kinds: Sequence[str], only: Sequence[str]) -> list[dict[str, Any]]:
    """The rows that have a factor and were asked for: by id, else by the beginning of their kind."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    unknown = set(only) - {row["id"] for row in rows}
    if unknown:
        raise SystemExit(f"{path} has no row {', '.join(sorted(unknown))}")
    if only:
        return [row for row in rows if row["id"] in only]
    return [row for row in rows if row.get("factor") and row["kind"].startswith(tuple(kinds))]


def arguments() -> argparse.Namespace:
    beside = Path(sys.executable).with_name("sleuth")
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="the rows, JSON lines")
    parser.add_argument("--kinds", nargs="+", default=["scale-"], metavar="KIND", help="how a row's kind begins")
    parser.add_argument("--only", nargs="+", default=[], metavar="ID", help="these rows, whatever their kind")
    parser.add_argument("--by", choices=["suspects", "worlds"], default="suspects", help="which answer is judged")
    parser.add_argument(
        "--entry", choices=["none", "row"], default="none", help="row: hand over the row's file (worlds)"
    )
    parser.add_argument("--follow", type=float, default=120, help="how long one trace of the worlds may follow code")
    parser.add_argument("--cache", type=Path, help="where trees are kept, NAME-VERSION each (default: sleuth's cache)")
    parser.add_argument(
        "--git", type=Path, action="append", default=[], metavar="DIR", help="a repository with commits"
    )
    parser.add_argument("--out", type=Path, help="write every line of the table here, as JSON lines")
    parser.add_argument("--seconds", type=float, default=300, help="what one trace may take")
    parser.add_argument("--sleuth", default=str(beside) if beside.exists() else shutil.which("sleuth") or "sleuth")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if options.cache:
        os.environ["SLEUTH_CACHE"] = str(options.cache.absolute())
    trees, tracer = Trees(options.git), Tracer(options.sleuth, options.seconds, options.by, options.follow)
    start, outcomes = time.perf_counter(), []
    for row in read_rows(options.corpus, options.kinds, options.only):
        outcomes.append(run_row(row, trees, tracer, options.entry == "row" and options.by == "worlds"))
        print(outcomes[-1].text(), flush=True)
    if options.out:
        lines = [json.dumps({**asdict(outcome), "verdict": _verdict(outcome)}) for outcome in outcomes]
        options.out.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    print("\n".join(summary(outcomes)))
    traced = sum(seconds for _, seconds in tracer.answers.values())
    print(f"{time.perf_counter() - start:.1f} s in all, {traced:.1f} s of it in {len(tracer.answers)} traces")


def _verdict(outcome: Outcome) -> str:
    return "skipped" if outcome.skipped else outcome.verdict


if __name__ == "__main__":
    main()
