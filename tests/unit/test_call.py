"""The one place that calls a tool: whatever the tool does becomes a result, redacted and clipped, all of it kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from sleuth.sandbox.base import Command
from sleuth.sandbox.errors import ConfigError, SandboxDied
from sleuth.tools.base import Outcome, Status, Tool, ToolArgs, ToolContext, ToolData, ToolError, ToolTimeout
from sleuth.tools.call import TEXT_LIMIT, ToolResult, check_args, clip, printable
from sleuth.tools.registry import TOOLS, UnknownTool, get_tool

from ..support.trees import Bench, write

SECRET = "hf_" + "A" * 34


class Args(ToolArgs):
    do: str = "ok"
    number: int = Field(default=1, ge=1)
    words: list[str] = Field(default=[])


class Data(ToolData):
    said: str


class Probe(Tool[Args, Data]):
    """Does what it is told."""

    name = "probe"
    Args = Args
    Data = Data

    def run(self, args: Args, context: ToolContext) -> Outcome[Data]:
        """See `Tool.run`."""
        if args.do in ERRORS:
            raise ERRORS[args.do]
        done = context.sandbox.exec(Command(["printf", "%s", args.do]))
        text = {"long": f"{SECRET}\n" + "x" * 20_000 + "the end", "control": "a\x1b[31mb\x00c\td\u202e\re"}.get(
            args.do, args.do
        )
        return Outcome(
            Status.NO_DATA if args.do == "empty" else Status.OK,
            Data(said=f"{args.do} {SECRET}"),
            text,
            [("printf", "%s", SECRET)],
            [done.stdout] if args.do.startswith("raw") else [],
            "half is left out" if args.do == "long" else "",
        )


ERRORS: dict[str, Exception] = {
    "error": ToolError(f"no {SECRET} here"),
    "slow": ToolTimeout("stopped at the time limit"),
    "config": ConfigError("sleuth.yaml:3: bad"),
    "broken": ZeroDivisionError(f"division by {SECRET}"),
    "deep": RecursionError("too deep"),
    "full": MemoryError(),
    "dead": SandboxDied("gone"),
    "long error": ToolError("x" * 50_000),
    "control error": ToolError("a\x1b]0;title\x07b\nc"),
}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(write(tmp_path / "tree", {"a": "1\n"}), tmp_path / "bench")


def call(bench: Bench, **args: Any) -> ToolResult:
    return bench.caller.call(Probe(), args)


def test_a_result_has_everything_and_no_secret(bench: Bench) -> None:
    result = call(bench, do="fine")
    assert (result.status, result.text, result.truncated) == ("ok", "fine", "")
    assert result.commands == [["printf", "%s", "<redacted>"]]
    assert 0 < result.seconds < 5
    [kept] = result.artefacts
    assert (kept.name, kept.digest) == ("data.json", result.data)
    assert json.loads(bench.kept[kept.digest].read_bytes()) == {"said": "fine <redacted>"}


def test_a_long_text_is_kept_whole(bench: Bench) -> None:
    result = call(bench, do="long")
    [data, text] = result.artefacts
    whole = bench.kept[text.digest].read_text()
    assert (data.name, text.name, text.size, len(whole)) == ("data.json", "text.txt", len(whole), 11 + 20_000 + 7)
    assert whole.startswith("<redacted>\nxxx")
    assert result.text == f"{whole[:4000]}\n… {len(whole) - 6000:,} characters left out …\n{whole[-2000:]}"
    assert result.truncated == f"half is left out; text shortened; whole in {text.digest[:12]}"


def test_raw_output_is_kept_redacted(bench: Bench) -> None:
    result = call(bench, do=f"raw {SECRET}")
    assert [a.name for a in result.artefacts] == ["data.json", "raw-0"]
    assert bench.kept[result.artefacts[1].digest].read_text() == "raw <redacted>"


def test_nothing_reaches_a_terminal_as_a_command(bench: Bench) -> None:
    assert call(bench, do="control").text == r"a\x1b[31mb\x00c" + "\t" + r"d\xe2\x80\xae\x0de"
    assert call(bench, do="control error").text == r"a\x1b]0;title\x07b" + "\nc"


@pytest.mark.parametrize(
    ("do", "status", "text"),
    [
        ("error", "error", "no <redacted> here"),
        ("slow", "timeout", "stopped at the time limit"),
        ("config", "error", "sleuth.yaml:3: bad"),
        ("broken", "error", "probe broke at test_call.py:"),
        ("deep", "error", "probe broke at test_call.py:"),
        ("full", "error", "probe broke at test_call.py:"),
        ("empty", "no_data", "empty"),
    ],
)
def test_every_failure_is_a_result(bench: Bench, do: str, status: str, text: str) -> None:
    result = call(bench, do=do)
    assert (result.status, result.text.startswith(text), SECRET in result.text) == (status, True, False)
    assert len(call(bench, do="long error").text) < TEXT_LIMIT + 100


def test_a_dead_sandbox_is_no_result(bench: Bench) -> None:
    with pytest.raises(SandboxDied, match="gone"):
        call(bench, do="dead")


def test_nothing_is_left_of_a_call(bench: Bench) -> None:
    for do in ("fine", "raw x", "error", "broken"):
        call(bench, do=do)
    assert list(bench.place.glob("call-*")) == []


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"dos": "x"}, "probe: dos: unknown argument; did you mean 'do'?"),
        ({"number": 0}, "probe: number: Input should be greater than or equal to 1 (got 0)"),
        (
            {"number": "x" * 900},
            f"probe: number: Input should be a valid integer, unable to parse string as an integer (got '{'x' * 199})",
        ),
        ({"words": ["a", 1]}, "probe: words.1: Input should be a valid string (got 1)"),
        (
            {"do": None, "number": -1},
            "probe: do: Input should be a valid string (got None); number: Input should be greater",
        ),
        ({"words": ["\ud83d"]}, "'\\ud83d' holds half a character, '\\ud83d'"),
        ({"\ud83d": 1}, "'\\ud83d' holds half a character, '\\ud83d'"),
    ],
)
def test_bad_arguments_name_the_argument_and_the_value(bench: Bench, args: dict[str, Any], said: str) -> None:
    result = call(bench, **args)
    assert (result.status, result.text[: len(said)], result.artefacts) == ("error", said, [])


def test_bytes_of_a_name_become_what_is_shown() -> None:
    args = check_args(Probe(), {"words": ["a\udcff", "🦥"], "do": r"\xff"})
    assert args == Args(words=[r"a\xff", "🦥"], do=r"\xff")


@pytest.mark.parametrize(
    ("length", "shown"), [(0, ""), (9, "x" * 9), (10, "xxxxxx\n… 1 characters left out …\nxxx"), (5000, None)]
)
def test_clip(length: int, shown: str | None) -> None:
    clipped = clip("x" * length, 9)
    assert clipped == (shown if shown is not None else "xxxxxx\n… 4,991 characters left out …\nxxx")


def test_printable_leaves_text_alone() -> None:
    text = "def f():\n\treturn 'ünï 🦥 \\x1b'\n"
    assert printable(text) == text


def test_an_unknown_tool() -> None:
    with pytest.raises(UnknownTool) as error:
        get_tool("grpe")
    assert str(error.value) == "unknown tool 'grpe'; did you mean 'grep'?"
    assert [get_tool(name).name for name in TOOLS] == list(TOOLS)
