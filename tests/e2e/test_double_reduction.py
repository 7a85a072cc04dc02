"""What double-reduction concludes about small patches of blocks whose output is summed over ranks."""

from pathlib import Path
from textwrap import dedent

import pytest

from sleuth.agent.session import Options, start
from sleuth.playbooks import loader

from ..support.investigation import case_in, lay
from .test_twins_and_dead import CLEARED, OPEN, SUSPECTED, nth, verdict, work

BLOCK, COMM, UTILS = "pkg/block.py", "pkg/comm.py", "pkg/utils.py"
STOCK = {
    COMM: dedent(
        """\
        import torch.distributed as dist


        class Group:
            world_size: int

            def all_reduce(self, x):
                dist.all_reduce(x)
                return x


        _TP: Group = None


        def tensor_model_parallel_all_reduce(x):
            return _TP.all_reduce(x)


        def moe_expert_parallel_all_reduce(x):
            return _TP.all_reduce(x)
        """
    ),
    UTILS: dedent(
        """\
        def leave_out(fused, scattered):
            if fused:
                return True
            return scattered
        """
    ),
    BLOCK: dedent(
        """\
        import torch

        from .comm import moe_expert_parallel_all_reduce, tensor_model_parallel_all_reduce
        from .utils import leave_out


        class RowLinear:
            def __init__(self, weight, reduce_results=True, tp_size=1):
                self.weight = weight
                self.reduce_results = reduce_results
                self.tp_size = tp_size

            def forward(self, x):
                y = torch.matmul(x, self.weight)
                if self.reduce_results and self.tp_size > 1:
                    y = tensor_model_parallel_all_reduce(y)
                return y


        class Mlp:
            def __init__(self, config, tp_size):
                self.up = config.up
                self.down = RowLinear(config.down, reduce_results=True, tp_size=tp_size)

            def forward(self, x):
                y = torch.matmul(x, self.up)
                y = torch.nn.functional.silu(y)
                return self.down(y)


        class Moe:
            def __init__(self, config, tp_size):
                self.tp_size = tp_size
                self.scale = config.scale
                self.experts = config.experts

            def forward(self, hidden_states, should_allreduce_fusion=False, use_reduce_scatter=False):
                weights, ids = torch.topk(self.gate(hidden_states), 8)
                y = self.experts(hidden_states, weights, ids)
                y = y * self.scale
                if self.tp_size > 1 and not leave_out(should_allreduce_fusion, use_reduce_scatter):
                    y = tensor_model_parallel_all_reduce(y)
                return y
        """
    ),
}
REDUCE = "            y = tensor_model_parallel_all_reduce(y)\n"
SKIP = " and not leave_out(should_allreduce_fusion, use_reduce_scatter)"
WHOLE = "        if self.tp_size > 1" + SKIP + ":\n" + REDUCE
BOTH = "        if self.tp_size > 1:\n            y = moe_expert_parallel_all_reduce(y)\n"
CASES = [
    pytest.param(BLOCK, WHOLE, "", 1, SUSPECTED, "never", id="the sum is gone"),
    pytest.param(BLOCK, WHOLE, WHOLE * 2, 1, SUSPECTED, "twice", id="two sums"),
    pytest.param(BLOCK, WHOLE, WHOLE + BOTH, 1, SUSPECTED, "twice", id="another sum over a part of the ranks"),
    pytest.param(BLOCK, SKIP, "", 1, SUSPECTED, "twice", id="whether another layer sums isn't asked"),
    pytest.param(BLOCK, SKIP, " and not use_reduce_scatter", 1, SUSPECTED, "twice", id="one of two flags isn't asked"),
    pytest.param(BLOCK, SKIP, SKIP.replace("not ", ""), 1, SUSPECTED, "twice", id="the flag is turned round"),
    pytest.param(
        BLOCK, "y * self.scale", "tensor_model_parallel_all_reduce(y) * self.scale", 1, SUSPECTED, "twice", id="before"
    ),
    pytest.param(UTILS, "return scattered", "return False", 1, SUSPECTED, "twice", id="the predicate forgets a flag"),
    pytest.param(UTILS, "return scattered", "return True", 1, SUSPECTED, "never", id="the predicate always skips"),
    pytest.param(BLOCK, "reduce_results=True, tp_size=tp_size", "False, tp_size", 1, SUSPECTED, "never", id="dense"),
    pytest.param(
        BLOCK, "return self.down(y)", "return tensor_model_parallel_all_reduce(self.down(y))", 1, SUSPECTED, "twice",
        id="the layer sums already",
    ),
    pytest.param(
        BLOCK, "y = y * self.scale", "y = y * self.scale\n        torch.distributed.all_reduce(y)", 1, SUSPECTED,
                 "twice",
        id="in place",
    ),
    pytest.param(BLOCK, "self.tp_size > 1" + SKIP, "self.tp_size > 1 and not self.lazy" + SKIP, 1, OPEN, "", id="flag"),
    pytest.param(BLOCK, REDUCE, REDUCE.replace("tensor_model", "expert").replace("expert", "moe_expert"), 2, OPEN, "",
                 id="over other ranks"),
    pytest.param(BLOCK, "y = y * self.scale", "y = getattr(self, self.how)(y * self.scale)", 1, OPEN,
                 "", id="out of sight"),
    pytest.param(BLOCK, "y = y * self.scale", "y = self.finish(y * self.scale)", 1, OPEN, "", id="into the unknown"),
    pytest.param(BLOCK, REDUCE, "            y = self.comm.sum_up(y)\n", 2, OPEN, "", id="by a name nobody knows"),
    pytest.param(BLOCK, "y = y * self.scale", "y = self.scale * y", 1, CLEARED, "", id="the factor's side"),
    pytest.param(BLOCK, "y = y * self.scale", "y *= self.scale", 1, CLEARED, "", id="multiplied in place"),
    pytest.param(BLOCK, "silu(y)", "gelu(y)", 1, CLEARED, "", id="another activation"),
    pytest.param(BLOCK, "class Mlp:", "# dense\nclass Mlp:", 1, CLEARED, "", id="a comment"),
    pytest.param(UTILS, "    if fused:\n        return True\n    return scattered", "    return fused or scattered", 1,
                 CLEARED, "", id="the same predicate, written otherwise"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "number", "expected", "claim"), CASES)
