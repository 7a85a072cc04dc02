"""What the built-in playbooks conclude about small patches, each suspect by its own changes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from sleuth.agent.session import Options, start
from sleuth.playbooks import loader

from ..support.investigation import case_in, held, lay

STOCK = {
    "pkg/__init__.py": "",
    "pkg/server_args.py": """\
from dataclasses import dataclass


@dataclass
class ServerArgs:
    page_size: int = 16
    backend: str = "auto"
""",
    "pkg/layer.py": """\
import torch


class Layer:
    def __init__(self, fused=False):
        assert not fused, "not implemented"
        self.scale = 2.5

    def forward(self, x, scores):
        weights = scores.float().softmax(-1)
        return x * weights
""",
}


def diff(file: str, *swaps: tuple[str, str]) -> str:
    """A unified diff of a stock file in which some lines are swapped for others; the hunks carry no context."""
    lines = STOCK[file].splitlines()
    out, shift = [f"--- a/{file}", f"+++ b/{file}"], 0
    for old, new in sorted(swaps, key=lambda pair: lines.index(pair[0])):
        at = lines.index(old) + 1
        came = new.splitlines()
        out += [f"@@ -{at},1 +{at + shift},{len(came)} @@", f"-{old}", *(f"+{line}" for line in came)]
        shift += len(came) - 1
    return "\n".join(out) + "\n"


ASSERTION = '        assert not fused, "not implemented"'
SOFTMAX = "        weights = scores.float().softmax(-1)"
RESULT = "        return x * weights"
IGNORED = diff("pkg/layer.py", (ASSERTION, "        self.fused = fused"))
HANDLED = diff(
    "pkg/layer.py",
    (ASSERTION, "        self.fused = fused"),
    (RESULT, "        if self.fused:\n            weights = weights * self.scale\n        return x * weights"),
)
NARROWED = diff("pkg/layer.py", (SOFTMAX, "        weights = scores.to(torch.bfloat16).softmax(-1)"))
UNWIDENED = diff("pkg/layer.py", (SOFTMAX, "        weights = scores.softmax(-1)"))
WARNED = diff("pkg/layer.py", (ASSERTION, "        if fused:\n            logger.warning('not implemented')"))
SCALED = diff("pkg/layer.py", (RESULT, "        return x * weights * self.scale"))
PAGE_SIZE = diff("pkg/server_args.py", ("    page_size: int = 16", "    page_size: int = 64"))


def judge(folder: Path, playbook: str, patches: dict[str, str], **more: Any) -> tuple[dict[str, str], int]:
    """Verdicts by suspect and the exit code of a built-in playbook, on the stock tree with patches."""
    lay(folder / "stock", STOCK)
    lay(folder, {f"{name}.patch": text for name, text in patches.items()})
    described = {"name": "x", "stock": "stock", "patches": [f"{name}.patch" for name in patches], **more}
    (folder / "sleuth.yaml").write_text(yaml.safe_dump(described, sort_keys=False))
    case = case_in(start(folder / "home", folder / "sleuth.yaml", loader.find(playbook), {}, {}, Options()))
    assert case.closed
    return held(case), case.closed.exit_code


@pytest.mark.parametrize(
    ("playbook", "patch", "verdict", "code"),
    [
        ("removed-assertion", IGNORED, "suspected", 3),
        ("removed-assertion", HANDLED, "inconclusive", 3),
        ("removed-assertion", WARNED, "suspected", 3),
        ("dtype-downcast", NARROWED, "suspected", 3),
        ("dtype-downcast", UNWIDENED, "suspected", 3),
        ("dtype-downcast", HANDLED, "exonerated", 0),
        ("removed-assertion", SCALED, "exonerated", 0),
        ("default-changed", PAGE_SIZE, "suspected", 3),
        ("default-changed", NARROWED, "exonerated", 0),
    ],
)
def test_one_patch(tmp_path: Path, playbook: str, patch: str, verdict: str, code: int) -> None:
    assert judge(tmp_path, playbook, {"p": patch}) == ({"p": verdict}, code)


@pytest.mark.parametrize(
    ("playbook", "old", "new"),
    [
        (
            "removed-assertion",
            "        self.scale = 2.5",
            "        self.scale = helper(2.5)\n        if fused:\n            return",
        ),
        (
            "removed-assertion",
            SOFTMAX,
            "        with suppress(AssertionError):\n            weights = scores.float().softmax(-1)",
        ),
        ("dtype-downcast", SOFTMAX, '        weights = scores.to(getattr(torch, "float16")).softmax(-1)'),
        ("dtype-downcast", SOFTMAX, "        weights = cast_to_policy(scores).softmax(-1)"),
        ("default-changed", "        self.scale = 2.5", "        self.scale = 3.5"),
    ],
)
def test_what_could_do_it_in_another_form_is_not_cleared(tmp_path: Path, playbook: str, old: str, new: str) -> None:
    assert judge(tmp_path, playbook, {"p": diff("pkg/layer.py", (old, new))}) == ({"p": "inconclusive"}, 3)


def test_a_changed_default_that_the_deployment_sets_itself_is_not_in_force(tmp_path: Path) -> None:
    launch = {"args": ["python", "-m", "pkg.server", "--page-size", "32"]}
    assert judge(tmp_path, "default-changed", {"p": PAGE_SIZE}, launch=launch) == ({"p": "exonerated"}, 0)


def test_a_default_that_a_later_patch_takes_back_is_not_in_force(tmp_path: Path) -> None:
    new, old = "    page_size: int = 64", "    page_size: int = 16"
    back = PAGE_SIZE.replace(f"-{old}\n+{new}", f"-{new}\n+{old}")
    verdicts, _ = judge(tmp_path, "default-changed", {"first": PAGE_SIZE, "back": back})
    assert verdicts["first"] == "inconclusive"


def test_the_default_of_another_setting_with_the_same_name_says_nothing(tmp_path: Path) -> None:
    lay(tmp_path / "stock", {"pkg/other_args.py": STOCK["pkg/server_args.py"].replace("page_size", "eps")})
    changed = diff(
        "pkg/layer.py", ("    def __init__(self, fused=False):", "    def __init__(self, fused=False, eps=16):")
    )
    verdicts, _ = judge(tmp_path, "default-changed", {"p": changed})
    assert verdicts["p"] != "suspected"


@pytest.mark.parametrize("playbook", ["removed-assertion", "default-changed", "dtype-downcast"])
def test_nothing_to_compare_with_is_said_and_clears_nobody(tmp_path: Path, playbook: str) -> None:
    lay(tmp_path / "tree", STOCK)
    (tmp_path / "sleuth.yaml").write_text("name: x\ntree: tree\n")
    case = case_in(start(tmp_path / "home", tmp_path / "sleuth.yaml", loader.find(playbook), {}, {}, Options()))
    assert case.closed
    assert (held(case), case.closed.exit_code) == ({"source": "inconclusive"}, 3)
    assert case.evidence[0].note == "There is nothing to compare with: name `stock` or `patches` in sleuth.yaml."


def test_patches_of_one_file_are_told_apart(tmp_path: Path) -> None:
    verdicts, code = judge(tmp_path, "removed-assertion", {"first": IGNORED, "second": NARROWED})
    assert (verdicts, code) == ({"first": "suspected", "second": "exonerated"}, 3)


def test_patches_that_are_in_the_tree_already_are_told_apart_too(tmp_path: Path) -> None:
    swapped = STOCK["pkg/layer.py"].replace(ASSERTION, "        self.fused = fused")
    tree = swapped.replace(SOFTMAX, "        weights = scores.to(torch.bfloat16).softmax(-1)")
    lay(tmp_path / "tree", {**STOCK, "pkg/layer.py": tree})
    verdicts, _ = judge(tmp_path, "dtype-downcast", {"first": IGNORED, "second": NARROWED}, tree="tree")
    assert verdicts == {"first": "exonerated", "second": "suspected"}


def test_a_change_that_no_class_tells_exonerates_nobody(tmp_path: Path) -> None:
    lay(tmp_path / "tree", STOCK)
    (tmp_path / "tree/pkg/kernel.so").write_bytes(b"\x7fELF\0new")
    lay(tmp_path / "stock", STOCK)
    (tmp_path / "stock/pkg/kernel.so").write_bytes(b"\x7fELF\0old")
    (tmp_path / "sleuth.yaml").write_text("name: x\ntree: tree\nstock: stock\n")
    playbook = loader.find("removed-assertion")
    case = case_in(start(tmp_path / "home", tmp_path / "sleuth.yaml", playbook, {}, {}, Options()))
    assert held(case) == {"pkg.kernel.so": "inconclusive"}
