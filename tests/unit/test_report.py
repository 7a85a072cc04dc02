"""The report on a terminal: what it says, and that source text can't steer the terminal."""

from pathlib import Path

import pytest

from sleuth.agent.case import CaseFile, fold
from sleuth.agent.log import read_log
from sleuth.agent.plain import visible
from sleuth.agent.report import WIDTH, report

from ..support import snapshot
from ..support.events import answered, asked, call, case_of, evidence, hypothesis, opened, suspects, weighed
from ..support.golden import golden_case


def test_the_whole_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = golden_case(tmp_path, monkeypatch)
    snapshot.check("report.txt", report(fold(read_log(folder.events))).encode())


def test_nothing_steers_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = report(fold(read_log(golden_case(tmp_path, monkeypatch).events)))
    assert all(char.isprintable() or char in "\n\t" for char in text)
    assert r"\x1b[31mred\x1b[0m, \u202egnikcatta\u202c, bell \x07, torn \udcff, return \x0dhidden" in text


def test_words_are_folded_at_the_width(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = report(fold(read_log(golden_case(tmp_path, monkeypatch).events)))
    free = [line for line in text.splitlines() if not line.lstrip().startswith(("|", "$", "ran:"))]
    assert max(map(len, free)) <= WIDTH


def test_a_case_that_never_began() -> None:
    assert report(CaseFile()).startswith("a case that never began\n")
    assert "open: it can be resumed" in report(CaseFile())


def test_an_open_case_says_so() -> None:
    text = report(case_of([opened(), suspects("s"), hypothesis("s"), asked("q1", call("k1"))]))
    assert "(no result recorded)" in text
    assert "(not weighed)" in text
    assert "none yet" in text
    assert text.endswith("open: it can be resumed\n")


def test_evidence_that_counts_and_evidence_that_does_not_are_told_apart() -> None:
    made = call("k1")
    case = case_of([opened(), suspects("s"), hypothesis("s"), hypothesis("s", "g"), asked("q", made), *answered(made)])
    shared = {"bearing": "neutral", "note": "the same words"}
    refused = evidence("e2", "g@s", assume={"a": "verified"}, counts=False, why_not="no control", **shared)
    case.add(weighed("q", evidence("e1", "h@s", **shared), refused))
    lines = report(case).splitlines()
    first = lines.index("    → NEUTRAL (read; e1 on h) the same words")
    assert lines[first + 1 : first + 3] == [
        "    → NEUTRAL (read; e2 on g) the same words",
        "      the gate doesn't count it: no control",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain – ö 漢", "plain – ö 漢"),
        ("a\nb\tc", "a\nb\tc"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\x00\x7f\x9b", r"\x00\x7f\x9b"),
        ("a\rb\x0bc", r"a\x0db\x0bc"),
        ("\u2028\u200b\ufeff", r"\u2028\u200b\ufeff"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_visible(text: str, expected: str) -> None:
    assert visible(text) == expected