def test_a_patch(tmp_path: Path, file: str, old: str, new: str, number: int, expected: str, claim: str) -> None:
    case = work(tmp_path, "double-reduction", STOCK, {file: nth(STOCK[file], old, new, number)})
    found = {e.hypothesis.partition("@")[0] for e in case.evidence if e.bearing == "supports"}
    assert verdict(case) == expected, [e.note for e in case.evidence]
    if claim:
        assert ("reduced_twice" in found, "never_reduced" in found)[claim == "never"], [e.note for e in case.evidence]


def test_a_sum_that_a_later_layer_takes_over_is_the_worlds_condition(tmp_path: Path) -> None:
    stock = {**STOCK, BLOCK: STOCK[BLOCK].replace(SKIP, " and not use_reduce_scatter")}
    case = work(tmp_path, "double-reduction", stock, {BLOCK: STOCK[BLOCK]})
    assert verdict(case) == OPEN
    (note,) = [e.note for e in case.evidence if e.note.startswith("None without a flag")]
    assert "should_allreduce_fusion decides" in note


def test_a_branch_that_loses_its_sum(tmp_path: Path) -> None:
    both = (
        "        if self.ragged:\n            y = tensor_model_parallel_all_reduce(self.ragged(y))\n        else:\n"
        "            y = tensor_model_parallel_all_reduce(y)\n"
    )
    stock = {**STOCK, BLOCK: STOCK[BLOCK].replace(WHOLE, both)}
    lost = stock[BLOCK].replace("tensor_model_parallel_all_reduce(self.ragged(y))", "self.ragged(y)")
    case = work(tmp_path, "double-reduction", stock, {BLOCK: lost})
    assert verdict(case) == SUSPECTED
    assert any(e.note.startswith("One branch has lost it") for e in case.evidence)


def test_the_source_alone_is_counted_and_convicts_nobody(tmp_path: Path) -> None:
    lay(tmp_path / "tree", {"pkg/__init__.py": "", **STOCK})
    (tmp_path / "sleuth.yaml").write_text("name: x\ntree: tree\n")
    given = {"entries": "pkg/block.py::Moe,pkg/block.py::Mlp"}
    case = case_in(
        start(tmp_path / "home", tmp_path / "sleuth.yaml", loader.find("double-reduction"), given, {}, Options())
    )
    assert verdict(case) == OPEN
    assert any("pkg/block.py::Moe.forward: 1 at pkg/block.py" in e.note for e in case.evidence), case.evidence


def test_one_rank_needs_no_sum(tmp_path: Path) -> None:
    new = nth(
        STOCK[BLOCK], "if self.tp_size > 1" + SKIP, "if not leave_out(should_allreduce_fusion, use_reduce_scatter)", 1
    )
    case = work(tmp_path, "double-reduction", STOCK, {BLOCK: new})
    assert verdict(case) == OPEN, [e.note for e in case.evidence]
