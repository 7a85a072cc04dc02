"""What twin-paths and dead-parameter conclude about small patches, honest and hostile ones."""

from pathlib import Path
from textwrap import dedent

import pytest

from sleuth.agent.case import CaseFile

from ..support.investigation import held, work

MOE = "pkg/moe.py"
CLEARED, SUSPECTED, OPEN = "exonerated", "suspected", "inconclusive"

EPILOGUES = dedent(
    """\
    from .comm import all_reduce


    class Moe:
        def __init__(self, config, experts):
            self.routed = config.routed
            self.experts = experts

        def forward(self, x, shared):
            if shared is not None:
                return self.forward_normal(x, shared)
            return self.forward_overlapped(x, shared)

        def forward_normal(self, x, shared):
            # the plain way
            y = self.experts(x)
            y *= self.routed
            return all_reduce(y)

        def forward_overlapped(self, x, shared):
            y = self.experts(x)
            y *= self.routed
            return all_reduce(y)
    """
)
PLAIN = "        y *= self.routed\n"
GUARDED = "        if not self.experts.fused:\n            y *= self.routed\n"


def nth(text: str, old: str, new: str, number: int) -> str:
    """`text` with the `number`-th occurrence of `old` replaced, all of them when it is 0."""
    if not number:
        return text.replace(old, new)
    pieces = text.split(old)
    assert len(pieces) > number
    return old.join(pieces[:number]) + new + old.join(pieces[number:])


def verdict(case: CaseFile) -> str:
    (found,) = held(case).values()
    return found


@pytest.mark.parametrize(
    ("old", "new", "number", "expected"),
    [
        pytest.param(PLAIN, GUARDED, 1, SUSPECTED, id="a guard in one of two"),
        pytest.param(PLAIN, GUARDED, 2, SUSPECTED, id="a guard in the other of two"),
        pytest.param(PLAIN, GUARDED, 0, CLEARED, id="the same guard in both"),
        pytest.param(PLAIN, "", 2, SUSPECTED, id="no factor on one"),
        pytest.param("all_reduce(y)", "y", 1, SUSPECTED, id="no reduction on one"),
        pytest.param("all_reduce(y)", "y", 0, CLEARED, id="no reduction on both"),
        pytest.param("the plain way", "the ordinary way", 0, CLEARED, id="a comment"),
        pytest.param(PLAIN, "        y *= self.routed * 1\n", 1, OPEN, id="a difference that no name tells"),
        pytest.param("forward_normal(x", "forward_plain(x", 0, OPEN, id="a call of something unknown"),
        pytest.param(
            PLAIN,
            "        skip = self.experts.fused\n        if not skip:\n            y *= self.routed\n",
            1,
            SUSPECTED,
            id="by a local",
        ),
        pytest.param(
            PLAIN,
            "        assert not self.experts.fused\n        y *= self.routed\n",
            1,
            SUSPECTED,
            id="one refuses what both did",
        ),
        pytest.param(
            PLAIN, "        y *= self.routed if not self.experts.fused else 1\n", 2, SUSPECTED, id="a ternary"
        ),
        pytest.param(
            PLAIN,
            "        if self.experts.fused:\n            return all_reduce(y)\n        y *= self.routed\n",
            1,
            SUSPECTED,
            id="leaving early",
        ),
    ],
)
def test_a_patch_of_twins(tmp_path: Path, old: str, new: str, number: int, expected: str) -> None:
    case = work(tmp_path, "twin-paths", {MOE: EPILOGUES}, {MOE: nth(EPILOGUES, old, new, number)})
    assert verdict(case) == expected, [e.note for e in case.evidence]


def test_guards_that_contradict_each_other(tmp_path: Path) -> None:
    new = nth(nth(EPILOGUES, PLAIN, GUARDED, 1), PLAIN, GUARDED.replace("not ", ""), 2)
    assert verdict(work(tmp_path, "twin-paths", {MOE: EPILOGUES}, {MOE: new})) == SUSPECTED


