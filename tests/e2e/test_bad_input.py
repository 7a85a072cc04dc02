"""Bad input at the level of a tool call: each a clear error, or a clipped result that says so; nothing lost."""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sleuth.sandbox.base import Limits
from sleuth.sandbox.clone import tree_digest
from sleuth.sandbox.deployment import load_deployment
from sleuth.sandbox.errors import ConfigError
from sleuth.tools.call import ToolResult
from sleuth.tools.registry import UnknownTool, get_tool

from ..support.trees import BACKENDS, ODD_NAMES, Bench, hostile, write


def data(bench: Bench, result: ToolResult) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bench.kept[result.data].read_bytes())
    return found


@pytest.fixture(params=BACKENDS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(hostile(tmp_path / "tree"), tmp_path / "bench", backend=request.param)


PATHS = {
    "missing": "missing: no such file in the tree",
    "ok.pi": "ok.pi: no such file in the tree; did you mean 'ok.py'?",
    "out": "out: a symbolic link that leads out of the tree, to /usr/bin; it isn't followed",
    "shadow": "shadow: a symbolic link to /etc/shadow that leads to nothing inside the sandbox",
    "loop": "loop: a symbolic link to loop2 that leads in a circle",
    "dangling": "dangling: a symbolic link to nowhere that leads to nothing inside the sandbox",
    "../../etc/passwd": "../../etc/passwd: outside the tree; paths are relative to its root",
    "/etc/passwd": "/etc/passwd: outside the tree; paths are relative to its root",
    "pipe": "pipe: not a regular file (a pipe, socket or device)",
    "secret.py": "secret.py: can't be read: permission denied",
}


def test_every_path_is_refused_alike_by_every_tool_that_takes_one(bench: Bench) -> None:
    for path, said in PATHS.items():
        calls = {"read_file": {"path": path}}
        if path != "secret.py":
            calls["grep"] = {"pattern": "x", "paths": [path]}  # type: ignore[dict-item]
        for tool, args in calls.items():
            result = bench.call(tool, **args)
            assert (result.status, result.text.removeprefix("grep: ")) == ("error", said)


def test_a_file_that_can_not_be_read_is_named_by_the_search_that_left_it_out(bench: Bench) -> None:
    for args in ({}, {"paths": ["secret.py"]}):
        result = bench.call("grep", pattern="no such needle", **args)
        assert "Permission denied" in result.text
        assert data(bench, result)["problems"] == ["rg: ./secret.py: Permission denied (os error 13)"]
        assert result.status == "no_data"


def test_odd_names_are_listed_as_shown_and_taken_back(bench: Bench) -> None:
    listed = {hit["file"] for hit in data(bench, bench.call("grep", pattern="needle = 3"))["hits"]}
    assert listed == set(ODD_NAMES.values())
    for shown in listed:
        assert bench.call("read_file", path=shown).text == f"{shown}, lines 1-1 of 1\n     1  needle = 3"


def test_the_tree_is_as_it_was_after_all_of_it(bench: Bench) -> None:
    before = tree_digest(bench.tree)
    for tool, args in [("grep", {"pattern": "needle"}), ("grep", {"pattern": "zzz"}), ("read_file", {"path": "ok.py"})]:
        bench.call(tool, **args)
    assert tree_digest(bench.tree) == before


def test_binary_and_other_files_that_are_no_text(bench: Bench) -> None:
    read = bench.call("read_file", path="binary.bin")
    assert read.text == "binary.bin: a binary file (NUL byte at offset 3); only text can be read"
    found = bench.call("grep", pattern="needle", paths=["binary.bin"])
    assert (found.status, found.text) == ("ok", "1 lines match 'needle' in 1 files\nbinary.bin:1: ELF\\x00needle")
    assert bench.call("read_file", path="package").text == "package: a folder, not a file; it holds 1 entries: in.py"


def test_an_empty_tree(tmp_path: Path) -> None:
    bench = Bench(write(tmp_path / "tree", {}), tmp_path / "bench")
    result = bench.call("grep", pattern="x")
    assert (result.status, data(bench, result)["control"]["lines_read"]) == ("no_data", 0)
    assert result.text.startswith(
        "no line matches 'x' in the whole clone (0 lines read)\ncontrol: there is nowhere else"
    )
    assert bench.call("read_file", path=".").text == ".: a folder, not a file; it holds nothing"


def test_an_unknown_tool_a_bad_pattern_and_bad_arguments(bench: Bench) -> None:
    with pytest.raises(UnknownTool, match=r"^unknown tool 'read_fil'; did you mean 'read_file'\?$"):
        get_tool("read_fil")
    assert "unclosed group; fixed=true takes it as plain text" in bench.call("grep", pattern="(").text
    assert bench.call("grep", pattern="x", path="a").text == "grep: path: unknown argument; did you mean 'paths'?"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: x\ntree: gone\n", ":2: tree: {folder}/gone doesn't exist"),
        ("name: x\ntree: sleuth.yaml\n", ":2: tree: {folder}/sleuth.yaml is not a folder"),
        ("name: [x\ntree: a\n", ":2: not valid YAML: while parsing a flow sequence, expected ',' or ']', but got ':'"),
        ("name: x\n  tree: a\n", ":2: not valid YAML: mapping values are not allowed here"),
        ("name: x\ntree: a\ntree: b\n", ":3: tree: this key stands twice in one mapping"),
        ("", ":1: the file is empty; it must be a mapping with name"),
    ],
)
def test_a_description_that_can_not_be_used(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "sleuth.yaml").write_text(text)
    with pytest.raises(ConfigError) as error:
        load_deployment(tmp_path)
    assert str(error.value) == f"{tmp_path / 'sleuth.yaml'}{said.replace('{folder}', str(tmp_path))}"


