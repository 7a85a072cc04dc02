"""The parts of recount: names of reductions, groups of ranks, the two states of a tree, and what the tool answers."""

from pathlib import Path
from typing import Any

import pytest

from sleuth.tools.inside import recount
from sleuth.tools.inside.overlay import Overlay
from sleuth.tools.inside.recounting import groups
from sleuth.tools.inside.source import Unreadable

from ...support.tracing import grow

BLOCK = """\
    import torch
    from .comm import all_reduce, reduce_scatter


    class Block:
        def __init__(self, down, tp_size):
            self.down = down
            self.tp_size = tp_size

        def forward(self, x, scatter=False):
            y = torch.matmul(x, self.down)
            if self.tp_size > 1:
                y = all_reduce(y)
            return y
    """
COMM = """\
    import torch.distributed as dist


    def all_reduce(x):
        dist.all_reduce(x)
        return x


    def reduce_scatter(output, x):
        dist.reduce_scatter_tensor(output, x)
    """


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("all_reduce", True),
        ("tensor_model_parallel_all_reduce", True),
        ("fused_allreduce_rmsnorm", True),
        ("reduce_scatterv", True),
        ("should_skip_post_experts_all_reduce", False),
        ("can_use_custom_all_reduce", False),
        ("get_trtllm_fused_allreduce_kwargs", False),
        ("init_quick_all_reduce", False),
        ("moe_sum_reduce", False),
        ("reduce_results", False),
    ],
)
def test_what_reduces_by_its_name(name: str, expected: bool) -> None:
    assert groups.reduces(name) is expected


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        ([], 0),
        (["tp"], 1),
        (["tp", "tp"], 2),
        (["moe_ep", "moe_tp"], 1),
        (["moe_ep", "moe_tp", "moe_tp"], 2),
        (["tp", "moe_ep"], 2),
        (["attn_tp", "dp"], 1),
        (["attn_tp", "moe_ep"], None),
    ],
)
def test_sums_over_several_groups(over: list[str], expected: int | None) -> None:
    assert groups.times(over)[0] == expected


def test_a_group_is_named_by_the_call() -> None:
    assert groups.group_of("moe_expert_parallel_all_reduce(y)") == "moe_ep"
    assert groups.group_of("get_tp_group().reduce_scatterv(y, output=o)") == "tp"
    assert groups.group_of("dist.all_reduce(y)") == ""


def states(root: Path, file: str, before: str | None, after: str | None) -> dict[str, str]:
    """Lay out a patch's two states of one file; the request's roots."""
    for side, text in (("before", before), ("after", after)):
        (root / side).mkdir(parents=True, exist_ok=True)
        if text is not None:
            grow(root / side, {file: text})
    return {"before": str(root / "before"), "after": str(root / "after")}


def count(tmp_path: Path, old: str, new: str, **more: Any) -> dict[str, Any]:
    """The reply for a patch of the block."""
    tree = grow(tmp_path / "tree", {"pkg/__init__.py": "", "pkg/comm.py": COMM, "pkg/block.py": BLOCK})
    assert old in BLOCK
    sides = states(tmp_path, "pkg/block.py", BLOCK, BLOCK.replace(old, new))
    return recount.run({"root": str(tree), "counted": "reductions", "seconds": 30, **sides, **more})


def test_a_file_that_only_one_state_has(tmp_path: Path) -> None:
    tree = grow(tmp_path / "tree", {"pkg/a.py": "1\n", "pkg/new/b.py": "2\n"})
    states(tmp_path, "pkg/new/b.py", None, "2\n")
    before = Overlay(str(tree), str(tmp_path / "before"), str(tmp_path / "after"))
    assert not before.is_file("pkg/new/b.py")
    assert before.is_file("pkg/a.py")
    with pytest.raises(Unreadable):
        before.load("pkg/new/b.py")
    after = Overlay(str(tree), str(tmp_path / "after"), str(tmp_path / "before"))
    assert after.load("pkg/new/b.py") == b"2\n"


def test_a_condition_asked_in_other_words_is_not_compared(tmp_path: Path) -> None:
    reply = count(tmp_path, "self.tp_size > 1", "self.many_ranks")
    assert {d["kind"] for d in reply["tables"][0]["differences"]} == {"reworded"}


def test_the_same_condition_written_otherwise_is_the_same(tmp_path: Path) -> None:
    reply = count(tmp_path, "if self.tp_size > 1", "if not 1 >= self.tp_size")
    (table,) = reply["tables"]
    assert table["differences"] == []
    assert table["complete"]
    assert reply["not_followed"] == []


def test_a_scatter_that_writes_its_first_argument(tmp_path: Path) -> None:
    whole = "if self.tp_size > 1:\n                y = all_reduce(y)\n"
    lines = (
        "if self.tp_size > 1:",
        "    o = torch.empty_like(y)",
        "    reduce_scatter(o, y)",
        "    y = all_reduce(o)",
    )
    reply = count(tmp_path, whole, "\n            ".join(lines) + "\n")
    (table,) = reply["tables"]
    assert [(d["kind"], d["before"], d["after"]) for d in table["differences"]] == [("twice", "1", "2")]


def test_what_a_patch_changes_outside_functions_is_said(tmp_path: Path) -> None:
    reply = count(tmp_path, "class Block:", "LIMIT = 3\n\n\n    class Block:")
    assert reply["elsewhere"] == ["pkg/block.py <module>"]
    assert reply["changed"] == []


def test_the_name_that_a_patch_mentions_is_followed(tmp_path: Path) -> None:
    text = "def f(q, layer):\n    return kernel(q, layer.sm_scale)\n"
    tree = grow(tmp_path / "tree", {"pkg/a.py": text})
    sides = states(tmp_path, "pkg/a.py", text, text.replace("layer.sm_scale", "layer.sm_scale * layer.sm_scale"))
    names = ["scaling", "sm_scale"]
    reply = recount.run({"root": str(tree), "counted": "scale", "factors": names, "seconds": 20, **sides})
    assert reply["factor"] == "sm_scale"
    assert [d["kind"] for d in reply["tables"][0]["differences"]] == ["twice"]
