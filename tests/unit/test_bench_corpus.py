"""The corpus bench on made-up rows, local trees and a command that stands in for sleuth."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench" / "corpus.py"
FAKE = f"""#!{sys.executable}
import json, pathlib, sys
tree, log = pathlib.Path(sys.argv[sys.argv.index("--tree") + 1]), pathlib.Path(__file__).with_name("asked")
log.open("a").write(" ".join(sys.argv[1:]) + "\\n")
answer = tree / "answer.json"
if not answer.exists():
    sys.exit("sleuth: no answer")
print(answer.read_text())
"""


def finding(kind: str, path: str = "pkg/moe.py", line: int = 12, symbol: str = "Moe.forward") -> dict[str, Any]:
    return {"kind": kind, "path": path, "line": line, "end_line": line, "symbol": symbol, "why": "a reason"}


def table(*findings: dict[str, Any], count: int | None = 1, path: str = "pkg/moe.py") -> dict[str, Any]:
    worlds = [{"when": [], "count": count, "unknown": "" if count else "a blind spot", "raises": "", "sites": []}]
    return {"factor": "my_factor", "entry": {"path": path}, "worlds": worlds, "findings": list(findings)}


class Bench:
    """A corpus whose releases lie unpacked in the cache, each with the answer that the fake command gives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[dict[str, Any]] = []
        self.sleuth = folder / "sleuth"
        self.sleuth.write_text(FAKE)
        self.sleuth.chmod(0o755)

    def release(self, name: str, answer: object, source: str = "my_factor = 1\n") -> str:
        root = self.folder / "cache" / f"{name}-1.0"
        (root / "pkg").mkdir(parents=True)
        (root / "pkg" / "moe.py").write_text(source)
        if answer is not None:
            (root / "answer.json").write_text(json.dumps(answer))
        return f"{name}==1.0"

    def row(self, name: str, before: str, after: str, kind: str = "scale-never", factor: str = "my_factor") -> None:
        places = {"file": "pkg/moe.py", "before_lines": [10, 14], "after_file": "pkg/moe.py", "after_lines": [10, 20]}
        row = {"id": name, "kind": kind, "before_pkg": before, "after_pkg": after, "symbol": "Moe.forward", **places}
        self.rows.append({**row, "factor": factor})

    def pair(self, name: str, before: object, after: object, kind: str = "scale-never") -> None:
        self.row(name, self.release(f"{name}-b", before), self.release(f"{name}-a", after), kind)

    def run(self, *options: str, by: str = "worlds") -> tuple[str, dict[str, dict[str, Any]]]:
        """What it prints, and its lines by row."""
        corpus, out = self.folder / "rows.jsonl", self.folder / "table.jsonl"
        corpus.write_text("".join(json.dumps(row) + "\n" for row in self.rows))
        argv = [sys.executable, str(BENCH), f"--corpus={corpus}", f"--out={out}", f"--sleuth={self.sleuth}"]
        argv += [f"--cache={self.folder / 'cache'}", f"--by={by}", *options]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        lines = map(json.loads, out.read_text().splitlines())
        return done.stdout, {line["id"]: line for line in lines}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_each_pair_is_judged_by_its_kind_and_file(bench: Bench) -> None:
    bench.pair("good", table(finding("never")), table(finding("never", path="pkg/other.py"), finding("twice")))
    bench.pair("alarm", table(finding("never")), table(finding("never")))
    bench.pair("missed", table(finding("twice")), table())
    bench.pair("unsure", table(count=None), table())
    bench.pair("shy", table(finding("never")), table(finding("unknown")))
    bench.pair("empty", {"factor": "my_factor", "worlds": [], "findings": []}, table())
    bench.pair("broken", None, table())
    bench.pair("twice", table(finding("twice")), table(finding("never")), kind="scale-twice")
    bench.pair("any", table(finding("never")), table(finding("unknown", path="pkg/other.py")), kind="scale-wrong")
    said, lines = bench.run()
    assert {name: line["verdict"] for name, line in lines.items()} == {
        "good": "right",
        "alarm": "FALSE ALARM",
        "missed": "missed",
        "unsure": "unknown",
        "shy": "unknown",
        "empty": "unknown",
        "broken": "failed",
        "twice": "right",
        "any": "right",
    }
    assert "pairs from PyPI: 3 of 9 right (33%; 80%: MISSED)" in said
    assert "false alarms: 1 (at most 1: met): alarm" in said
    assert "scale-twice: 1 right" in said
    assert lines["good"]["after"]["others"] == 1
    assert lines["unsure"]["before"]["why"] == "a blind spot"
    assert lines["broken"]["before"]["why"] == "exit 1: sleuth: no answer"


def test_near_is_the_rows_lines_or_symbol(bench: Bench) -> None:
    bench.pair("lines", table(finding("never", line=54, symbol="Else.where")), table())
    bench.pair("symbol", table(finding("never", line=900)), table())
    bench.pair("far", table(finding("never", line=55, symbol="Moe.forward_other")), table())
    bench.pair("nearest", table(finding("never", line=900, symbol="Else.where"), finding("never")), table())
    _, lines = bench.run()
    near = {name: line["before"]["near"] for name, line in lines.items()}
    assert near == {"lines": True, "symbol": True, "far": False, "nearest": True}
    assert lines["nearest"]["before"]["finding"]["line"] == 12