def test_a_difference_that_was_there_before_is_not_the_patchs(tmp_path: Path) -> None:
    stock = nth(EPILOGUES, PLAIN, GUARDED, 1)
    case = work(tmp_path, "twin-paths", {MOE: stock}, {MOE: stock.replace("config.routed", "float(config.routed)")})
    assert verdict(case) == OPEN


def test_the_missing_guard_added_to_the_second_is_no_new_difference(tmp_path: Path) -> None:
    stock = nth(EPILOGUES, PLAIN, GUARDED, 1)
    case = work(tmp_path, "twin-paths", {MOE: stock}, {MOE: nth(EPILOGUES, PLAIN, GUARDED, 0)})
    assert verdict(case) == OPEN


def test_a_shared_helper_is_followed(tmp_path: Path) -> None:
    helper = "\n    def _scale(self, y, factor, fused):\n        return y if fused else y * factor\n"
    new = EPILOGUES.replace(PLAIN, "        y = self._scale(y, self.routed, self.experts.fused)\n") + helper
    assert verdict(work(tmp_path, "twin-paths", {MOE: EPILOGUES}, {MOE: new})) == OPEN


def test_a_renamed_twin_keeps_its_differences(tmp_path: Path) -> None:
    stock = nth(EPILOGUES, PLAIN, GUARDED, 1)
    new = stock.replace("forward_overlapped", "forward_dual_stream")
    assert verdict(work(tmp_path, "twin-paths", {MOE: stock}, {MOE: new})) == OPEN


def test_the_same_names_in_another_file_keep_both_from_being_cleared(tmp_path: Path) -> None:
    other = "class Third:\n    def run(self, y):\n        return y * self.routed\n"
    new = nth(EPILOGUES, PLAIN, GUARDED, 0)
    case = work(tmp_path, "twin-paths", {MOE: EPILOGUES, "pkg/third.py": other}, {MOE: new})
    assert verdict(case) == OPEN


def test_a_third_function_of_the_file_keeps_both_from_being_cleared(tmp_path: Path) -> None:
    stock = EPILOGUES + "\n    def special(self, x):\n        return x * self.routed\n"
    case = work(tmp_path, "twin-paths", {MOE: stock}, {MOE: nth(stock, PLAIN, GUARDED, 0)})
    assert verdict(case) == OPEN
    assert any("Moe.special" in e.note for e in case.evidence)


def test_what_is_no_python_any_more_is_not_cleared(tmp_path: Path) -> None:
    new = EPILOGUES.replace("return all_reduce(y)", "return all_reduce(y")
    for playbook in ("twin-paths", "dead-parameter"):
        assert verdict(work(tmp_path / playbook, playbook, {MOE: EPILOGUES}, {MOE: new})) == OPEN


