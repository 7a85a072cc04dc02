"""Which answers of the tracer are kept."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sleuth.agent import tracing
from sleuth.agent.tracing import TraceFailed, alone, trace_alone
from sleuth.sandbox.errors import UsageError
from sleuth.tools.base import Status
from sleuth.tools.call import ToolResult
from sleuth.tools.exactly_once_cache import TraceCache

from ..support.trees import write

ARGS = {"factor": "scale", "entry": "", "facts": {}, "sinks": "", "seconds": 5.0}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write(tmp_path / "tree", {"a.py": "a\n"})


def answers(monkeypatch: pytest.MonkeyPatch, answer: Callable[[], Mapping[str, Any]]) -> None:
    monkeypatch.setattr(tracing, "_call", lambda *_: dict(answer()))


def kept(cache: TraceCache) -> int:
    return len(list((cache.folder / "answers").iterdir()))


def test_an_answer_is_kept(tree: Path, cache: TraceCache, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, lambda: {"timed_out": False})
    trace_alone(alone(str(tree), []), ARGS, cache)
    assert cache.load(cache.key({"args": ARGS}, [tree])) == {"timed_out": False}


def test_an_answer_for_want_of_time_is_not(tree: Path, cache: TraceCache, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, lambda: {"timed_out": True})
    trace_alone(alone(str(tree), []), ARGS, cache)
    assert kept(cache) == 0


def test_an_answer_about_a_tree_that_changed_meanwhile_is_not(
    tree: Path, cache: TraceCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change() -> dict[str, Any]:
        (tree / "b.py").write_text("b\n")
        return {"timed_out": False}

    answers(monkeypatch, change)
    assert trace_alone(alone(str(tree), []), ARGS, cache) == {"timed_out": False}
    assert kept(cache) == 0


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (Status.ERROR, "nowhere.py: no such file", UsageError),
        (Status.ERROR, "trace_factor: killed by SIGKILL", TraceFailed),
        (Status.ERROR, "trace_factor broke on this tree: ValueError", TraceFailed),
        (Status.ERROR, "exactly_once broke at x.py:1", TraceFailed),
        (Status.TIMEOUT, "stopped", TraceFailed),
    ],
)
def test_whose_fault_it_is(
    tree: Path, monkeypatch: pytest.MonkeyPatch, status: Status, text: str, kind: type[Exception]
) -> None:
    class Call:
        def __enter__(self) -> tuple[ToolResult, None]:
            return ToolResult(status=status, text=text), None

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(tracing, "one_call", lambda *_: Call())
    with pytest.raises(kind, match=text):
        trace_alone(alone(str(tree), []), ARGS, None)