def test_what_cant_be_had_is_listed_and_not_counted(bench: Bench) -> None:
    bench.pair("good", table(finding("never")), table())
    bench.row("gone", "not-a-version", "not-a-version")
    bench.row("commit", "git+github:some/one@abc^", "git+github:some/one@abc")
    bench.row("nameless", bench.release("n-b", table()), bench.release("n-a", table()), factor="cross-rank sums")
    said, lines = bench.run()
    assert "pairs from PyPI: 1 of 1 right (100%; 80%: met)" in said
    assert "skipped, not counted: 3: gone, commit, nameless" in said
    assert {line["verdict"] for name, line in lines.items() if name != "good"} == {"skipped"}
    assert "no repository given with --git has that commit" in lines["commit"]["skipped"]


def test_commits_come_from_a_repository_at_hand(bench: Bench) -> None:
    work = bench.folder / "work"
    (work / "python" / "pkg").mkdir(parents=True)

    def git(*words: str) -> str:
        argv = ["git", "-C", str(work), "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    for found in (table(finding("twice")), table()):
        (work / "python" / "pkg" / "moe.py").write_text(f"my_factor = {len(found['findings'])}\n")
        (work / "python" / "answer.json").write_text(json.dumps(found))
        git("add", ".")
        git("commit", "--quiet", "--message=x")
    head = git("rev-parse", "HEAD")[:9]
    bench.row("git", f"git+github:a/work@{head}^", f"git+github:a/work@{head}", kind="scale-twice")
    said, lines = bench.run(f"--git={work}")
    assert lines["git"]["verdict"] == "right"
    assert "from git, not in the pairs above: 1 run, 1 right" in said
    assert (bench.folder / "cache" / f"work-{head}").is_dir()


def test_the_entry_and_the_factors_names(bench: Bench) -> None:
    scales = "x = layer._q_scale_float * layer._k_scale_float * layer.k_scale_float_other\n"
    trees = [bench.release(f"{name}-1", table(), source) for name, source in (("qk", scales), ("yarn", "mscale = 1\n"))]
    bench.row("qk", trees[0], trees[0], kind="scale-wrong", factor="q/k scale")
    bench.row("yarn", trees[1], trees[1], kind="scale-wrong", factor="yarn mscale")
    _, lines = bench.run("--entry=row")
    assert lines["qk"]["names"] == ["_q_scale_float", "_k_scale_float"]
    assert lines["yarn"]["names"] == ["mscale"]
    asked = (bench.folder / "asked").read_text().splitlines()
    assert len(asked) == 3, "the same question isn't asked twice"
    assert asked[0].startswith("trace _q_scale_float --tree ")
    assert asked[0].endswith("--format json --entry pkg/moe.py --seconds 120")
    bench.run("--only", "yarn")
    assert "--entry" not in (bench.folder / "asked").read_text().splitlines()[-1]


def test_rows_of_another_kind_are_left_out_unless_asked_for(bench: Bench) -> None:
    bench.pair("good", table(finding("never")), table())
    bench.pair("shard", table(finding("twice")), table(), kind="parallel-reduce-shard")
    assert set(bench.run()[1]) == {"good"}
    assert set(bench.run("--kinds", "parallel-", "scale-")[1]) == {"good", "shard"}
    assert bench.run("--only", "shard")[1]["shard"]["verdict"] == "right"


def said(*suspects: dict[str, Any], compared: int = 3, path: str = "pkg/moe.py") -> dict[str, Any]:
    return {"factor": "my_factor", "tables": [], "suspects": list(suspects), "compared": {path: compared}}


def test_suspects_are_the_judge_unless_worlds_are_asked_for(bench: Bench) -> None:
    bench.pair("good", said(finding("never")), said(finding("never", path="pkg/other.py"), finding("twice")))
    bench.pair("alarm", said(finding("never")), said(finding("never", line=900)))
    bench.pair("missed", said(finding("twice")), said())
    bench.pair("unseen", said(finding("never")), said(compared=0))
    bench.pair("elsewhere", said(path="pkg/other.py"), said())
    _, lines = bench.run(by="suspects")
    verdicts = {name: line["verdict"] for name, line in lines.items()}
    assert verdicts == {
        "good": "right",
        "alarm": "FALSE ALARM",
        "missed": "missed",
        "unseen": "unknown",
        "elsewhere": "unknown",
    }
    assert lines["unseen"]["after"]["why"] == "nothing in the file was compared"
    assert (bench.folder / "asked").read_text().splitlines()[0].endswith("--format json --suspects")


def test_the_tables_of_one_answer_are_judged_one_by_one(bench: Bench) -> None:
    whole = {"factor": "my_factor", "tables": [table(), table(finding("never"))], "findings": []}
    bench.pair("good", whole, {"factor": "my_factor", "tables": [table()], "findings": []})
    assert bench.run()[1]["good"]["verdict"] == "right"
