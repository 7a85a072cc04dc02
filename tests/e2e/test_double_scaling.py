"""The main line: the double-scaling playbook on the real source of sglang 0.5.12, from the command line."""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sleuth.sandbox.wheel import fetch_source

from ..support import ROOT

DEMO = ROOT / "playbooks/demo/double-scaling"
STORED_NOT_READ = """\
--- a/sglang/srt/layers/moe/hash_topk.py
+++ b/sglang/srt/layers/moe/hash_topk.py
@@ -43,3 +43,3 @@
         )
\x20
-        assert not apply_routed_scaling_factor_on_output, "not implemented"
+        self.apply_on_output = apply_routed_scaling_factor_on_output
"""
UNCONDITIONAL = """\
--- a/sglang/srt/layers/moe/hash_topk.py
+++ b/sglang/srt/layers/moe/hash_topk.py
@@ -125,3 +125,4 @@
         if is_hip():
             topk_weights = topk_weights.to(torch.float32)
+        topk_weights = topk_weights * self.routed_scaling_factor
\x20
"""


class Finished:
    """One run of the command line, and the case it left."""

    def __init__(self, folder: Path, description: Path, *extra: str) -> None:
        home = folder / "home"
        argv = [sys.executable, "-c", "from sleuth.agent.cli.main import run; run()", "run", "double-scaling"]
        argv += ["-d", str(description), "--home", str(home), *extra]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=900, cwd=folder)
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.case = next((home / "cases").iterdir())
        events = (self.case / "events.jsonl").read_text().splitlines()
        self.events: list[dict[str, Any]] = [json.loads(line)["event"] for line in events]

    def call(self, step: str) -> dict[str, Any]:
        """The result of a step's call."""
        chosen = next(e for e in self.events if e["kind"] == "step_chosen" and e["step"] == step)
        key = chosen["call"]["key"]
        found: dict[str, Any] = next(
            e["result"] for e in self.events if e["kind"] == "call_finished" and e["key"] == key
        )
        return found

    def data(self, step: str) -> dict[str, Any]:
        """The findings of a step's call."""
        found: dict[str, Any] = json.loads((self.case / "artefacts" / self.call(step)["data"]).read_text())
        return found

    def evidence(self, step: str) -> list[dict[str, Any]]:
        """What a step's answer was taken to mean."""
        weighed = next(e for e in self.events if e["kind"] == "step_weighed" and e["step"] == step)
        found: list[dict[str, Any]] = weighed["evidence"]
        return found

    def verdicts(self) -> dict[str, str]:
        """Verdict by suspect."""
        return {v["suspect"]: v["verdict"] for v in self.events[-1]["verdicts"]}


@pytest.fixture(scope="module")
def stock() -> Path:
    """The stock source; fetched once."""
    return fetch_source("sglang==0.5.12")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, stock: Path) -> Finished:
    return Finished(tmp_path_factory.mktemp("demo"), DEMO / "sleuth.yaml")


def independent_digest(root: Path) -> str:
    """A digest of names, kinds, modes, sizes, times and contents that owes nothing to the product."""
    total = hashlib.sha256()
    for path in sorted(root.rglob("*"), key=os.fspath):
        info = path.lstat()
        total.update(f"{path.relative_to(root)} {info.st_mode} {info.st_size} {info.st_mtime_ns}\n".encode())
        total.update(path.read_bytes() if path.is_file() else b"")
    return total.hexdigest()


def test_the_story_s_patch_is_exonerated_by_counting(demo: Finished) -> None:
    assert demo.code == 0
    assert demo.verdicts() == {"guarded": "exonerated"}
    for step in ("q2d_any", "q2d_here"):
        assert {(e["bearing"], e["grade"], e["counts"]) for e in demo.evidence(step)} == {("refutes", "computed", True)}


def test_the_count_is_told_by_both_instruments(demo: Finished) -> None:
    data = demo.data("q2d_here")
    assert data["outcome"] in ("exact", "same contract")
    (unit,) = data["units"]
    counts = {"apply_routed_scaling_factor_on_output": {"true": [1], "false": [0]}}
    assert (unit["name"], unit["contract"], unit["run"], unit["agrees"]) == ("HashTopK", counts, counts, True)
    assert [(s["name"], s["same"]) for s in unit["siblings"]] == [("TopK", True)]
    known = {r["after"] for e in data["entries"] for r in e["rows"] if r["count_after"] is not None}
    assert known == {"1"}
    assert data["facts"]["moe_runner_backend"] == "cutlass (sleuth.yaml:15: --moe-runner-backend)"


def test_the_first_grep_is_empty_with_its_controls_hits_named(demo: Finished) -> None:
    result, data = demo.call("q2a_entry"), demo.data("q2a_entry")
    assert result["status"] == "no_data"
    assert data["control"]["lines_read"] == 1633
    assert data["control"]["total"] > 200
    lead = data["control"]["leads"][0]
    assert lead["file"] == "sglang/srt/models/deepseek_v2.py"
    assert [(hop["line"], hop["via"], hop["name"]) for hop in lead["path"]] == [
        (22, "imports", "deepseek_v2"),
        (639, "constructs", "DeepseekV2MoE"),
    ]
    assert "sglang/srt/models/deepseek_v2.py" in result["text"]


def test_the_empty_grep_redirects(demo: Finished) -> None:
    assert {e["bearing"] for e in demo.evidence("q2a_entry")} == {"redirects"}
    assert "deepseek_v2.py" in demo.evidence("q2a_entry")[0]["note"]


