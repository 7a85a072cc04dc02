"""`sleuth trace` from the command line: a bare tree, patches, facts, both formats, and what it says of bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MODEL = """\
import torch
from torch import nn

_is_cuda = torch.version.cuda is not None


class Experts(nn.Module):
    def forward(self, x, topk_weights):
        return x * topk_weights


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.routed_scaling_factor = config.routed_scaling_factor
        self.experts = Experts()

    def forward(self, x):
        topk_weights, _ = torch.topk(x, 2)
        y = self.experts(x, topk_weights)
        if _is_cuda:
            y = y * self.routed_scaling_factor
        return y
"""
PATCH = """\
--- a/model.py
+++ b/model.py
@@ -21,3 +21,4 @@
         if _is_cuda:
             y = y * self.routed_scaling_factor
+        y *= self.routed_scaling_factor
         return y
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "model.py").write_text(MODEL)
    return folder


def sleuth(*words: str | Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", "from sleuth.agent.cli.main import run; run()", "trace", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120)


def table(*words: str | Path) -> dict[str, Any]:
    done = sleuth("routed_scaling_factor", *words, "--format", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["tables"][0]
    return found


def told(found: dict[str, Any]) -> dict[str, int]:
    return {text: world["count"] for world in found["worlds"] for text in world["text"]}


def test_text(tree: Path) -> None:
    done = sleuth("routed_scaling_factor", "--tree", tree)
    assert done.returncode == 0
    assert "0 when platform != cuda; 1 otherwise" in done.stdout
    assert "model.py:22 multiply: y * self.routed_scaling_factor" in done.stdout
    assert max(map(len, done.stdout.split("\n"))) <= 100


def test_facts_fix_guards(tree: Path) -> None:
    assert told(table("--tree", tree, "--set", "platform=hip")) == {"always": 0}


def test_a_patch_is_laid_over_the_tree(tree: Path, tmp_path: Path) -> None:
    patch = tmp_path / "twice.patch"
    patch.write_text(PATCH)
    found = table("--tree", tree, "--patch", patch)
    assert told(found) == {"platform = cuda": 2, "platform != cuda": 1}
    assert [(f["kind"], f["count"]) for f in found["findings"]][:1] == [("twice", 2)]
    assert {(f["path"], f["line"]) for f in found["findings"]} >= {("model.py", 22), ("model.py", 23)}
    assert (tree / "model.py").read_text() == MODEL


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no_such"], "no Python file of the tree mentions it"),
        (["routed_scaling_factor", "--entry", "model.py::Blok"], "no 'Blok'"),
        (["routed_scaling_factor", "--set", "platform"], "--set platform: NAME=VALUE expected"),
        (["routed_scaling_factor", "--sinks", "nowhere.toml"], "--sinks nowhere.toml"),
        (["routed_scaling_factor", "--patch", "nowhere.patch"], "nowhere.patch"),
        (["routed_scaling_factor", "--seconds", "0"], "a number of seconds above 0"),
    ],
)
def test_bad_input_is_explained(tree: Path, words: list[str], said: str) -> None:
    done = sleuth(*words, "--tree", tree)
    assert done.returncode in (2, 4)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