LAYER = "pkg/layer.py"
SCALED = dedent(
    """\
    import logging

    from .kernels import fast_moe, slow_moe

    logger = logging.getLogger(__name__)


    class Base:
        def apply(self, x, weights, layer):
            raise NotImplementedError


    class Layer(Base):
        def __init__(self, scale, window=None):
            self.scale = scale
            self.window = window

        def apply(self, x, weights, layer):
            return scaled(x, self.scale, True) * weights * self.window


    def scaled(x, factor, renormalize):
        if renormalize:
            x = x / x.sum()
        return x * factor


    def moe(x, weights, ids, factor, fast):
        if fast:
            return fast_moe(x, weights, ids, factor)
        return slow_moe(x, weights, ids, factor)
    """
)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("return x * factor", "return x", SUSPECTED, id="the read is gone"),
        pytest.param("return x * factor", "_ = factor\n    return x", SUSPECTED, id="read for nothing"),
        pytest.param("return x * factor", "if False:\n        x = x * factor\n    return x", SUSPECTED, id="dead code"),
        pytest.param("return x * factor", "logger.debug('%s', factor)\n    return x", SUSPECTED, id="only logged"),
        pytest.param("return x * factor", "assert factor == 1\n    return x", SUSPECTED, id="only asserted"),
        pytest.param("    if renormalize:\n", "    factor = 1.0\n    if renormalize:\n", SUSPECTED, id="overwritten"),
        pytest.param("renormalize):", "renormalize, clip=None):", SUSPECTED, id="a new one for nobody"),
        pytest.param("window=None):", "window=None, sink=0):", SUSPECTED, id="a new one of a constructor"),
        pytest.param("* weights * self.window", "* weights", SUSPECTED, id="stored for nobody"),
        pytest.param(
            "slow_moe(x, weights, ids, factor)", "slow_moe(x, weights, ids)", SUSPECTED, id="dropped on a branch"
        ),
        pytest.param("return x * factor", "return x * (factor * 0 + 1)", OPEN, id="cancelled"),
        pytest.param("return x * factor", "return (x * factor, x)[1]", OPEN, id="thrown away"),
        pytest.param("return x * factor", "return other(x, factor)", OPEN, id="handed to somebody else"),
        pytest.param(
            "    return x * factor",
            "    if x.is_empty:\n        return x\n    return x * factor",
            OPEN,
            id="leaving early",
        ),
        pytest.param("return x * factor", "return x * locals()['factor']", OPEN, id="read in another way"),
        pytest.param("return x * factor", "return x.float() * factor", CLEARED, id="a cast"),
        pytest.param("return x * factor", "return x * factor  # scaled", CLEARED, id="a comment"),
        pytest.param("self.scale, True", "self.scale * self.scale, True", CLEARED, id="read once more"),
    ],
)
def test_a_patch_of_parameters(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in SCALED
    case = work(tmp_path, "dead-parameter", {LAYER: SCALED}, {LAYER: SCALED.replace(old, new)})
    assert verdict(case) == expected, [e.note for e in case.evidence]


def test_a_parameter_that_the_base_class_demands_convicts_nobody(tmp_path: Path) -> None:
    new = SCALED.replace("weights, layer):", "weights, layer, step):")
    assert verdict(work(tmp_path, "dead-parameter", {LAYER: SCALED}, {LAYER: new})) == OPEN


def test_the_siblings_that_use_it_are_named(tmp_path: Path) -> None:
    new = SCALED.replace("slow_moe(x, weights, ids, factor)", "slow_moe(x, weights, ids)")
    case = work(tmp_path, "dead-parameter", {LAYER: SCALED}, {LAYER: new})
    (note,) = [e.note for e in case.evidence if e.bearing == "supports"]
    assert "doesn't hand on factor" in note
    assert "moe:30" in note


PARTS = dedent(
    """\
    from .kernels import fast_moe, slow_moe


    class Method:
        def apply(self, x, weights, ids):
            if self.fast:
                return fast_moe(x, weights, ids, self.runner_config)
            y = slow_moe(x, weights, ids, self.runner_config.act)
            y = y * self.runner_config.factor
            return y
    """
)
CONFIG = dedent(
    """\
    from dataclasses import dataclass


    @dataclass
    class RunnerConfig:
        act: str
        factor: float
        bias: float
    """
)


def test_a_field_that_a_branch_no_longer_reads(tmp_path: Path) -> None:
    stock = {"pkg/method.py": PARTS, "pkg/config.py": CONFIG}
    new = PARTS.replace("        y = y * self.runner_config.factor\n", "")
    case = work(tmp_path, "dead-parameter", stock, {"pkg/method.py": new})
    assert verdict(case) == SUSPECTED
    assert any("no longer reads factor of it" in e.note for e in case.evidence)


def test_what_a_changed_branch_always_left_behind_is_not_the_patchs(tmp_path: Path) -> None:
    stock = {"pkg/method.py": PARTS, "pkg/config.py": CONFIG}
    new = PARTS.replace("slow_moe(x,", "slow_moe(x.float(),")
    assert verdict(work(tmp_path, "dead-parameter", stock, {"pkg/method.py": new})) == CLEARED
