"""The static instrument on small trees with the right counts: what adds a power, what takes one away, what is open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sleuth.tools.inside.fail import InsideError
from sleuth.tools.inside.trace_factor import run

FACTOR = "routed_scaling_factor"

MODEL = """
import torch
from torch import nn

class Experts(nn.Module):
    def forward(self, x, topk_weights):
        return x * topk_weights

class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.routed_scaling_factor = config.routed_scaling_factor
        self.norm = config.norm_topk_prob
        self.experts = Experts()
        self.shared = nn.Linear(1, 1)

    def forward(self, x):
        topk_weights, topk_ids = torch.topk(x, 2)
        f = self.routed_scaling_factor
{body}
"""


def table(root: Path, body: str, **request: Any) -> dict[str, Any]:
    """The table of a block with this body."""
    lines = "\n".join(" " * 8 + line for line in body.strip("\n").split("\n"))
    (root / "model.py").write_text(MODEL.format(body=lines))
    return tables(root, **request)[0]


def tables(root: Path, **request: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run({"root": str(root), "factor": FACTOR, **request})["tables"]
    return found


def counts(found: dict[str, Any]) -> set[int | None]:
    return {world["count"] for world in found["worlds"] if not world["raises"]}


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("return self.experts(x, topk_weights)", 0),
        ("return self.experts(x, topk_weights) * f", 1),
        ("return f * self.experts(x, topk_weights)", 1),
        ("y = self.experts(x, topk_weights)\ny *= f\nreturn y", 1),
        ("y = self.experts(x, topk_weights)\ny.mul_(f)\nreturn y", 1),
        ("return torch.mul(self.experts(x, topk_weights), f)", 1),
        ("y = self.shared(x)\ny.add_(self.experts(x, topk_weights), alpha=f)\nreturn y", 1),
        ("return torch.add(self.shared(x), self.experts(x, topk_weights), alpha=f)", 1),
        ("topk_weights = topk_weights * f\nreturn self.experts(x, topk_weights) * f", 2),
        (
            "topk_weights *= f\ntopk_weights = topk_weights / topk_weights.sum()\nreturn self.experts(x, topk_weights)",
            0,
        ),
        ("return self.experts(x, topk_weights / f) * f", 0),
        ("r = 1.0 / f\nreturn self.experts(x, topk_weights) * f * r", 0),
        ("y = self.experts(x, topk_weights)\nz = y\nz *= f\nreturn y", 1),
        ("y = self.experts(x, topk_weights)\ny.view(-1).mul_(f)\nreturn y", 1),
        ("scale = lambda t: t * f\nreturn scale(scale(self.experts(x, topk_weights)))", 2),
        ("y = self.experts(x, topk_weights)\nfor s in (f, 1.0, f):\n    y = y * s\nreturn y", 2),
        ("if f != 1.0:\n    return self.experts(x, topk_weights) * f\nreturn self.experts(x, topk_weights)", 1),
    ],
)
def test_count(tmp_path: Path, body: str, count: int) -> None:
    assert counts(table(tmp_path, body)) == {count}


def test_a_guard_tells_worlds_apart(tmp_path: Path) -> None:
    found = table(tmp_path, "y = self.experts(x, topk_weights)\nif self.norm:\n    y = y * f\nreturn y")
    told = {world["count"]: world["when"] for world in found["worlds"]}
    assert told == {
        1: [[{"guard": "config.norm_topk_prob", "is": ["true"]}]],
        0: [[{"guard": "config.norm_topk_prob", "is": ["false"]}]],
    }


def test_a_fact_fixes_a_guard(tmp_path: Path) -> None:
    body = "y = self.experts(x, topk_weights)\nif self.norm:\n    y = y * f\nreturn y"
    found = table(tmp_path, body, facts={"norm_topk_prob": "true"})
    assert counts(found) == {1}
    assert found["facts_used"] == ["norm_topk_prob"]


def test_guards_that_make_no_difference_vanish(tmp_path: Path) -> None:
    found = table(
        tmp_path, "y = self.experts(x, topk_weights)\nif x.dtype:\n    y = y * f\nelse:\n    y = f * y\nreturn y"
    )
    assert counts(found) == {1}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("import fast\nreturn fast.scaled_moe(x, topk_weights, f)", "fast.scaled_moe takes the factor"),
        (
            "y = self.experts(x, topk_weights)\nfor layer in x.layers:\n    y = y * f\nreturn y",
            "loop of unknown length",
        ),
        ("return torch.softmax(self.experts(x, topk_weights) * f, -1)", "softmax isn't linear"),
    ],
)
def test_unknown_has_a_reason(tmp_path: Path, body: str, reason: str) -> None:
    worlds = table(tmp_path, body)["worlds"]
    assert [world["count"] for world in worlds] == [None]
    assert reason in worlds[0]["unknown"]


def test_an_assertion_that_speaks_of_the_factor_is_an_outcome(tmp_path: Path) -> None:
    body = (
        f"{FACTOR}_on_output = self.norm\nassert not {FACTOR}_on_output, 'no'\nreturn self.experts(x, topk_weights) * f"
    )
    raising = [world for world in table(tmp_path, body)["worlds"] if world["raises"]]
    source = (tmp_path / "model.py").read_text().split("\n")
    line = next(number for number, text in enumerate(source, 1) if "assert not" in text)
    assert [w["raises"] for w in raising] == [f"model.py:{line} AssertionError: not {FACTOR}_on_output"]


def test_sites_name_place_and_kind(tmp_path: Path) -> None:
    found = table(tmp_path, "y = self.experts(x, topk_weights)\ny *= f\nreturn y")
    assert [(s["path"], s["kind"], s["symbol"]) for s in found["sites"]] == [("model.py", "in-place", "Block.forward")]


def test_user_sinks_win(tmp_path: Path) -> None:
    sinks = """
