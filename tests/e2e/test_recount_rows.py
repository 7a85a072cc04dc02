"""Reductions and scales on the real source of sglang 0.5.12: counts that were read by hand, and patches of it."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest
import yaml

from sleuth.agent.case import CaseFile
from sleuth.agent.session import Options, start
from sleuth.playbooks import loader
from sleuth.sandbox.wheel import fetch_source
from sleuth.tools.inside.recount import run

from ..support.investigation import case_in, held, lay

STOCK = "sglang==0.5.12"
DEEPSEEK = "sglang/srt/models/deepseek_v2.py"
LLAMA = "sglang/srt/models/llama.py"
MLA = "sglang/srt/layers/attention/trtllm_mla_backend.py"
SKIPS = "skip_all_reduce=should_allreduce_fusion or use_reduce_scatter"
ATTENTION = "        attn_output = self.attn(q, k, v, forward_batch)"
GUARD = "        if self.data_type == torch.float8_e4m3fn:\n            k_scale = ("


@pytest.fixture(scope="module")
def tree() -> Path:
    """The stock source; fetched once."""
    return fetch_source(STOCK)


def judged(folder: Path, tree: Path, playbook: str, file: str, old: str, new: str) -> CaseFile:
    """The case of a patch that replaces one piece of a file."""
    text = (tree / file).read_text()
    assert old in text
    lines = difflib.unified_diff(
        text.splitlines(True), text.replace(old, new, 1).splitlines(True), f"a/{file}", f"b/{file}"
    )
    lay(folder, {"p.patch": "".join(lines)})
    (folder / "sleuth.yaml").write_text(yaml.safe_dump({"name": "x", "stock": f"pypi:{STOCK}", "patches": ["p.patch"]}))
    case = case_in(start(folder / "home", folder / "sleuth.yaml", loader.find(playbook), {}, {}, Options()))
    assert case.closed
    assert case.troubles == []
    return case


def supports(case: CaseFile) -> dict[str, str]:
    """What speaks against the patch, by hypothesis."""
    return {e.hypothesis.partition("@")[0]: e.note for e in case.evidence if e.bearing == "supports"}


def rows(tree: Path, counted: str, entry: str, **more: Any) -> list[dict[str, Any]]:
    """The rows of one entry's table."""
    reply = run({"root": str(tree), "counted": counted, "entries": [entry], "seconds": 100.0, **more})
    found: list[dict[str, Any]] = reply["tables"][0]["after"]
    return found


def test_a_dense_block_is_summed_by_its_last_layer_where_nobody_else_does(tree: Path) -> None:
    found = rows(tree, "reductions", f"{DEEPSEEK}::DeepseekV2MLP.forward", facts={"platform": "cuda"})
    assert {row["count"] for row in found} == {0, 1}
    (once,) = [row for row in found if row["count"] == 1]
    assert [site.partition(":")[0] for site in once["sites"]] == ["sglang/srt/layers/linear.py"]
    assert all("not should_allreduce_fusion and not use_reduce_scatter" in text for text in once["when"])


def test_the_router_block_is_summed_once_where_nothing_is_sent(tree: Path) -> None:
    facts = {"platform": "cuda", "moe_a2a_backend": "none"}
    found = rows(tree, "reductions", "DeepseekV2MoE.forward_normal", facts=facts)
    numbers = {row["count"] for row in found if not row["unknown"]}
    assert numbers == {0, 1}
    assert {site for row in found for site in row["sites"]} == {f"{DEEPSEEK}:918"}


def test_a_dense_block_that_forgets_the_fused_all_reduce(tmp_path: Path, tree: Path) -> None:
    case = judged(tmp_path, tree, "double-reduction", DEEPSEEK, SKIPS, "skip_all_reduce=use_reduce_scatter")
    assert held(case) == {"p": "suspected"}
    assert "should_allreduce_fusion used to leave the sum" in supports(case)["reduced_twice"]


def test_a_model_that_scales_what_its_attention_scales(tmp_path: Path, tree: Path) -> None:
    new = f"        q = q * self.scaling\n{ATTENTION}"
    case = judged(tmp_path, tree, "softmax-scale", LLAMA, ATTENTION, new)
    assert held(case) == {"p": "suspected"}
    assert "scaling 2 times instead of 1" in supports(case)["scale_count"]


def test_a_cache_that_is_not_quantised_is_dequantised(tmp_path: Path, tree: Path) -> None:
    case = judged(
        tmp_path, tree, "softmax-scale", MLA, GUARD, GUARD.replace("self.data_type == torch.float8_e4m3fn", "True")
    )
    assert held(case) == {"p": "suspected"}
    assert "cache's type no longer decides it" in supports(case)["dequantised"]
