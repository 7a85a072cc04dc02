"""grep: exact hits and counts, what is left out, and the control that makes an empty result say something."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sleuth.sandbox.base import Limits
from sleuth.tools.call import ToolResult
from sleuth.tools.rg_output import Matches, RawHit, read_counts

from ..support.trees import BACKENDS, ODD_NAMES, Bench, hostile, write

TREE: dict[str, str | bytes] = {
    "entry.py": "import base\n\n\nclass Entry(base.Base):\n    pass\n",
    "base.py": "class Base:\n    scaling = 1\n    Scaling = 2\n    scaling_factor = 3\n",
    "deep/er/mod.py": "scaling = (1 + 2)\r\nx = 'a.b'\n",
    "notes.md": "scaling\n",
    ".hidden": "scaling\n",
    ".gitignore": "*.md\n",
    ".git/config": "scaling\n",
}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(write(tmp_path / "tree", TREE), tmp_path / "bench")


def data(bench: Bench, result: ToolResult) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bench.kept[result.data].read_bytes())
    return found


def grep(bench: Bench, **args: Any) -> list[tuple[str, int]]:
    result = bench.call("grep", **args)
    found = data(bench, result)
    assert result.status == ("ok" if found["total"] else "no_data"), result.text
    assert (found["total"], found["problems"]) == (len(found["hits"]), [])
    return [(hit["file"], hit["line"]) for hit in found["hits"]]


def test_hidden_and_ignored_files_are_deployed_too_but_git_is_not(bench: Bench) -> None:
    result = bench.call("grep", pattern="scaling")
    assert result.text == (
        "5 lines match 'scaling' in 4 files\n"
        ".hidden:1: scaling\n"
        "base.py:2:     scaling = 1\n"
        "base.py:4:     scaling_factor = 3\n"
        "deep/er/mod.py:1: scaling = (1 + 2)\n"
        "notes.md:1: scaling"
    )
    flags = "--no-config --text --no-ignore --hidden --no-require-git --glob=!.git"
    assert result.commands == [f"rg --json --max-count=100000 {flags} -e scaling -- ./".split()]
    assert (result.truncated, [a.name for a in result.artefacts]) == ("", ["data.json"])
    assert data(bench, result)["files"][0] == {"file": "base.py", "count": 2}


@pytest.mark.parametrize(
    ("args", "hits"),
    [
        ({"pattern": "^scaling"}, [(".hidden", 1), ("deep/er/mod.py", 1), ("notes.md", 1)]),
        ({"pattern": "scaling", "word": True, "globs": ["*.py"]}, [("base.py", 2), ("deep/er/mod.py", 1)]),
        ({"pattern": "SCALING", "ignore_case": True, "paths": ["base.py"]}, [("base.py", n) for n in (2, 3, 4)]),
        ({"pattern": "(1 + 2)", "fixed": True}, [("deep/er/mod.py", 1)]),
        ({"pattern": "a.b", "fixed": True, "paths": ["deep"]}, [("deep/er/mod.py", 2)]),
        ({"pattern": "scaling", "globs": ["!*.md", "!.hidden"], "paths": [".", "deep"]}, None),
        ({"pattern": "-e", "paths": ["base.py"]}, []),
        ({"pattern": "--files"}, []),
        ({"pattern": "scaling", "paths": ["/clone/deep/../deep/er"]}, [("deep/er/mod.py", 1)]),
        ({"pattern": "scaling", "paths": ["./notes.md", "notes.md"]}, None),
        ({"pattern": r"scaling = \(1 \+ 2\)$", "paths": ["deep"]}, []),
        ({"pattern": "Entry|Base", "paths": ["entry.py"]}, [("entry.py", 4)]),
    ],
)
def test_exact_hits(bench: Bench, args: dict[str, Any], hits: list[tuple[str, int]] | None) -> None:
    if hits is None:
        assert bench.call("grep", **args).status == "ok"
    else:
        assert grep(bench, **args) == hits


def test_an_empty_result_redirects_to_where_the_chain_leads(bench: Bench) -> None:
    result = bench.call("grep", pattern="scaling_factor", paths=["entry.py"])
    control = data(bench, result)["control"]
    assert result.status == "no_data"
    assert (control["lines_read"], control["total"], control["files"]) == (5, 1, [{"file": "base.py", "count": 1}])
    [lead] = control["leads"]
    assert (lead["file"], lead["count"]) == ("base.py", 1)
    assert result.text.startswith(
        "no line matches 'scaling_factor' in entry.py (5 lines read)\n"
        "control: the same pattern matches 1 lines in 1 files of the clone\n"
        "  entry.py leads to base.py (1 hits):\n"
    )
    assert len(result.commands) == 4  # the search, lines read, the control, the leads


@pytest.mark.parametrize(
    ("args", "lines", "total", "said"),
    [
        ({"pattern": "nowhere", "paths": ["base.py"]}, 4, 0, "control: nor does any line of the whole clone"),
        ({"pattern": "nowhere"}, 14, 0, "control: there is nowhere else to look; check the pattern's spelling"),
        ({"pattern": "scaling", "globs": ["*.pyy"]}, 0, 0, "(0 lines read)"),
    ],
)
def test_what_a_control_did_not_find(bench: Bench, args: dict[str, Any], lines: int, total: int, said: str) -> None:
    result = bench.call("grep", **args)
    control = data(bench, result)["control"]
    assert (result.status, control["lines_read"], control["total"], control["leads"]) == ("no_data", lines, total, [])
    assert said in result.text


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            {"pattern": "(x"},
            "grep: bad pattern '(x': regex parse error: (?:(x) ^ error: unclosed group; fixed=true takes it",
        ),
        ({"pattern": "a{99999999}"}, "grep: bad pattern 'a{99999999}': "),
        ({"pattern": "x", "globs": ["["]}, "grep: rg exit 2: rg: error parsing glob '[': unclosed character class"),
        (
            {"pattern": "a\nb"},
            "grep: pattern: Value error, a pattern matches within one line, so it can't hold a line end",
        ),
        ({"pattern": "a\0b"}, "grep: pattern: Value error, write \\x00 for a NUL"),
        ({"pattern": ""}, "grep: pattern: String should have at least 1 character"),
        ({"pattern": "x" * 200_000}, "a command line too long; its longest word has 200,000 bytes"),
        ({"pattern": "x", "globs": ["a\0"]}, "a command line can't hold a NUL or half a character: '--glob=a\\x00'"),
        (
            {"pattern": "x", "paths": ["nope", "../x", "deep"]},
            "grep: nope: no such file in the tree; ../x: outside the tree",
        ),
        (
            {"patern": "x"},
            "grep: pattern: this argument is required; patern: unknown argument; did you mean 'pattern'?",
        ),
        ({"pattern": "x", "max_hits": 0}, "grep: max_hits: Input should be greater than or equal to 1 (got 0)"),
    ],
)
def test_what_is_refused(bench: Bench, args: dict[str, Any], said: str) -> None:
    result = bench.call("grep", **args)
    assert (result.status, result.artefacts) == ("error", [])
    assert result.text.startswith(said)
    assert "Traceback" not in result.text


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_hostile_tree(tmp_path: Path, backend: str) -> None:
    bench = Bench(hostile(tmp_path / "tree"), tmp_path / "bench", backend=backend)
    result = bench.call("grep", pattern="needle")
    found = data(bench, result)
    files = {hit["file"] for hit in found["hits"]}
    assert files == {*ODD_NAMES.values(), "ok.py", "package/in.py", "binary.bin"}
    assert found["problems"] == ["rg: ./secret.py: Permission denied (os error 13)"]
    assert r"binary.bin:1: ELF\x00needle" in result.text
    assert (found["total"], result.status) == (len(files), "ok")
    for name in files:
        assert grep_in(bench, name) == [(name, 1)]
    assert "\x1b" not in result.text


def grep_in(bench: Bench, name: str) -> list[tuple[str, int]]:
    return grep(bench, pattern="needle", paths=[name])


def test_more_hits_than_are_listed(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "tree/many.txt").write_text("".join(f"hit {n}\n" for n in range(1000)))
    result = bench.call("grep", pattern="hit", max_hits=3)
    found = data(bench, result)
    assert (found["total"], [hit["text"] for hit in found["hits"]]) == (1000, ["hit 0", "hit 1", "hit 2"])
    assert result.truncated == "3 of 1,000 hits are listed"
    assert "… 997 more hits; per file:\n   1000  many.txt" in result.text
    [raw] = [a for a in result.artefacts if a.name == "raw-0"]
    assert bench.kept[raw.digest].read_text().splitlines() == [f"many.txt:{n + 1}: hit {n}" for n in range(1000)]


def test_lines_of_any_length_and_any_bytes(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "tree/long.txt").write_bytes(
        b"x" * 500 + b"needle\n" + b"y" * (3 << 20) + b"needle\n" + b"\xff\x1b[0m needle\n"
    )
    hits = data(bench, bench.call("grep", pattern="needle"))["hits"]
    assert [hit["line"] for hit in hits] == [1, 2, 3]
    assert hits[0]["text"] == "x" * 400 + " … (506 characters)"
    assert hits[1]["text"].startswith("(a line of about 3,14")
    assert hits[2]["text"] == "\\xff\x1b[0m needle"
    assert r"long.txt:3: \xff\x1b[0m needle" in bench.call("grep", pattern="needle").text


def test_an_output_that_overflows_keeps_its_counts(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"b.txt": "hit\n" * 50_000, "a.txt": "hit\n" * 50_000})
    bench = Bench(tree, tmp_path / "bench", Limits(output_bytes=1 << 20))
    result = bench.call("grep", pattern="hit", max_hits=2)
    found = data(bench, result)
    assert (result.status, found["total"]) == ("ok", 100_000)
    assert found["files"] == [{"file": "a.txt", "count": 50_000}, {"file": "b.txt", "count": 50_000}]
    assert [(hit["file"], hit["line"]) for hit in found["hits"]] == [("a.txt", 1), ("a.txt", 2)]
    assert result.truncated == (
        "2 of 100,000 hits are listed; rg's own output was stopped at 1,048,576 bytes (the counts are complete)"
    )


def test_more_matches_in_a_file_than_rg_is_asked_for_at_first(tmp_path: Path) -> None:
    bench = Bench(write(tmp_path / "tree", {"a.txt": "hit\n" * 100_001, "b.txt": "hit\n"}), tmp_path / "bench")
    result = bench.call("grep", pattern="hit")
    assert (data(bench, result)["total"], result.truncated) == (100_002, "200 of 100,002 hits are listed")
    [raw] = [a for a in result.artefacts if a.name == "raw-0"]
    assert bench.kept[raw.digest].read_text().count("\n") == 100_002


def test_a_search_that_takes_too_long(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"a.txt": ("a" * 200 + "\n") * 400_000})
    bench = Bench(tree, tmp_path / "bench", Limits(seconds=0.002))
    result = bench.call("grep", pattern="(a?){150}b")
    assert (result.status, result.text.partition(",")[0]) == (
        "timeout",
        "grep '(a?){150}b': stopped at the time limit",
    )


def test_binary_files_are_searched_to_their_end_and_counted_alike(bench: Bench, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "late.so").write_bytes(b"needle\n" * 10 + b"x\n" * 100_000 + b"\0\nneedle\n")
    (tree / "early.so").write_bytes(b"\0" * 100 + b"needle")
    (tree / "wide.py").write_bytes("needle\n".encode("utf-16"))
    result = bench.call("grep", pattern="needle")
    assert data(bench, result)["files"] == [
        {"file": "late.so", "count": 11},
        {"file": "early.so", "count": 1},
        {"file": "wide.py", "count": 1},
    ]
    assert data(bench, result)["hits"][-2]["line"] == 100_012
    elsewhere = data(bench, bench.call("grep", pattern="needle", paths=["base.py"]))["control"]
    assert (elsewhere["total"], elsewhere["files"][0]) == (13, {"file": "late.so", "count": 11})


def message(kind: str, **content: Any) -> str:
    return json.dumps({"type": kind, "data": content}, separators=(",", ":")) + "\n"


def test_rg_output_cut_short_in_a_line_loses_only_that_line(tmp_path: Path) -> None:
    def match(line: int) -> str:
        return message("match", path={"text": "./f"}, lines={"text": f"hit {line}\n"}, line_number=line)

    begin = message("begin", path={"text": "./f"})
    (tmp_path / "out").write_text(begin + match(1) + match(2) + match(3)[:-20])
    found = Matches(tmp_path / "out")
    assert (found.total, found.finished, found.counts) == (2, False, {"f": 2})
    assert found.hits() == [RawHit("f", 1, "hit 1"), RawHit("f", 2, "hit 2")]
    assert found.write(tmp_path / "hits").read_text() == "f:1: hit 1\nf:2: hit 2\n"
    (tmp_path / "empty").touch()
    assert (Matches(tmp_path / "empty").total, Matches(tmp_path / "empty").hits()) == (0, [])


def test_counts_of_odd_names(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"./a\0003\n./new\nline\0004\n./bad\xff\00012\n")
    assert read_counts(tmp_path / "out").files == {"a": 3, r"new\x0aline": 4, r"bad\xff": 12}