def test_the_trace_arrives_and_names_where_the_factor_is_applied(demo: Finished) -> None:
    data = demo.data("q2b_home")
    assert data["home"] == "sglang/srt/models/deepseek_v2.py"
    applied = {(m["file"].rpartition("/")[2], m["line"]) for m in data["applications"]}
    model = {("deepseek_v2.py", line) for line in (788, 895, 1193, 1199, 1298, 1304)}
    assert applied >= model | {("mega_moe.py", 266), ("hash_topk.py", 131), ("topk.py", 967)}
    for line in (788, 895, 1193, 1199, 1298, 1304, 131):
        assert re.search(rf"\b{line}\b", demo.evidence("q2b_home")[0]["note"])


def test_the_report_names_where_the_flag_is_set_and_read(demo: Finished) -> None:
    flag = demo.evidence("q2c_flag")[0]["note"]
    assert "sglang/srt/models/deepseek_v2.py: 546, 561" in flag
    assert "sglang/srt/layers/moe/hash_topk.py: 46, 130" in flag
    switch = demo.evidence("q2d_switch")[0]["note"]
    assert "fused_moe_triton/layer.py: 311" in switch
    assert "sglang/srt/models/deepseek_v2.py: 546, 561, 1190, 1197" in switch
    assert "mega_moe.py: 265" in switch


def test_the_assumptions_are_settled(demo: Finished) -> None:
    settled = {
        k: v for e in demo.events if e["kind"] == "step_weighed" for x in e["evidence"] for k, v in x["assume"].items()
    }
    assert settled == dict.fromkeys(("live_path", "no_getattr", "no_closure", "intent"), "verified")
    assert "topk.py:1414" in demo.evidence("q3_others")[0]["note"]


def test_stdout_is_the_case_and_stderr_the_progress(demo: Finished) -> None:
    for heading in ("SUSPECTS", "HYPOTHESES AGAINST guarded", "QUESTIONS ABOUT guarded", "VERDICT"):
        assert re.search(rf"^{heading}", demo.out, re.MULTILINE)
    assert "$ sleuth tool grep" in demo.out
    assert "Traceback" not in demo.err
    assert "[q2a_entry]" in demo.err
    assert "[q2a_entry]" not in demo.out


def test_the_readme_shows_real_output(demo: Finished) -> None:
    block = re.search(r"```text\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block
    for line in block[1].splitlines():
        timeless = re.sub(r"\d+\.\d\d s", "", line)
        if line.strip() != "| …":
            assert timeless in re.sub(r"\d+\.\d\d s", "", demo.out), line


def described(folder: Path, patch: str) -> Path:
    (folder / "patch.patch").write_text(patch)
    (folder / "sleuth.yaml").write_text("name: x\nstock: pypi:sglang==0.5.12\npatches: [patch.patch]\n")
    return folder / "sleuth.yaml"


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory, stock: Path) -> tuple[Finished, bool]:
    """The run over a patch that scales twice, and whether the original stayed what it was."""
    folder, before = tmp_path_factory.mktemp("twice"), independent_digest(stock)
    done = Finished(folder, described(folder, UNCONDITIONAL))
    return done, independent_digest(stock) == before


def test_the_original_is_untouched(twice: tuple[Finished, bool]) -> None:
    done, same = twice
    assert same
    assert "original source: unchanged" in done.out
    assert [e for e in done.events if e["kind"] == "originals_checked"] == [
        {"kind": "originals_checked", "changed": []}
    ]


def test_two_runs_find_the_same(twice: tuple[Finished, bool], tmp_path: Path) -> None:
    again = Finished(tmp_path, described(tmp_path, UNCONDITIONAL))
    artefacts = [{p.name for p in (run.case / "artefacts").iterdir()} for run in (twice[0], again)]
    assert artefacts[0] == artefacts[1]
    assert again.verdicts() == twice[0].verdicts()


def test_a_patch_that_multiplies_whatever_the_flag_says_is_guilty(twice: tuple[Finished, bool]) -> None:
    done, _ = twice
    assert (done.code, done.verdicts()) == (1, {"patch": "convicted"})
    bearing = {(e["hypothesis"], e["bearing"]) for e in done.evidence("q2_patch")}
    assert bearing == {("applied_twice@patch", "supports")}
    (proof,) = done.evidence("q2d_any")
    assert (proof["hypothesis"], proof["proves"], proof["grade"]) == ("applied_twice@patch", True, "computed")
    assert "1 → 2" in proof["note"]
    assert "hash_topk.py:127" in proof["note"]


def test_a_flag_that_is_stored_and_never_read_is_guilty(tmp_path: Path) -> None:
    stored = STORED_NOT_READ.replace("self.apply_on_output", "self.apply_routed_scaling_factor_on_output")
    done = Finished(tmp_path, described(tmp_path, stored))
    assert (done.code, done.verdicts()) == (1, {"patch": "convicted"})
    bearing = {(e["hypothesis"], e["bearing"]) for e in done.evidence("q2e_obeyed")}
    assert bearing == {("never_applied@patch", "supports")}
    (proof,) = done.evidence("q2d_any")
    assert (proof["hypothesis"], proof["proves"]) == ("never_applied@patch", True)
    assert "→ 0" in proof["note"]


def test_a_patch_about_something_else_is_not_examined(tmp_path: Path) -> None:
    other = UNCONDITIONAL.replace("topk_weights * self.routed_scaling_factor", "topk_weights.clone()")
    done = Finished(tmp_path, described(tmp_path, other))
    assert (done.code, done.verdicts()) == (3, {"patch": "inconclusive"})
    assert "this playbook isn't for this patch" in done.out