[[sink]]
name = "scaled_moe"
params = ["x", "w", "scale"]
factor = "scale"
effect = "applies"
linear_in = ["w"]
returns = "routed"
source = "here"
"""
    body = "import fast\nreturn fast.scaled_moe(x, topk_weights, f)"
    assert counts(table(tmp_path, body, sinks=sinks)) == {1}


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"factor": "no_such_factor"}, "no Python file of the tree mentions it"),
        ({"factor": "a b"}, "not an identifier"),
        ({"entry": "model.py::Blok"}, "no 'Blok'"),
        ({"entry": "model.py::Block.forwards"}, "no method 'forwards'"),
        ({"sinks": "[[sink]]\nname = 'a'"}, "needs `name` and `params`"),
        ({"sinks": "[[sink"}, "not TOML"),
    ],
)
def test_bad_requests_are_explained(tmp_path: Path, request_: dict[str, Any], message: str) -> None:
    with pytest.raises(InsideError, match=message.replace("(", r"\(")):
        table(tmp_path, "return x", **request_)


def test_a_function_that_reads_the_environment_can_still_end_the_run(tmp_path: Path) -> None:
    lines = "topk_weights, topk_ids = select(x)\nreturn self.experts(x, topk_weights) * f"
    body = "\n".join(" " * 8 + line for line in lines.split("\n"))
    select = """
import os

def select(x):
    if os.environ.get("FAST", "0") == "1":
        raise NotImplementedError("not supported")
    return torch.topk(x, 2)
"""
    (tmp_path / "model.py").write_text(MODEL.format(body=body) + select)
    (found,) = tables(tmp_path, entry="model.py::Block.forward")
    told = [(w["count"], bool(w["raises"]), w["text"]) for w in found["worlds"]]
    guard = "os.environ.get('FAST', '0') == '1'"
    assert sorted(told, key=str) == [(1, False, ["always"]), (None, True, [guard])], told
    assert [w["when"] for w in found["worlds"] if w["count"] == 1] == [[[{"guard": guard, "is": ["false"]}]]]
