"""Whatever order sets come in, the answer is the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sleuth.tools.inside.trace_factor import run

from ...support.trees import write

SEEDS = range(6)
ASK = "import json, sys; from sleuth.tools.inside.trace_factor import run; print(json.dumps(run(json.load(sys.stdin))))"
TWO_REASONS = """
import torch
from kernels import first, second, join


class Block:
    def __init__(self, config):
        self.scale = config.scale

    def forward(self, x, logits):
        weights, ids = torch.topk(logits.softmax(-1), 2)
        y = x * weights
        return join(first(y, self.scale), second(y, self.scale), third(y, self.scale))
"""
TWO_TENSORS = TWO_REASONS.replace(
    "join(first(y, self.scale), second(y, self.scale), third(y, self.scale))", "join(y * self.scale, other(y), y)"
)


@pytest.mark.parametrize("text", [TWO_REASONS, TWO_TENSORS], ids=["reasons", "tensors"])
def test_every_hash_seed_gives_the_same_answer(tmp_path: Path, text: str) -> None:
    request = {"root": str(write(tmp_path, {"m.py": text})), "factor": "scale", "entry": "m.py::Block"}
    assert run(request)["tables"][0]["worlds"]
    said = set()
    for seed in SEEDS:
        done = subprocess.run(
            [sys.executable, "-c", ASK],
            input=json.dumps(request),
            env={"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        )
        said.add(done.stdout)
    assert len(said) == 1
