"""The static instrument on the real source of sglang 0.5.12: configurations whose counts were read by hand."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sleuth.sandbox.wheel import fetch_source
from sleuth.tools.inside.trace_factor import run

FACTOR = "routed_scaling_factor"
BLOCK = "sglang/srt/models/deepseek_v2.py::DeepseekV2MoE."
HASH_TOPK = "sglang/srt/layers/moe/hash_topk.py"
ASSERTION = '        assert not apply_routed_scaling_factor_on_output, "not implemented"\n'
STORED = "        self.apply_on_output = apply_routed_scaling_factor_on_output\n"
CAST = "            topk_weights = topk_weights.to(torch.float32)\n"
GUARDED = (
    CAST + "        if self.apply_on_output:\n            topk_weights = topk_weights * self.routed_scaling_factor\n"
)
ALWAYS = CAST + "        topk_weights = topk_weights * self.routed_scaling_factor\n"
BASE = {
    "platform": "cuda",
    "is_in_piecewise_cuda_graph": "false",
    "_in_piecewise_cuda_graph": "false",
    "norm_topk_prob": "true",
}
LOCAL = {**BASE, "moe_a2a_backend": "none"}

Trace = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source that tests may edit and put back."""
    root = tmp_path_factory.mktemp("sglang")
    shutil.copytree(fetch_source("sglang==0.5.12") / "sglang", root / "sglang")
    return root


def trace(root: Path, method: str, facts: dict[str, str]) -> dict[str, Any]:
    reply = run({"root": str(root), "factor": FACTOR, "entry": BLOCK + method, "facts": facts, "seconds": 120.0})
    found: dict[str, Any] = reply["tables"][0]
    return found


def counts(table: dict[str, Any]) -> set[int]:
    """The known counts."""
    return {w["count"] for w in table["worlds"] if not w["raises"] and w["count"] is not None}


def places(table: dict[str, Any], count: int) -> set[str]:
    """`file:line` of the sites that make a count."""
    rows = [w for w in table["worlds"] if w["count"] == count]
    sites = [table["sites"][index] for w in rows for index in w["sites"]]
    return {f"{s['path'].rsplit('/', 1)[-1]}:{s['line']}" for s in sites}


def test_triton_scales_in_the_runner(tree: Path) -> None:
    found = trace(tree, "forward_normal", {**LOCAL, "quant_method": "Fp8MoEMethod", "moe_runner_backend": "triton"})
    assert counts(found) == {1}
    assert "fused_moe.py:738" in places(found, 1)


def test_deep_gemm_scales_after_the_permutation(tree: Path) -> None:
    found = trace(tree, "forward_normal", {**LOCAL, "quant_method": "Fp8MoEMethod", "moe_runner_backend": "deep_gemm"})
    assert counts(found) == {1}
    assert places(found, 1) == {"deep_gemm.py:650"}


def test_marlin_scales_in_its_sum(tree: Path) -> None:
    facts = {**LOCAL, "quant_method": "CompressedTensorsFusedMoEMethod", "scheme": "CompressedTensorsWNA16MoE"}
    found = trace(tree, "forward_normal", {**facts, "moe_runner_backend": "auto"})
    assert "fused_marlin_moe.py:264" in places(found, 1)


def test_a_helper_scales_for_one_quantisation(tree: Path) -> None:
    """The router's weights go into packed integers by a GPU kernel, and are followed through it."""
    facts = {**LOCAL, "quant_method": "Mxfp4FlashinferTrtllmMoEMethod", "moe_runner_backend": "flashinfer_mxfp4"}
    found = trace(tree, "forward_normal", facts)
    assert counts(found) == {1}
    assert places(found, 1) == {"mxfp4_flashinfer_trtllm_moe.py:465", "mxfp4_flashinfer_trtllm_moe.py:466"}


def test_the_overlapped_epilogue_has_no_guard(tree: Path) -> None:
    """A defect of the stock release: nothing keeps `op_output` from scaling what the router has scaled."""
    facts = {**BASE, "moe_a2a_backend": "deepep", "moe_runner_backend": "flashinfer_cutedsl"}
    found = trace(tree, "op_output", {**facts, "quant_method": "ModelOptNvFp4FusedMoEMethod"})
    assert 2 in counts(found)
    assert places(found, 2) >= {"deepseek_v2.py:1298", "deepseek_v2.py:1304"}


def test_the_overlapped_epilogue_is_right_where_the_router_leaves_it_alone(tree: Path) -> None:
    facts = {**BASE, "moe_a2a_backend": "deepep", "moe_runner_backend": "deep_gemm", "quant_method": "Fp8MoEMethod"}
    assert counts(trace(tree, "op_output", facts)) == {1}


def test_experts_on_two_devices_differ(tree: Path) -> None:
    """The wrapper's GPU experts are scaled by the runner and again by the model, its CPU experts by the model alone."""
    facts = {**LOCAL, "quant_method": "KTEPWrapperMethod", "gpu_method": "Fp8MoEMethod", "moe_runner_backend": "triton"}
    found = trace(tree, "forward_normal", facts)
    assert counts(found) == {2}
    assert {tuple(world["parts"]) for world in found["worlds"] if world["parts"]} == {(1, 2)}


@pytest.mark.parametrize(
    ("cast", "runner", "expected"),
    [
        (GUARDED, "cutlass", 1),
        (CAST, "cutlass", 0),
        (ALWAYS, "cutlass", 1),
        (GUARDED, "triton", 1),
        (ALWAYS, "triton", 2),
    ],
    ids=["guarded", "assertion-deleted", "unconditional", "guarded-flag-off", "unconditional-flag-off"],
)
def test_patches_of_the_hash_router(tree: Path, cast: str, runner: str, expected: int) -> None:
    file = tree / HASH_TOPK
    stock = file.read_text()
    try:
        file.write_text(stock.replace(ASSERTION, STORED).replace(CAST, cast))
        facts = {**LOCAL, "quant_method": "Fp8MoEMethod", "moe_runner_backend": runner, "is_deepseek_v4": "true"}
        hashed = {**facts, "is_nextn": "false", "layer_id < config.num_hash_layers": "true"}
        found = trace(tree, "forward_normal", hashed)
    finally:
        file.write_text(stock)
    assert counts(found) == {expected}


def test_stock_refuses_the_flag(tree: Path) -> None:
    facts = {**LOCAL, "quant_method": "Fp8MoEMethod", "moe_runner_backend": "cutlass"}
    raised = [world["raises"] for world in trace(tree, "forward_normal", facts)["worlds"] if world["raises"]]
    assert any("hash_topk.py:45 AssertionError" in text for text in raised)
    assert any("topk.py:1414 AssertionError" in text for text in raised)
