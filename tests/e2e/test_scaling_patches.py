"""What double-scaling concludes about small patches of an engine that scales in one of several places."""

from pathlib import Path
from textwrap import dedent

import pytest

from sleuth.agent.case import CaseFile

from ..support.investigation import held, work

GUILTY, CLEARED, SUSPECTED, OPEN = "convicted", "exonerated", "suspected", "inconclusive"
ROUTERS, MOE, EXPERTS = "pkg/routers.py", "pkg/moe.py", "pkg/experts.py"
STOCK = {
    ROUTERS: dedent(
        """\
        import torch
        from torch import nn


        class TopK(nn.Module):
            def __init__(self, top_k, routed_scaling_factor=1.0, apply_routed_scaling_factor_on_output=False):
                super().__init__()
                self.top_k = top_k
                self.routed_scaling_factor = routed_scaling_factor
                self.apply_on_output = apply_routed_scaling_factor_on_output

            def forward(self, hidden_states, router_logits):
                topk_weights, ids = torch.topk(router_logits.softmax(dim=-1), self.top_k)
                topk_weights = topk_weights / topk_weights.sum(dim=-1, keepdim=True)
                if self.apply_on_output:
                    topk_weights = topk_weights * self.routed_scaling_factor
                return topk_weights, ids


        class HashTopK(nn.Module):
            def __init__(self, top_k, routed_scaling_factor=1.0, apply_routed_scaling_factor_on_output=False):
                super().__init__()
                self.top_k = top_k
                self.routed_scaling_factor = routed_scaling_factor
                assert not apply_routed_scaling_factor_on_output, "not implemented"

            def forward(self, hidden_states, router_logits):
                ids = torch.arange(self.top_k)
                topk_weights = router_logits.softmax(dim=-1).gather(1, ids)
                topk_weights = topk_weights / topk_weights.sum(dim=-1, keepdim=True)
                return topk_weights, ids
        """
    ),
    EXPERTS: dedent(
        """\
        from torch import nn


        class Fp8Method:
            def apply(self, layer, hidden_states, topk_weights):
                return hidden_states * topk_weights * layer.routed_scaling_factor


        class Fp4Method:
            def apply(self, layer, hidden_states, topk_weights):
                return hidden_states * topk_weights


        class FusedExperts(nn.Module):
            def __init__(self, routed_scaling_factor, is_fp4: bool):
                super().__init__()
                self.routed_scaling_factor = routed_scaling_factor
                self.method = Fp4Method() if is_fp4 else Fp8Method()
                self.should_fuse_routed_scaling_factor_in_topk = isinstance(self.method, Fp4Method)

            def forward(self, hidden_states, topk_weights):
                return self.method.apply(self, hidden_states, topk_weights)
        """
    ),
    MOE: dedent(
        """\
        from torch import nn

        from .experts import FusedExperts
        from .routers import HashTopK, TopK


        class SparseMoe(nn.Module):
            def __init__(self, config, layer_id):
                super().__init__()
                self.gate = nn.Linear(config.hidden_size, config.n_experts)
                self.experts = FusedExperts(config.routed_scaling_factor, config.is_fp4)
                if layer_id < config.num_hash_layers:
                    self.topk = HashTopK(
                        config.top_k,
                        routed_scaling_factor=config.routed_scaling_factor,
                        apply_routed_scaling_factor_on_output=self.experts.should_fuse_routed_scaling_factor_in_topk,
                    )
                else:
                    self.topk = TopK(
                        config.top_k,
                        routed_scaling_factor=config.routed_scaling_factor,
                        apply_routed_scaling_factor_on_output=self.experts.should_fuse_routed_scaling_factor_in_topk,
                    )

            def forward(self, hidden_states):
                topk_weights, ids = self.topk(hidden_states, self.gate(hidden_states))
                return self.experts(hidden_states, topk_weights)
        """
    ),
    "pkg/model.py": "from .moe import SparseMoe\n\n\nclass Model:\n    def __init__(self, config):\n"
    "        self.mlp = SparseMoe(config, 0)\n",
}
ASSERTION = '        assert not apply_routed_scaling_factor_on_output, "not implemented"\n'
STORED = "        self.apply_on_output = apply_routed_scaling_factor_on_output\n"
HASHED = (
    "        topk_weights = router_logits.softmax(dim=-1).gather(1, ids)\n"
    "        topk_weights = topk_weights / topk_weights.sum(dim=-1, keepdim=True)\n"
)
SCALED = "topk_weights = topk_weights * self.routed_scaling_factor\n"
GUARDED = HASHED + "        if self.apply_on_output:\n            " + SCALED
ALWAYS = HASHED + "        " + SCALED
BEFORE_SUM = HASHED.replace("topk_weights = topk_weights /", SCALED + "        topk_weights = topk_weights /")
HELPER = GUARDED.replace(SCALED, "topk_weights = topk_weights.mul(self.routed_scaling_factor)\n")
FUSED = "isinstance(self.method, Fp4Method)"


