"""YAML files: values, lines, and every way of being wrong, each with its line."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from sleuth.sandbox.errors import ConfigError
from sleuth.sandbox.yamlfile import MAX_BYTES, Document, did_you_mean, load


def read(tmp_path: Path, content: str | bytes) -> Document:
    path = tmp_path / "f.yaml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load(path)


def problem(tmp_path: Path, content: str | bytes) -> str:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, content)
    assert error.value.args[0].startswith(str(tmp_path / "f.yaml"))
    return str(error.value).removeprefix(str(tmp_path / "f.yaml"))


def test_values_and_lines(tmp_path: Path) -> None:
    document = read(tmp_path, "# c\na: 1\nb:\n  - x\n  - y: [1, 2.50]\n\nc: {d: null}\n")
    assert document.value == {"a": 1, "b": ["x", {"y": [1, 2.5]}], "c": {"d": None}}
    lines = {("a",): 2, ("b",): 3, ("b", 0): 4, ("b", 1): 5, ("b", 1, "y"): 5, ("c",): 7, ("c", "d"): 7}
    assert {loc: document.lines[loc] for loc in lines} == lines
    assert document.written == {("a",): "1", ("b", 1, "y", 0): "1", ("b", 1, "y", 1): "2.50"}
    assert (document.line(("c", "d", "no", "such")), document.line(("nothing",))) == (7, 2)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 2026-01-01", "2026-01-01"),
        ("a: 010\nb: 0x10\nc: 1_000\nd: 1e3", {"a": 8, "b": 16, "c": 1000, "d": "1e3"}),
        ("1: a\n2.5: b", {"1": "a", "2.5": "b"}),
        ("\ufeffa: 1", {"a": 1}),
        ("a: |\n  x\n  y\n", "x\ny\n"),
        ("a: &x {k: 1}\nb: *x", {"a": {"k": 1}, "b": {"k": 1}}),
        ("", None),
        ("# nothing\n", None),
        ("---\n- 1\n", [1]),
        ("a: ünï 🦥", "ünï 🦥"),
    ],
)
def test_what_is_read(tmp_path: Path, text: str, value: Any) -> None:
    found = read(tmp_path, text).value
    assert (found["a"] if isinstance(value, str) else found) == value


def test_merge_keys_let_a_mapping_have_its_own_way(tmp_path: Path) -> None:
    text = "base: &b {x: 1, y: 1, z: 1.50}\nmore: &m {y: 2, z: 2}\nuse:\n  y: 9\n  <<: [*b, *m]\n  w: 0\n"
    document = read(tmp_path, text)
    assert document.value["use"] == {"x": 1, "y": 9, "z": 1.5, "w": 0}
    assert document.line(("use", "y")) == 4
    assert (document.written[("use", "y")], document.written[("use", "z")]) == ("9", "1.50")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", ":3: a: this key stands twice in one mapping"),
        ("o:\n  1: x\n  '1': y\n", ":3: 1: this key stands twice in one mapping"),
        ("a: 1\ntrue: 2\n", ":2: true: a key must be a word; put it in quotes"),
        ("a: 1\nyes: 2\n", ":2: yes: a key must be a word; put it in quotes"),
        ("? [a]\n: 1\n", ":1: a key must be a word, not a list or a mapping"),
        ("a:\n  <<: 3\n", ":2: <<: only a mapping, or a list of them, can be merged"),
        (
            "a: [1,\nb: 2\n",
            ":3: not valid YAML: while parsing a flow sequence, expected ',' or ']', but got '<stream end>'",
        ),
        ("a: 1\n\tb: 2\n", ":2: not valid YAML: while scanning for the next token, found character '\\t'"),
        ("a: *nowhere\n", ":1: not valid YAML: found undefined alias 'nowhere'"),
        (
            "a: !!python/object:os.system {}\n",
            ":1: not valid YAML: the tag 'tag:yaml.org,2002:python/object:os.system' isn't",
        ),
        ("a: !!python/name:os.system x\n", ":1: not valid YAML: could not determine a constructor for the tag"),
        ("a: 1\n---\nb: 2\n", ":2: not valid YAML: expected a single document in the stream, but found another"),
        ("a: !!int x\n", ": not valid YAML: invalid literal for int() with base 10: 'x'"),
        (b"a: 1\nb: \xff\n", ":2: not UTF-8 text (byte 0xff)"),
        ("a: 1\n".encode("utf-16"), ":1: not UTF-8 text (byte 0xff)"),
        (b"a: 1\nb: x\0y\n", ":2: not text: character 0x00 isn't allowed"),
        (b"a: \x1b[31m\n", ":1: not text: character 0x1b isn't allowed"),
        ("a: " + "[" * 2000, ": not valid YAML: nested too deep"),
        ("a: &a [*a]\n", ": not valid YAML: nested too deep"),
        ("#" * (MAX_BYTES + 1), f": {MAX_BYTES + 1:,} bytes; a file over {MAX_BYTES:,} is taken for a mistake"),
    ],
)
def test_what_is_refused(tmp_path: Path, content: str | bytes, said: str) -> None:
    assert problem(tmp_path, content).startswith(said)


BOMBS = {
    "lists": "a: &a [1,2,3,4,5,6,7,8,9]\n"
    + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "merges": "a: &a {k: 1}\n"
    + "".join(f"{b}: &{b} {{<<: [{','.join([f'*{a}'] * 9)}]}}\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_an_alias_bomb_is_counted_before_it_grows(tmp_path: Path, kind: str) -> None:
    start = time.monotonic()
    assert problem(tmp_path, BOMBS[kind]) == ": more than 100,000 values once aliases are expanded"
    assert time.monotonic() - start < 20


def test_places_that_hold_no_file(tmp_path: Path) -> None:
    (tmp_path / "play.yaml").write_text("a: 1")
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "loop").symlink_to("loop")
    said = {
        "plya.yaml": "doesn't exist; did you mean 'play.yaml'?",
        "zzz": "doesn't exist; known: pipe.yaml, play.yaml",
        "no/f.yaml": f"doesn't exist (nor does {tmp_path / 'no'})",
        ".": "is a folder, not a file",
        "pipe.yaml": "is no regular file, or a link to nothing",
        "loop": "is no regular file, or a link to nothing",
    }
    for name, text in said.items():
        with pytest.raises(ConfigError) as error:
            load(tmp_path / name)
        assert str(error.value) == f"{tmp_path / name}: {text}"


def test_a_name_too_long_for_any_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read: File name too long"):
        load(tmp_path / ("x" * 300))


@pytest.mark.parametrize(
    ("word", "known", "said"),
    [
        ("tre", ["tree", "stock"], "; did you mean 'tree'?"),
        ("qqqq", ["tree", "stock"], "; known: stock, tree"),
        ("x", [], ""),
    ],
)
def test_did_you_mean(word: str, known: list[str], said: str) -> None:
    assert did_you_mean(word, known) == said
