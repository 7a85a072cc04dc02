"""The event log: chained, torn only at its end, one writer, redacted before it is written."""

import errno
import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sleuth.agent import log as log_module
from sleuth.agent.events import CaseResumed, Trouble
from sleuth.agent.log import FIRST, EventLog, Record, read_log, sealed
from sleuth.agent.store import CaseError

from ..support.events import opened


def trouble(text: str) -> Trouble:
    return Trouble(what="budget", text=text)


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """A log of three events."""
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    for event in (opened(), CaseResumed(), trouble("t")):
        log.append(event)
    log.close()
    return path


def test_what_was_written_is_read_back(three: Path) -> None:
    records = list(read_log(three))
    assert [r.number for r in records] == [1, 2, 3]
    assert [r.event for r in records] == [opened(), CaseResumed(), trouble("t")]


def test_a_line_gives_the_digest_of_the_one_before_and_its_own(three: Path) -> None:
    lines = [json.loads(line) for line in three.read_bytes().splitlines()]
    assert [sorted(line) for line in lines] == [["at", "event", "n", "prev", "sha256"]] * 3
    assert [line["prev"] for line in lines] == [FIRST, lines[0]["sha256"], lines[1]["sha256"]]


def test_an_event_is_on_disk_before_anyone_hears_of_it(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    heard: list[tuple[Record, int]] = []
    log = EventLog(path, lambda record: heard.append((record, len(path.read_bytes().splitlines()))))
    log.append(trouble("a"))
    log.append(trouble("b"))
    log.close()
    assert [(record.number, lines) for record, lines in heard] == [(1, 1), (2, 2)]


def test_a_log_is_carried_on(three: Path) -> None:
    log = EventLog(three)
    assert [r.number for r in log.records] == [1, 2, 3]
    assert log.append(trouble("u")).number == 4
    log.close()
    assert [r.number for r in read_log(three)] == [1, 2, 3, 4]


def test_a_last_line_torn_at_any_byte_is_dropped(three: Path) -> None:
    whole = three.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for end in range(last, len(whole)):
        three.write_bytes(whole[:end])
        assert [r.number for r in read_log(three)] == [1, 2], end
        log = EventLog(three)
        assert three.read_bytes() == whole[:last], end
        log.append(trouble("again"))
        log.close()
        assert [r.number for r in read_log(three)] == [1, 2, 3], end


def test_a_log_torn_in_its_first_line_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"n":1,')
    assert list(read_log(path)) == []
    log = EventLog(path)
    assert (log.records, path.read_bytes()) == ([], b"")
    log.close()


def test_a_torn_line_longer_than_one_read_is_dropped(three: Path) -> None:
    whole = three.read_bytes()
    three.write_bytes(whole + b"x" * (1 << 18))
    EventLog(three).close()
    assert three.read_bytes() == whole


def test_a_change_of_any_byte_is_named(three: Path) -> None:
    """But for the very last byte, whose loss can't be told from a crash: that drops the line."""
    whole = three.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        three.write_bytes(changed)
        line = whole[:place].count(b"\n") + 1
        if place == len(whole) - 1:
            assert [r.number for r in read_log(three)] == [1, 2]
            continue
        with pytest.raises(CaseError) as error:
            list(read_log(three))
        said = str(error.value)
        assert said.startswith(f"{three}:{line}: "), (place, said)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda lines: [lines[0], lines[2]], 2),
        (lambda lines: [lines[1], lines[0], lines[2]], 1),
        (lambda lines: [lines[0], lines[0], lines[1], lines[2]], 2),
        (lambda lines: lines[1:], 1),
        (lambda lines: [lines[0], b"\n", *lines[1:]], 2),
        (lambda lines: [lines[0], b"{}\n", *lines[1:]], 2),
        (lambda lines: [lines[0], b"\xff" * 200 + b"\n", *lines[1:]], 2),
    ],
)
def test_lines_removed_moved_or_added_are_named(
    three: Path, change: Callable[[list[bytes]], list[bytes]], line: int
) -> None:
    three.write_bytes(b"".join(change(three.read_bytes().splitlines(keepends=True))))
    with pytest.raises(CaseError) as error:
        list(read_log(three))
    assert str(error.value).startswith(f"{three}:{line}: ")
    with pytest.raises(CaseError):
        EventLog(three)


