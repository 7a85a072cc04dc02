"""The tracer as a tool: counts through the real sandbox, what the deployment says, and the text for a reader."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from sleuth.sandbox.base import Limits
from sleuth.sandbox.deployment import load_deployment
from sleuth.tools.base import Status
from sleuth.tools.exactly_once import OUT_OF_TIME, ExactlyOnceData
from sleuth.tools.exactly_once_facts import Known, from_deployment, from_user, merged, why_unused
from sleuth.tools.exactly_once_text import WIDTH, render, shared
from sleuth.tools.inside.exactly_once.core import Core, OutOfBudget
from sleuth.tools.inside.exactly_once.effort import RATE, Effort

from ...support.trees import Bench, write

MODEL = dedent(
    """\
    import torch
    from torch import nn
    from flags import is_cuda

    _is_cuda = is_cuda()


    class Block(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.routed_scaling_factor = config.routed_scaling_factor
            self.fused = config.use_fused_scaling

        def forward(self, x):
            topk_weights, _ = torch.topk(x, 2)
            if self.fused:
                topk_weights = topk_weights * self.routed_scaling_factor
            y = (x * topk_weights).sum(1)
            if not _is_cuda or not self.fused:
                y *= self.routed_scaling_factor
            return y


    class Never(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.routed_scaling_factor = config.routed_scaling_factor

        def forward(self, x):
            topk_weights, _ = torch.topk(x, 2)
            return x * topk_weights
    """
)
FILES: dict[str, str | bytes] = {"model.py": MODEL, "flags.py": "def is_cuda():\n    return False\n"}
FACTOR = "routed_scaling_factor"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(write(tmp_path / "tree", FILES), tmp_path / "bench")


def data_of(bench: Bench, **args: Any) -> dict[str, Any]:
    result = bench.call("exactly_once", factor=FACTOR, **args)
    assert result.status == Status.OK, result.text
    data: dict[str, Any] = json.loads(bench.kept[result.data].read_text())
    return data


def told(table: dict[str, Any]) -> dict[str, int]:
    return {text: world["count"] for world in table["worlds"] for text in world["text"]}


# --- Counts


def test_one_entry(bench: Bench) -> None:
    data = data_of(bench, entry="model.py::Block")
    (table,) = data["tables"]
    assert table["entry"] == {"path": "model.py", "symbol": "Block.forward", "line": 14}
    assert data["counts"] == [1, 2]
    assert (data["undecided"], data["raising"], data["entries_left_out"], data["broken"]) == (0, 0, 0, {})
    assert {site["line"] for site in table["sites"]} == {17, 20}
    assert set(data["files"]) >= {"model.py"}
    assert {f["kind"] for f in data["findings"]} == {"twice"}
    (twice,) = (world for world in table["worlds"] if world["count"] == 2)
    assert {"guard": "config.use_fused_scaling", "is": ["true"]} in twice["when"][0]


def test_entries_are_found(bench: Bench) -> None:
    data = data_of(bench)
    assert [table["entry"]["symbol"] for table in data["tables"]] == ["Block.forward", "Never.forward"]
    assert data["counts"] == [0, 1, 2]
    assert {(f["kind"], f["symbol"]) for f in data["findings"]} >= {("never", "Never.forward")}


def test_facts_of_any_type(bench: Bench) -> None:
    data = data_of(bench, entry="Block", facts={"use_fused_scaling": True, "platform": "hip", "colour": 3})
    assert told(data["tables"][0]) == {"always": 2}
    assert {f["guard"]: f["used"] for f in data["facts"]} == {
        "use_fused_scaling": True,
        "platform": True,
        "colour": False,
    }


def test_a_user_adds_sinks(tmp_path: Path) -> None:
    model = """\
        import torch
        import mine

        class Block:
            def __init__(self, config):
                self.routed_scaling_factor = config.routed_scaling_factor

            def forward(self, x):
                weights, _ = torch.topk(x, 2)
                return mine.scaled(x, weights, self.routed_scaling_factor)
        """
    bench = Bench(write(tmp_path / "tree", {"model.py": dedent(model)}), tmp_path / "bench")
    assert bench.call("exactly_once", factor=FACTOR).status == Status.NO_DATA
    sinks = """\
        [[sink]]
        name = "scaled"
        modules = ["mine"]
        params = ["x", "weights", "scale"]
        factor = "scale"
        effect = "applies"
        linear_in = ["weights"]
        returns = "routed"
        """
    assert told(data_of(bench, sinks=dedent(sinks))["tables"][0]) == {"always": 1}


def test_nothing_counted_is_no_data(tmp_path: Path) -> None:
    source = "class A:\n    def forward(self, x):\n        return self.routed_scaling_factor\n"
    bench = Bench(write(tmp_path / "tree", {"m.py": source}), tmp_path / "bench")
    result = bench.call("exactly_once", factor=FACTOR, entry="m.py")
    assert result.status == Status.NO_DATA
    data = ExactlyOnceData.model_validate_json(bench.kept[result.data].read_text())
    assert data.control_found() is False


def test_a_count_is_a_control(bench: Bench) -> None:
    assert ExactlyOnceData.model_validate(data_of(bench, entry="Block")).control_found() is True


# --- What can't be answered


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"factor": "no_such"}, "factor 'no_such': no Python file of the tree mentions it"),
        ({"factor": "a b"}, "'a b'"),
        ({"factor": FACTOR, "entry": "Blok"}, "did you mean 'Block'?"),
        ({"factor": FACTOR, "entry": "modle.py"}, "did you mean 'model.py'?"),
        ({"factor": FACTOR, "entry": "other.py::Block"}, "did you mean 'model.py::Block'?"),
        ({"factor": FACTOR, "entry": "flags.py::Block"}, "did you mean 'model.py::Block'?"),
        ({"factor": FACTOR, "entry": "Block.froward"}, "it has __init__, forward"),
        ({"factor": FACTOR, "sinks": "sink = 3 3"}, "not TOML"),
        ({"factor": FACTOR, "fact": {}}, "did you mean 'facts'?"),
    ],
)
def test_errors_say_what_would_have_worked(bench: Bench, args: dict[str, Any], said: str) -> None:
    result = bench.call("exactly_once", **args)
    assert result.status == Status.ERROR
    assert said in result.text


def test_time_that_runs_out_is_told() -> None:
    effort = Effort()
    engine = Core.__new__(Core)
    engine.steps_taken, engine.effort, engine.until = 0, effort, effort.after(1.0)
    for _ in range(RATE):
        engine.spend()
    with pytest.raises(OutOfBudget, match=OUT_OF_TIME):
        engine.spend()
    assert "time ran out" in text_of(table([{"unknown": OUT_OF_TIME}]), timed_out=True)


def test_the_tracer_stops_before_the_sandbox_does(tmp_path: Path) -> None:
    bench = Bench(write(tmp_path / "tree", FILES), tmp_path / "bench", Limits(seconds=20))
    result = bench.call("exactly_once", factor=FACTOR, seconds=3000)
    assert result.status == Status.OK
    request = json.loads(result.commands[0][-1])
    assert (request["seconds"], request["wall"]) == (8.0, 18.0)


# --- Facts


def facts(tmp_path: Path, text: str, config: dict[str, Any] | None = None) -> dict[str, str]:
    (tmp_path / "config.json").write_text(json.dumps(config or {}))
    place = tmp_path / "sleuth.yaml"
    place.write_text("name: x\ntree: .\n" + dedent(text))
    return {fact.guard: fact.value for fact in from_deployment(load_deployment(place))}


def test_launch_arguments_are_facts(tmp_path: Path) -> None:
    found = facts(tmp_path, "launch:\n  args: python -m s --moe-runner-backend triton --enable-x-y --device cpu --tp 8")
    assert found["moe_runner_backend"] == "triton"
    assert found["enable_x_y"] == "true"
    assert found["server_args.tp"] == "8"
    assert "tp" not in found
    assert found["platform"] == "cpu"


def test_variables_and_config_are_facts(tmp_path: Path) -> None:
    text = 'launch:\n  env: {SGLANG_X: "1", HIP_VISIBLE_DEVICES: "0"}\nmodel: {config: config.json}\n'
    config = {"n_shared_experts": 2, "dtype": "bf16", "q_lora": None, "rope": {"beta_fast": 1}, "a_list": [1]}
    found = facts(tmp_path, text, {**config, "text_config": {"topk_method": "noaux_tc"}})
    assert found["SGLANG_X"] == found["env.SGLANG_X"] == "1"
    assert found["platform"] == "hip"
    assert found["n_shared_experts"] == found["config.n_shared_experts"] == "2"
    assert found["topk_method"] == "noaux_tc"
    assert found["q_lora"] == "none"
    assert found["config.dtype"] == "bf16"
    assert not {"dtype", "beta_fast", "a_list"} & set(found)


def test_what_two_places_dispute_is_unknown(tmp_path: Path) -> None:
    text = """\
        launch:
          args: python -m s --num-experts 4 --device npu
          env: {NVIDIA_VISIBLE_DEVICES: all}
        model: {config: config.json}
        """
    found = facts(tmp_path, text, {"num_experts": 8})
    assert "num_experts" not in found
    assert "platform" not in found


def test_gpus_of_no_vendor_say_nothing_of_the_platform(tmp_path: Path) -> None:
    assert "platform" not in facts(tmp_path, 'gpus: all\nlaunch: {env: {CUDA_VISIBLE_DEVICES: "0"}}')


def test_given_facts_win() -> None:
    both = merged(from_user({"Platform": "cpu", "x": None}), [Known("platform", "cuda", "sleuth.yaml:3")])
    assert [(fact.guard, fact.value) for fact in both] == [("Platform", "cpu"), ("x", "none")]


def test_why_a_fact_fixed_nothing() -> None:
    guards = {"self.config.norm_topk_prob": ["true", "false"], "platform": ["cuda", "hip"], "x is None": ["true"]}
    said = {name: why_unused(Known(name, "v", "given"), guards) for name in ("norm_topk_prob", "platfrom", "zzz")}
    assert said["norm_topk_prob"] == "its values are true, false"
    assert said["platfrom"] == "no world depends on a guard of that name; did you mean 'platform'?"
    assert said["zzz"] == "no world depends on a guard of that name"


# --- Text


def test_the_text_tells_the_story(bench: Bench) -> None:
    text = bench.call("exactly_once", factor=FACTOR, facts={"platfrom": "cuda"}).text
    assert max(map(len, text.splitlines())) <= WIDTH
    assert text.splitlines()[0] == f"{FACTOR}: 2 tables; counts: 0, 1, 2"
    assert "APPLIED MORE THAN ONCE" in text
    assert "NEVER APPLIED" in text
    assert "model.py:20 in-place: y *= self.routed_scaling_factor" in text
    assert "platfrom = cuda: no world depends on a guard of that name; did you mean 'platform'?" in text


def test_what_is_once_everywhere_takes_one_line(tmp_path: Path) -> None:
    model = MODEL.replace("if self.fused:", "if False:").replace("if not _is_cuda or not self.fused:", "if True:")
    bench = Bench(write(tmp_path / "tree", {"model.py": model}), tmp_path / "bench")
    text = bench.call("exactly_once", factor=FACTOR, entry="Block").text
    assert "exactly once, whatever the configuration:\n  Block.forward  model.py:14" in text


def world(*texts: str, more: bool = False) -> dict[str, Any]:
    when = [[{"guard": part, "is": ["true"]} for part in text.split(" and ")] for text in texts]
    return {"text": list(texts), "when": when, "more": more}


def test_alternatives_share_what_they_share() -> None:
    assert shared(world("a and b", "a and c")) == ("a", ["b", "c"])
    assert shared(world("a and b")) == ("a and b", [])
    assert shared({"text": ["always"], "when": [[]], "more": False}) == ("", [])


def test_what_isnt_listed_may_not_share_it() -> None:
    assert shared(world("a and b", "a and c", more=True)) == ("", ["a and b", "a and c"])


def test_a_guard_that_holds_an_and_is_left_whole() -> None:
    cube = [{"guard": "a and b", "is": ["true"]}]
    assert shared({"text": ["a and b", "c"], "when": [cube, cube], "more": False}) == ("", ["a and b", "c"])


def table(worlds: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    plain = {"aside": False, "parts": [], "raises": "", "unknown": "", "sites": [], "more": False, "count": None}
    rows = [{**plain, "when": [[]], "text": ["always"], **one} for one in worlds]
    entry = {"path": "m.py", "symbol": "A.f", "line": 3}
    empty: dict[str, Any] = {key: [] for key in ("summary", "assumptions", "blind", "findings", "sites")}
    return {"entry": entry, "worlds": rows, "slice": {}, **empty, **more}


def text_of(*tables: dict[str, Any], **more: Any) -> str:
    plain = {"factor": "f", "findings": [], "counts": [], "undecided": 0, "raising": 0, "entries_left_out": 0}
    rest = {"facts": [], "broken": {}, "timed_out": False}
    return render({**plain, **rest, "tables": list(tables), **more})


def test_tables_without_an_answer_are_listed_by_reason() -> None:
    one = {"unknown": "too much"}
    text = text_of(table([one]), table([one], slice={"quant_method": "Fp8"}), table([{"unknown": "else"}]))
    assert "undecided: too much:\n  A.f  m.py:3\n  A.f  m.py:3, where quant_method is Fp8\n" in text
    assert text.endswith("undecided: else:\n  A.f  m.py:3")


def test_a_long_summary_takes_a_line_a_count() -> None:
    row = {"count": 2, "parts": [], "unknown": "", "raises": "", "when": ["x" * 300, "y"], "more": False}
    last = {**row, "count": 1, "when": ["otherwise"]}
    text = text_of(table([{"count": 2}, {"count": 1}], summary=[row, last]))
    assert "  1 otherwise" in text.splitlines()
    assert "x… or …" in text
    assert "or y" not in text
    short = {**row, "when": ["not fused"]}
    assert "  2 when not fused; 1 otherwise" in text_of(table([{"count": 2}, {"count": 1}], summary=[short, last]))


def test_worlds_without_a_number_say_why() -> None:
    worlds = [{"parts": [1, 2]}, {"raises": "m.py:4 AssertionError"}, {"unknown": "lost"}, {"count": 0, "aside": True}]
    text = text_of(table(worlds))
    assert "?    1 and 2 in different parts" in text
    assert "!    raises m.py:4 AssertionError" in text
    assert "?    unknown (lost)" in text
    assert "left out: 1 way to fail" in text
