"""Names that share storage, under conditions and between parameters; methods that are looked up by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.exactly_once.test_static import MODEL, counts, table, tables

HELPERS = """

def scale(out, part, f):
    if part is not None:
        part.mul_(f)
    return out
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("z = torch.empty_like(y)\nif self.norm:\n    t = y\nelse:\n    t = z\nt.mul_(f)\nreturn y", (1, 0)),
        ("t = y if self.norm else torch.empty_like(y)\nt.mul_(f)\nreturn y", (1, 0)),
        ("t = y\nif self.norm:\n    t = torch.empty_like(y)\nt.mul_(f)\nreturn y", (0, 1)),
        ("z = y\ny = y.view(-1)\ny.mul_(f)\nreturn z", (1, 1)),
        ("return scale(y, y, f)", (1, 1)),
        ("z = y\nreturn scale(y, z, f)", (1, 1)),
        ("z = None\nif self.norm:\n    z = y\nreturn scale(y, z, f)", (1, 0)),
        ("z = None\nif self.norm:\n    z = y\nscale(y, z, f)\nreturn y", (1, 0)),
        ("self.kept = y\nself.kept.mul_(f)\nreturn y", (1, 1)),
        ("self.kept = y\nself.kept = torch.empty_like(y)\nself.kept.mul_(f)\nreturn y", (0, 0)),
    ],
)
def test_storage_is_shared_when_it_is(tmp_path: Path, body: str, expected: tuple[int, int]) -> None:
    lines = "\n".join(" " * 8 + line for line in f"y = self.experts(x, topk_weights)\n{body}".split("\n"))
    (tmp_path / "model.py").write_text(MODEL.format(body=lines) + HELPERS)
    for value, count in zip(("true", "false"), expected, strict=True):
        (found,) = tables(tmp_path, entry="model.py::Block.forward", facts={"norm_topk_prob": value})
        assert counts(found) == {count}, value


FUSED = """
import torch
from torch import nn
from torch.version import cuda
from enum import Enum

class Kind(Enum):
    NATIVE = "native"
    FAST = "fast"

METHODS = {Kind.NATIVE: "forward_native", Kind.FAST: "forward_fast"}

def is_cuda():
    return torch.version.cuda is not None

def key():
    return "cuda" if is_cuda() else ""

class Op(nn.Module):
    priority = (Kind.FAST, Kind.NATIVE)
    capabilities = {}

    def defined(self, name):
        for klass in type(self).__mro__:
            if klass is Op:
                return None
            if name in klass.__dict__:
                return getattr(self, name)
        return None

    def candidates(self):
        found = []
        for kind in self.priority:
            if kind in self.capabilities and self.defined(METHODS[kind]) is not None:
                found.append(kind)
        return tuple(found)

    def forward(self, *args):
        for kind in self.candidates():
            return getattr(self, METHODS[kind])(*args)
        method = self.defined("forward_" + key())
        return (method or self.forward_native)(*args)

class Scale(Op):
    def __init__(self, routed_scaling_factor):
        self.routed_scaling_factor = routed_scaling_factor

    def forward_native(self, y):
        return y

    def forward_cuda(self, y):
        return y * self.routed_scaling_factor

class Block(nn.Module):
    def __init__(self, config):
        self.scale = Scale(config.routed_scaling_factor)

    def forward(self, x):
        topk_weights, topk_ids = torch.topk(x, 2)
        return self.scale(x * topk_weights)
"""


@pytest.mark.parametrize(("platform", "count"), [("cuda", 1), ("hip", 0)])
def test_a_method_that_is_looked_up_in_the_classes_is_found(tmp_path: Path, platform: str, count: int) -> None:
    (tmp_path / "model.py").write_text(FUSED)
    (found,) = tables(tmp_path, entry="model.py::Block.forward", facts={"platform": platform})
    assert counts(found) == {count}


def test_a_method_whose_name_is_computed_makes_the_result_unknown(tmp_path: Path) -> None:
    body = "y = self.experts(x, topk_weights)\nreturn y + getattr(self, 'forward_' + x.kind)(y)"
    (world,) = table(tmp_path, body)["worlds"]
    assert world["count"] is None
    assert "it can't be seen which method" in world["unknown"]


def test_a_flag_that_only_other_classes_have_is_absent(tmp_path: Path) -> None:
    test = "if getattr(self.experts, 'scales_itself', False):\n    return y"
    body = f"y = self.experts(x, topk_weights)\n{test}\nreturn y * f"
    lines = "\n".join(" " * 8 + line for line in body.split("\n"))
    other = "\nclass Other(Experts):\n    scales_itself = True\n"
    (tmp_path / "model.py").write_text(MODEL.format(body=lines) + other)
    (found,) = tables(tmp_path, entry="model.py::Block.forward")
    assert counts(found) == {1}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("found = []\nif found:\n    y = y * f\nreturn y", {0}),
        ("found = []\nfor s in found:\n    y = y * f\nreturn y", {0}),
        ("self.hooks = []\nif self.hooks:\n    y = y * f\nreturn y", {0, 1}),
        ("found = []\nx.fill(found)\nif found:\n    y = y * f\nreturn y", {0, 1}),
        ("found = []\nfound.append(x)\nif found:\n    y = y * f\nreturn y", {0, 1}),
    ],
)
def test_a_list_is_empty_only_where_nobody_fills_it(tmp_path: Path, body: str, expected: set[int]) -> None:
    assert counts(table(tmp_path, f"y = self.experts(x, topk_weights)\n{body}")) == expected
