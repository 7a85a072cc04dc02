"""Exports of a case: golden files, and that each can be read back by what it is for."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.agent.case import fold
from sleuth.agent.events import ADAPTER
from sleuth.agent.export import export, formats
from sleuth.agent.log import read_log
from sleuth.agent.plain import cell, code, fenced, prose
from sleuth.agent.store import CaseError, CaseFolder
from sleuth.sandbox.errors import UsageError

from ..support import snapshot
from ..support.golden import golden_case


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CaseFolder:
    return golden_case(tmp_path, monkeypatch)


def test_formats() -> None:
    assert formats() == ["json", "jsonl", "md"]


@pytest.mark.parametrize("name", ["json", "jsonl", "md"])
def test_golden(case: CaseFolder, name: str) -> None:
    snapshot.check(f"case.{name}", export(case, name))


@pytest.mark.parametrize("name", ["json", "jsonl", "md"])
def test_every_export_is_utf8_and_the_same_each_time(case: CaseFolder, name: str) -> None:
    content = export(case, name)
    assert content.decode().endswith("\n")
    assert export(case, name) == content


def test_an_unknown_format_gets_a_hint(case: CaseFolder) -> None:
    with pytest.raises(UsageError, match=r"no format 'jsn'; did you mean 'json'\?"):
        export(case, "jsn")


@pytest.mark.parametrize("name", ["json", "jsonl", "md"])
def test_a_changed_log_is_not_exported(case: CaseFolder, name: str) -> None:
    content = case.events.read_bytes()
    case.events.write_bytes(content.replace(b"scale", b"scalp", 1))
    with pytest.raises(CaseError, match=r"events\.jsonl:\d+: isn't what sleuth wrote"):
        export(case, name)


def test_the_transcript_is_the_log_and_folds_to_the_same_case(case: CaseFolder, tmp_path: Path) -> None:
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(export(case, "jsonl"))
    assert copy.read_bytes() == case.events.read_bytes()
    assert fold(read_log(copy)) == fold(read_log(case.events))


def test_the_transcript_leaves_a_torn_line_out(case: CaseFolder) -> None:
    whole = case.events.read_bytes()
    case.events.write_bytes(whole + b'{"n":99,"at":')
    assert export(case, "jsonl") == whole


def test_the_json_holds_every_event_and_folds_to_the_same_case(case: CaseFolder) -> None:
    document = json.loads(export(case, "json"))
    assert document["format"] == "sleuth.case/1"
    records = list(read_log(case.events))
    assert [ADAPTER.validate_python(e["event"]) for e in document["events"]] == [r.event for r in records]
    assert [e["n"] for e in document["events"]] == list(range(1, len(records) + 1))
    assert document["case"]["verdicts"][0]["verdict"] == "inconclusive"
    assert document["case"]["closed"]["exit_code"] == 4
    assert document["artefacts"] == {"e" * 64: 12}


# --- Markdown from an untrusted source


def test_no_markup_of_the_source_survives(case: CaseFolder) -> None:
    text = export(case, "md").decode()
    outside = re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert "<script>" not in outside
    assert "<b>" not in outside.replace("\\<b\\>", "")
    assert "](http" not in outside
    assert not re.search(r"(?<!\\)://", outside.replace("https\\://", ""))
    assert not re.search(r"\w@", outside)
    assert outside.count("\n# ") == 0
    assert all(char.isprintable() or char in "\n\t" for char in text)


def test_every_row_of_the_table_has_its_four_cells(case: CaseFolder) -> None:
    text = export(case, "md").decode()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words", "plain words"),
        ("a_b*c*", r"a\_b\*c\*"),
        ("`x`", r"\`x\`"),
        ("[l](u)", r"\[l\](u)"),
        ("![i](u)", r"\!\[i\](u)"),
        ("<b>&amp;", r"\<b\>\&amp;"),
        ("a|b", r"a\|b"),
        ("~~x~~ $y$", r"\~\~x\~\~ \$y\$"),
        ("# h", r"\# h"),
        ("- item", r"\- item"),
        ("+ item", r"\+ item"),
        ("12. item", r"12\. item"),
        ("1) item", r"1\) item"),
        ("=== x", r"\=== x"),
        ("0.1.0", "0.1.0"),
        ("-x", "-x"),
        ("a\n\n# b", r"a \# b"),
        ("see http://x.y and www.x.y or a@b.c", r"see http\://x.y and www\.x.y or a\@b.c"),
        ("back\\slash", r"back\\slash"),
        ("\x1b[0m", r"\\x1b\[0m"),
    ],
)
def test_prose(text: str, expected: str) -> None:
    assert prose(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", "`x`"),
        ("a_b", "`a_b`"),
        ("a`b", "``a`b``"),
        ("a``b`c", "```a``b`c```"),
        ("`x`", "`` `x` ``"),
        ("a\nb", "`a b`"),
        ("", "`   `"),
    ],
)
def test_code(text: str, expected: str) -> None:
    assert code(text) == expected


def test_cell() -> None:
    assert cell(code("a|b")) == r"`a\|b`"
    assert cell(prose("a|b")) == r"a\|b"


@given(st.lists(st.text(alphabet="`~ \n\ra|", max_size=20), max_size=5))
def test_nothing_ends_a_code_block_early(lines: list[str]) -> None:
    first, *inside, last = fenced(lines)
    assert first == f"{last}text"
    assert not any(re.fullmatch(rf" {{0,3}}{last}`*\s*", line) for line in inside)
    assert not any("\n" in line or "\r" in line for line in inside)


@given(st.text(alphabet="`a |", min_size=1, max_size=20))
def test_a_code_span_is_one_span(text: str) -> None:
    """By CommonMark's rule: it opens with a run of backticks and ends at the next run of just that length."""
    span = code(text)
    opening = re.match("`+", span)
    assert opening is not None
    runs = [run for run in re.finditer("`+", span) if len(run[0]) == len(opening[0])]
    assert [run.span() for run in runs] == [opening.span(), (len(span) - len(opening[0]), len(span))]
