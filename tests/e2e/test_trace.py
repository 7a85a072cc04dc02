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


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLEUTH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "model.py").write_text(MODEL)
    return folder


def sleuth(*words: str | Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", "from sleuth.agent.cli.main import run; run()", "trace", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120)


def is_kept(*words: str | Path) -> bool:
    """Whether the answer was found without what a trace has to load."""
    script = (
        "import sys; from sleuth.agent.cli.main import main; code = main(sys.argv[1:]); "
        "print(f'\\n{code} {\"pydantic\" in sys.modules}')"
    )
    argv = [sys.executable, "-c", script, "trace", "routed_scaling_factor", *map(str, words)]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=120).stdout.splitlines()[-1]
    assert said.startswith("0 ")
    return said == "0 False"


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
        (["routed_scaling_factor", "--set", "platform"], "--set platform: GUARD=VALUE expected"),
        (["routed_scaling_factor", "--sinks", "nowhere.toml"], "--sinks nowhere.toml"),
        (["routed_scaling_factor", "--patch", "nowhere.patch"], "nowhere.patch"),
        (["routed_scaling_factor", "--set", "x == 'a'"], "GUARD=VALUE expected"),
        (["routed_scaling_factor", "--set", "x=1", "--set", "x=2"], "--set x: given twice, as '1' and '2'"),
        (["routed_scaling_factor", "--seconds", "0"], "a number of seconds above 0"),
        (["routed_scaling_factor", "--entry", "Blok"], "did you mean 'Block'?"),
        (["routed-scaling-factor"], "one name as the source spells it"),
    ],
)
def test_bad_input_is_explained(tree: Path, words: list[str], said: str) -> None:
    done = sleuth(*words, "--tree", tree)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_sinks_are_checked_by_their_own_name(tree: Path, tmp_path: Path) -> None:
    sinks = tmp_path / "mine.toml"
    for text, said in (("sink = [", "mine.toml: not TOML"), ("[[sink]]\nname = 'f'\n", "mine.toml: sink 1")):
        sinks.write_text(text)
        done = sleuth("routed_scaling_factor", "--tree", tree, "--sinks", sinks)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_without_a_source(tmp_path: Path) -> None:
    done = sleuth("routed_scaling_factor")
    assert done.returncode == 2
    assert "there is no sleuth.yaml; name the source with --tree DIR" in done.stderr
    assert "--tree nowhere: no such folder" in sleuth("x", "--tree", "nowhere").stderr


def test_json_has_everything(tree: Path) -> None:
    done = sleuth("routed_scaling_factor", "--tree", tree, "--set", "platform=cuda", "--format", "json")
    data = json.loads(done.stdout)
    assert data["factor"] == "routed_scaling_factor"
    (found,) = data["tables"]
    assert found["entry"] == {"path": "model.py", "symbol": "Block.forward", "line": 18}
    (world,) = found["worlds"]
    assert (world["count"], world["unknown"], world["raises"]) == (1, "", "")
    assert [found["sites"][index]["line"] for index in world["sites"]] == [22]
    assert data["facts"] == [{"guard": "platform", "source": "given", "used": True, "value": "cuda", "why": ""}]
    assert (data["findings"], data["counts"], data["timed_out"]) == ([], [1], False)


def test_findings_say_where_and_when(tree: Path) -> None:
    data = json.loads(sleuth("routed_scaling_factor", "--tree", tree, "--format", "json").stdout)
    first = data["findings"][0]
    assert (first["kind"], first["count"], first["path"], first["symbol"]) == ("never", 0, "model.py", "Block.forward")
    assert first["when"] == "platform != cuda"


def test_a_guard_with_an_equals_sign_can_be_set(tree: Path) -> None:
    source = MODEL.replace("if _is_cuda:", "if self.mode == 'a':").replace(
        "self.experts =", "self.mode = config.mode\n        self.experts ="
    )
    (tree / "model.py").write_text(source)
    assert told(table("--tree", tree, "--set", "config.mode == 'a'=false")) == {"always": 0}


def test_a_description_gives_facts_and_patches(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "twice.patch").write_text(PATCH)
    (tmp_path / "sleuth.yaml").write_text(
        "name: x\nstock: tree\npatches: twice.patch\nlaunch: {args: python -m s --device npu}\n"
    )
    assert told(table()) == {"always": 1}
    text = sleuth("routed_scaling_factor").stdout
    assert "platform = npu  (sleuth.yaml:4: --device)" in text
    assert told(table("--set", "platform=cuda")) == {"always": 2}
    assert "has its own `patches`" in sleuth("routed_scaling_factor", "--patch", "twice.patch").stderr


# --- Answers that are kept


def test_an_answer_is_kept_as_long_as_the_tree_stays(tree: Path) -> None:
    assert not is_kept("--tree", tree)
    assert is_kept("--tree", tree)
    assert is_kept("--tree", tree, "--format", "json")
    (tree / "model.py").touch()
    assert is_kept("--tree", tree)
    (tree / "other.py").write_text("from model import Block\n\n\nclass Mine(Block):\n    pass\n")
    assert not is_kept("--tree", tree)
    (tree / "model.py").write_text(MODEL.replace("y * self", "2 * y * self"))
    assert not is_kept("--tree", tree)


def test_every_part_of_the_question_counts(tree: Path, tmp_path: Path) -> None:
    sinks, patch = tmp_path / "sinks.toml", tmp_path / "twice.patch"
    sinks.write_text("")
    patch.write_text(PATCH)
    assert not is_kept("--tree", tree)
    more: list[list[str]] = [["--entry", "Block"], ["--set", "platform=cuda"], ["--patch", str(patch)]]
    for words in more:
        assert not is_kept("--tree", tree, *words), words
        assert is_kept("--tree", tree, *words), words
    patch.write_text(PATCH.replace("y *=", "y = 1 + y; y *="))
    assert not is_kept("--tree", tree, "--patch", patch)


def test_the_same_is_said_again(tree: Path) -> None:
    cold, warm = (sleuth("routed_scaling_factor", "--tree", tree).stdout for _ in range(2))
    assert cold == warm


def test_no_cache_neither_keeps_nor_finds(tree: Path) -> None:
    assert not is_kept("--tree", tree, "--no-cache")
    assert not is_kept("--tree", tree)
    assert not is_kept("--tree", tree, "--no-cache")
