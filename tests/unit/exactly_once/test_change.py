"""What a patch does to the count: the script by itself, on small trees."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from sleuth.tools.factor_change_judge import judge
from sleuth.tools.inside.exactly_once import effort
from sleuth.tools.inside.exactly_once.program import Program
from sleuth.tools.inside.exactly_once.units import changed
from sleuth.tools.inside.fail import InsideError
from sleuth.tools.inside.overlay import Overlay
from sleuth.tools.inside.source import Tree
from sleuth.tools.inside.trace_change import run

from ...support.trees import write

ROUTER = """
import torch


class Router:
    def __init__(self, scale, fused=False):
        self.scale = scale
        self.fused = fused

    def forward(self, logits):
        topk_weights, ids = torch.topk(logits.softmax(-1), 2)
        {body}
        return topk_weights


class Block:
    def __init__(self, config):
        self.router = Router(config.scale, config.fused)
        self.scale = config.scale
        self.fused = config.fused

    def forward(self, x, logits):
        y = x * self.router.forward(logits)
        if not self.fused:
            y = y * self.scale
        return y
"""
PLAIN = ROUTER.format(body="pass")
GUARDED = ROUTER.format(body="topk_weights = topk_weights * self.scale if self.fused else topk_weights")


def compare(folder: Path, before: str, after: str, **more: Any) -> dict[str, Any]:
    root = write(folder / "root", {"m.py": more.pop("now", after)})
    states = {"before": str(write(folder / "b", {"m.py": before})), "after": str(write(folder / "a", {"m.py": after}))}
    return run({"root": str(root), **states, "factor": "scale", "entry": "m.py::Block", "seconds": 30.0, **more})


def kinds(found: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(row["kind"], row["before"], row["after"]) for entry in found["entries"] for row in entry["rows"]}


def test_a_patch_that_only_matters_under_a_flag_is_asked_about_there_alone(tmp_path: Path) -> None:
    found = compare(tmp_path, PLAIN, GUARDED)
    (unit,) = found["units"]
    assert unit["cubes"] == [{"fused": ("true",)}]
    assert unit["contract"] == {"fused": {"true": [1], "false": [0]}}
    assert kinds(found) == {("right", "0", "1")}


def test_a_wrong_world_is_certain_where_no_right_one_is_beside_it(tmp_path: Path) -> None:
    found = compare(tmp_path, GUARDED, PLAIN)
    assert kinds(found) == {("broken", "1", "0")}
    assert found["entries"][0]["certain"]


def test_code_that_does_the_same_is_inert(tmp_path: Path) -> None:
    found = compare(tmp_path, GUARDED, GUARDED.replace("topk_weights * self.scale", "self.scale * topk_weights"))
    assert found["units"][0]["cubes"] == []
    assert kinds(found) == set()


def test_an_effect_on_something_else_isnt_confined(tmp_path: Path) -> None:
    found = compare(tmp_path, PLAIN, ROUTER.format(body="logits.owner.scale = 1.0"))
    assert found["units"][0]["cubes"] is None
    assert "other effects" in found["units"][0]["why"]


def test_a_file_that_changes_again_later_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InsideError, match=r"m\.py: another patch changes this file later"):
        compare(tmp_path, PLAIN, GUARDED, now=GUARDED + "\n# more\n")


def test_a_slow_clock_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compare(tmp_path / "whole", PLAIN, GUARDED)
    hours = itertools.count()
    monkeypatch.setattr(effort.time, "monotonic", lambda: 3600.0 * next(hours))
    assert compare(tmp_path / "slow", PLAIN, GUARDED) == whole


def test_work_is_counted_the_same_in_every_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "RATE", 100)
    once, again = (compare(tmp_path / str(n), PLAIN, GUARDED, seconds=2.0) for n in range(2))
    assert once == again
    assert once["entries"][0]["failed"] == "more time than it was given"


def test_a_machine_that_is_far_too_slow_gives_up(tmp_path: Path) -> None:
    (entry,) = compare(tmp_path, PLAIN, GUARDED, wall=0.0)["entries"]
    assert entry["failed"] == "more time than it was given"


@pytest.mark.parametrize(
    ("old", "new", "functions", "loose"),
    [
        ("def f(x):\n    return x\n", "def f(x):\n    # why\n    return x\n", set(), 0),
        ("def f(x):\n    return x\n", "def f(x):\n    return -x\n", {("m.py", "f")}, 0),
        ("A = 1\n", "A = 2\n", set(), 1),
        ("class C:\n    a = 1\n    def f(self): ...\n", "class C:\n    a = 2\n    def f(self): ...\n", set(), 1),
        ("", "import os\n", set(), 0),
        ("def f(:\n", "def f(x): ...\n", set(), 1),
    ],
    ids=["a remark", "a function", "the top level", "a class's body", "an import", "not Python"],
)
def test_what_a_patch_changed(tmp_path: Path, old: str, new: str, functions: set[tuple[str, str]], loose: int) -> None:
    trees = [Tree(str(write(tmp_path / name, {"m.py": text}))) for name, text in (("b", old), ("a", new))]
    found = changed(*trees, ["m.py"])
    assert (found.functions, len(found.loose)) == (functions, loose)


def row(kind: str, before: int | None, after: int | None) -> dict[str, Any]:
    said = {"before": str(before), "after": str(after), "when": ["always"], "more": False, "sites": []}
    return {"kind": kind, "count_before": before, "count_after": after, **said}


def said_of(
    rows: list[dict[str, Any]], certain: list[str] = (), agrees: bool | None = True, **more: Any
) -> dict[str, Any]:  # type: ignore[assignment]
    contract = {"fused": {"true": [1], "false": [0]}}
    unit = {"name": "C", "path": "m.py", "methods": ["forward"], "cubes": [{}], "contract": contract, "siblings": []}
    entry = {
        "symbol": "B.forward",
        "slice": {},
        "rows": rows,
        "certain": list(certain),
        "blind": more.pop("blind", []),
        "failed": more.pop("failed", ""),
    }
    units = [{**unit, "run": contract, "agrees": agrees}]
    return judge({"changed": ["m.py::C.forward"], "loose": [], "units": units, "runs": [], "entries": [entry], **more})


@pytest.mark.parametrize(
    ("given", "outcome", "confirmed"),
    [
        ({"rows": [row("right", 0, 1)]}, "exact", True),
        ({"rows": [row("right", 0, 1)], "agrees": None}, "exact", False),
        ({"rows": [row("right", 0, 1)], "agrees": False}, "disagreement", False),
        ({"rows": [row("right", 0, 1), row("unknown", 0, None)]}, "undecided", True),
        ({"rows": [row("broken", 1, 2)], "certain": ["always"]}, "broken", True),
        ({"rows": [row("broken", 1, 2)]}, "undecided", True),
        ({"rows": [row("right", 0, 1)], "failed": "more time than it was given"}, "undecided", True),
        ({"rows": [row("right", 0, 1)], "loose": ["the top level of m.py differs"]}, "undecided", True),
        ({"rows": [row("right", 0, 1)], "blind": ["m.py:3 out of sight"]}, "undecided", True),
        ({"rows": []}, "not reached", True),
    ],
    ids=str,
)
def test_what_may_be_said(given: dict[str, Any], outcome: str, confirmed: bool) -> None:
    found = said_of(**given)
    assert (found["outcome"], found["confirmed"]) == (outcome, confirmed)


def test_a_call_that_leaves_out_an_argument_ends_its_world(tmp_path: Path) -> None:
    missing = GUARDED.replace("def forward(self, logits):", "def forward(self, logits, ids):", 1)
    assert {kind for kind, _, _ in kinds(compare(tmp_path, GUARDED, missing))} == {"refused"}


def test_the_state_before_doesnt_know_what_the_patch_adds(tmp_path: Path) -> None:
    """What is read of all files at once, such as which classes there are, is read of that state."""
    base, added = "class Base: ...\n", "class Base: ...\n\n\nclass New(Base): ...\n"
    root = write(tmp_path / "root", {"m.py": added, "new.py": "A = 1\n", "other.py": "B = 1\n"})
    old = write(tmp_path / "b", {"m.py": base, "gone.py": "C = 1\n"})
    new = write(tmp_path / "a", {"m.py": added, "new.py": "A = 1\n"})
    states = [Program(Overlay(str(root), str(one), str(other))) for one, other in ((old, new), (new, old))]
    before, after = [state.texts for state in states]
    assert (before.sources, after.sources) == (["gone.py", "m.py", "other.py"], ["m.py", "new.py", "other.py"])
    assert (before.classes, after.classes) == ({}, {"Base": [("m.py", "New")]})
    assert before.data("m.py").decode() == base


@pytest.mark.parametrize(
    ("text", "expected"),
    [("class A(B): ...\n", {"B": [("m.py", "A")]}), ("class A: ...\n", {}), ("x = 1\nclass A(B, C): ...\n", None)],
    ids=["the first line", "the first line, no base", "a later line"],
)
def test_which_classes_a_file_has(tmp_path: Path, text: str, expected: dict[str, list[tuple[str, str]]] | None) -> None:
    """Also of a file that begins with one: looking for the next must come to an end."""
    found = Program(Tree(str(write(tmp_path / "root", {"m.py": text})))).texts.classes
    assert found == ({"B": [("m.py", "A")], "C": [("m.py", "A")]} if expected is None else expected)