def patched(*edits: tuple[str, str, str]) -> dict[str, str]:
    """The files that some replacements change; each must be found."""
    changed: dict[str, str] = {}
    for name, old, new in edits:
        text = changed.get(name, STOCK[name])
        assert old in text
        changed[name] = text.replace(old, new, 1)
    return changed


def case_of(folder: Path, *edits: tuple[str, str, str], entry: str = "pkg/model.py") -> CaseFile:
    return work(folder, "double-scaling", STOCK, patched(*edits), entry=entry)


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        pytest.param([(ROUTERS, ASSERTION, STORED), (ROUTERS, HASHED, GUARDED)], CLEARED, id="guarded"),
        pytest.param([(ROUTERS, ASSERTION, STORED), (ROUTERS, HASHED, HELPER)], CLEARED, id="guarded by a method"),
        pytest.param([(ROUTERS, ASSERTION, STORED)], GUILTY, id="the assertion deleted"),
        pytest.param([(ROUTERS, ASSERTION, STORED), (ROUTERS, HASHED, ALWAYS)], GUILTY, id="unconditional"),
        pytest.param([(ROUTERS, HASHED, ALWAYS)], GUILTY, id="unconditional beside the assertion"),
        pytest.param([(ROUTERS, ASSERTION, ""), (ROUTERS, HASHED, BEFORE_SUM)], GUILTY, id="divided out again"),
        pytest.param([(EXPERTS, FUSED, "False")], GUILTY, id="the flag never set"),
        pytest.param([(EXPERTS, FUSED, "True")], GUILTY, id="the flag always set"),
        pytest.param(
            [(EXPERTS, "hidden_states * topk_weights * layer.routed_scaling_factor", "hidden_states * topk_weights")],
            GUILTY,
            id="the runner leaves it out",
        ),
        pytest.param(
            [
                (
                    MOE,
                    "return self.experts(hidden_states, topk_weights)",
                    "return self.experts(hidden_states, topk_weights) * self.experts.routed_scaling_factor",
                )
            ],
            GUILTY,
            id="the model once more",
        ),
        pytest.param(
            [
                (
                    ROUTERS,
                    "    topk_weights = topk_weights * self.routed_scaling_factor",
                    "    topk_weights = self.routed_scaling_factor * topk_weights",
                )
            ],
            CLEARED,
            id="the operands swapped",
        ),
        pytest.param(
            [(ROUTERS, ASSERTION, STORED.replace("= apply", "= not apply")), (ROUTERS, HASHED, GUARDED)],
            GUILTY,
            id="the flag inverted",
        ),
    ],
)
def test_a_patch(tmp_path: Path, edits: list[tuple[str, str, str]], expected: str) -> None:
    case = case_of(tmp_path, *edits)
    assert held(case) == {"p": expected}, case.verdicts


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param("hidden_states.mul_(self.routed_scaling_factor)", id="the input changed in place"),
        pytest.param("router_logits.owner.routed_scaling_factor = 1.0", id="somebody else's factor set"),
        pytest.param("topk_weights = rescaled(topk_weights, self.routed_scaling_factor)", id="an unknown function"),
        pytest.param(
            "if topk_weights.numel() > 64:\n            topk_weights = topk_weights / self.routed_scaling_factor",
            id="undone for many tokens",
        ),
        pytest.param('topk_weights = getattr(self, "sca" + "le")(topk_weights)', id="a computed name"),
    ],
)
def test_what_may_be_wrong_is_never_cleared(tmp_path: Path, extra: str) -> None:
    with_more = GUARDED + f"        {extra}\n"
    case = case_of(tmp_path, (ROUTERS, ASSERTION, STORED), (ROUTERS, HASHED, with_more))
    (verdict,) = held(case).values()
    assert verdict != CLEARED, case.verdicts


def test_a_router_that_a_table_makes_is_still_followed(tmp_path: Path) -> None:
    """Nothing shows that only constructors make it, so no world is left out."""
    table = ("class SparseMoe", "ROUTERS = {'hash': HashTopK, 'plain': TopK}\n\n\nclass SparseMoe")
    stock = {**STOCK, MOE: STOCK[MOE].replace(*table, 1)}
    changed = patched((ROUTERS, ASSERTION, STORED), (ROUTERS, HASHED, ALWAYS))
    case = work(tmp_path, "double-scaling", stock, changed, entry=MOE)
    assert held(case) == {"p": GUILTY}, case.verdicts


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        pytest.param([(ROUTERS, ASSERTION, STORED), (ROUTERS, HASHED, GUARDED)], CLEARED, id="guarded"),
        pytest.param([(ROUTERS, ASSERTION, STORED)], GUILTY, id="the assertion deleted"),
        pytest.param([(ROUTERS, ASSERTION, STORED), (ROUTERS, HASHED, ALWAYS)], OPEN, id="twice isn't never"),
    ],
)
def test_a_factor_that_gets_lost(tmp_path: Path, edits: list[tuple[str, str, str]], expected: str) -> None:
    case = work(tmp_path, "factor-never-applied", STOCK, patched(*edits))
    assert held(case) == {"p": expected}, case.verdicts