# --- Size. This process holds none of it.


def repeated(path: Path, block: bytes, times: int) -> None:
    with path.open("wb") as stream:
        for _ in range(times):
            stream.write(block)


def grown(work: Callable[[], object]) -> int:
    """Bytes by which this process's peak memory grew."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10


def test_a_file_of_200_mb(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"a.py": "x = 1\n"})
    repeated(tree / "big.txt", b"a line of twenty by\n" * 50_000, 200)
    os.truncate((write(tree, {"sparse": ""}) / "sparse"), 200 << 20)
    bench = Bench(tree, tmp_path / "bench")
    read = bench.call("read_file", path="big.txt", start=9_999_999, lines=5)
    assert (read.status, data(bench, read)["total_lines"], data(bench, read)["size"]) == ("ok", 10_000_000, 200_000_000)
    assert data(bench, read)["lines"] == ["a line of twenty by"] * 2
    assert read.truncated == "9,999,998 of 10,000,000 lines not shown; ask for them with start and lines"
    sparse = bench.call("read_file", path="sparse")
    assert sparse.text == "sparse: a binary file (NUL byte at offset 0); only text can be read"
    empty = bench.call("grep", pattern="no such line")
    assert (empty.status, data(bench, empty)["control"]["lines_read"]) == ("no_data", 10_000_002)


def test_a_result_of_ten_million_lines(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"small.py": "hit\n"})
    repeated(tree / "big.log", b"hit\n" * 100_000, 100)
    bench = Bench(tree, tmp_path / "bench")
    start = time.monotonic()
    results: list[ToolResult] = []
    peak = grown(lambda: results.append(bench.call("grep", pattern="hit")))
    [result] = results
    assert time.monotonic() - start < 60
    found = data(bench, result)
    assert (result.status, found["total"], len(found["hits"])) == ("ok", 10_000_001, 200)
    assert found["files"] == [{"file": "big.log", "count": 10_000_000}, {"file": "small.py", "count": 1}]
    assert result.text.startswith("10,000,001 lines match 'hit' in 2 files\nbig.log:1: hit\n")
    clipped = Limits().output_bytes
    assert result.truncated.startswith(
        f"200 of 10,000,001 hits are listed; rg's own output was stopped at {clipped:,} bytes (the counts are complete)"
    )
    [raw] = [a for a in result.artefacts if a.name == "raw-0"]
    with bench.kept[raw.digest].open("rb") as stream:
        lines = sum(1 for _ in stream)
    assert 200_000 < lines < 10_000_001
    assert peak < 300 << 20
    assert list(bench.place.glob("call-*")) == []
