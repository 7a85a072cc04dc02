"""power_count through the sandbox, as a case calls it."""

from __future__ import annotations

import json
from pathlib import Path

from ..support.powering import moe
from ..support.trees import Bench, write


def test_a_count_through_the_sandbox(tmp_path: Path) -> None:
    source = moe("if self.config.twice:\n    x = x * self.factor\nreturn x * self.factor")
    bench = Bench(write(tmp_path / "tree", {"moe.py": source}), tmp_path / "bench")
    result = bench.call("power_count", factor="factor", entry="moe.py:Moe.forward")
    data = json.loads(bench.kept[result.data].read_bytes())
    assert {world["count"] for world in data["worlds"]} == {1, 2}
    assert "2 ×, when config.twice is true" in result.text


def test_code_that_only_raises_is_an_answer(tmp_path: Path) -> None:
    source = "def run(x, factor):\n    raise ValueError('no')\n"
    bench = Bench(write(tmp_path / "tree", {"moe.py": source}), tmp_path / "bench")
    result = bench.call("power_count", factor="factor", entry="moe.py:run")
    assert result.status == "ok"
    assert "moe.py:2 ValueError: no" in result.text