def test_a_sealed_line_that_is_no_event_is_named(three: Path) -> None:
    line, _ = sealed({"n": 1, "at": 0.0, "prev": FIRST, "event": {"kind": "of another version"}})
    three.write_bytes(line)
    with pytest.raises(CaseError, match=r":1: not an event of this version of sleuth"):
        list(read_log(three))


def test_only_one_process_may_hold_a_log(three: Path) -> None:
    log = EventLog(three)
    with pytest.raises(CaseError, match="another sleuth is working on this case"):
        EventLog(three)
    log.append(trouble("still the owner"))
    log.close()
    EventLog(three).close()


def test_a_log_that_can_not_be_read_is_let_go_of(three: Path) -> None:
    whole = three.read_bytes()
    three.write_bytes(whole.replace(b'"t"', b'"u"'))
    with pytest.raises(CaseError):
        EventLog(three)
    with three.open("rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


# --- Writes that don't come to their end


def test_a_full_disk_leaves_a_log_that_can_be_carried_on(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, write = three.read_bytes(), os.write
    log = EventLog(three)

    def half(file: int, data: bytes) -> int:
        if len(data) < 100:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[: len(data) // 2])

    monkeypatch.setattr(log_module.os, "write", half)
    with pytest.raises(OSError, match="No space left"):
        log.append(trouble("x" * 300))
    assert len(three.read_bytes()) > len(whole)
    monkeypatch.undo()
    assert log.append(trouble("after")).number == 4
    log.close()
    assert [r.event for r in read_log(three)][3:] == [trouble("after")]


def test_a_short_write_is_finished(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(log_module.os, "write", lambda file, data: write(file, data[:7]))
    log = EventLog(three)
    log.append(trouble("in sevens"))
    log.close()
    assert [r.number for r in read_log(three)] == [1, 2, 3, 4]


def test_an_interruption_right_after_the_write_keeps_the_chain(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = EventLog(three)
    write = os.write

    def interrupted(file: int, data: bytes) -> int:
        write(file, data)
        raise KeyboardInterrupt

    monkeypatch.setattr(log_module.os, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        log.append(trouble("written"))
    monkeypatch.undo()
    assert log.append(trouble("next")).number == 5
    log.close()
    assert [r.event for r in read_log(three)][3:] == [trouble("written"), trouble("next")]


# --- What is written


SECRETS = [
    "sk-abcdefghijklmnop1234",
    "hf_abcdefghijklmnopqrstuv",
    "ghp_abcdefghijklmnopqrstuv",
    "AKIAABCDEFGHIJKLMNOP",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_never_reaches_the_disk_or_a_listener(tmp_path: Path, secret: str) -> None:
    heard: list[Record] = []
    log = EventLog(tmp_path / "events.jsonl", heard.append)
    written = log.append(opened(params={"a": [f"x {secret} y"], "b": {"c": secret}}, symptom=f"with {secret}"))
    log.close()
    assert written.event == opened(
        params={"a": ["x <redacted> y"], "b": {"c": "<redacted>"}}, symptom="with <redacted>"
    )
    assert heard == [written]
    assert secret.encode() not in (tmp_path / "events.jsonl").read_bytes()


def test_any_text_survives(tmp_path: Path) -> None:
    text = "".join(map(chr, range(0x20))) + '\x7f\u2028\udcff\ud800-\U0001f600"\\'
    log = EventLog(tmp_path / "events.jsonl")
    log.append(trouble(text))
    log.close()
    assert len((tmp_path / "events.jsonl").read_bytes().splitlines()) == 1
    (record,) = read_log(tmp_path / "events.jsonl")
    assert record.event == trouble(text)
