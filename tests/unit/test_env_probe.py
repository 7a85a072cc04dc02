"""What a deployment is set to: each source, what beats what, what disagrees, what stays secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sleuth.sandbox.base import Command, Completed, Guarantee
from sleuth.sandbox.deployment import load_deployment
from sleuth.tools.base import Outcome, Status, ToolContext, ToolError
from sleuth.tools.env_facts import EnvProbeData
from sleuth.tools.env_probe import EnvProbe, EnvProbeArgs
from sleuth.tools.inside import defaults

SERVER_ARGS = """
@dataclasses.dataclass
class ServerArgs:
    model_path: str
    moe_runner_backend: str = "auto"
    tp_size: int = 1
    quiet: bool = False
    api_key: Optional[str] = None
    workers: int = os.cpu_count()

    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model")
        parser.add_argument("--moe-runner-backend", default=ServerArgs.moe_runner_backend)
        parser.add_argument("--tensor-parallel-size", "--tp-size", default=ServerArgs.tp_size)
        parser.add_argument("--quiet", action="store_true")
        parser.add_argument("--workers", default=ServerArgs.workers)
"""


class FakeSandbox:
    """Runs the inside script in this process, on a tree of the test."""

    name, rg, python = "fake", "rg", ("python3",)

    def __init__(self, root: Path) -> None:
        self.root, self.requests = root, list[dict[str, Any]]()

    def exec(self, command: Command) -> Completed:
        request = json.loads(command.stdin)
        self.requests.append(request)
        answer = {"reply": defaults.run({**request, "root": str(self.root / "tree")})}
        out = self.root / "stdout"
        out.write_text(json.dumps(answer))
        return Completed(tuple(command.argv), 0, None, out, out, 0.1)

    def guarantees(self) -> list[Guarantee]:
        return []


class Case:
    """A folder with a sleuth.yaml, a config.json and a tree."""

    def __init__(self, root: Path) -> None:
        self.root, self.sandbox = root, FakeSandbox(root)
        (root / "tree").mkdir()
        self.source("server_args.py", SERVER_ARGS)
        self.described: dict[str, Any] = {"name": "t", "tree": "tree"}

    def source(self, name: str, text: str) -> None:
        (self.root / "tree" / name).write_text(text)

    def file(self, name: str, value: Any) -> str:
        (self.root / name).write_text(json.dumps(value))
        return name

    def probe(self, *names: str, sources: tuple[str, ...] = ()) -> Outcome[EnvProbeData]:
        (self.root / "sleuth.yaml").write_text(yaml.safe_dump(self.described, sort_keys=False))
        args = EnvProbeArgs.model_validate({"names": names, "sources": sources})
        deployment = load_deployment(self.root)
        return EnvProbe().run(args, ToolContext(self.sandbox, deployment))  # type: ignore[arg-type]


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def rows(outcome: Outcome[EnvProbeData]) -> list[tuple[str, Any, str, bool]]:
    return [(f.name, f.value, f.source, f.effective) for f in outcome.data.facts]


def test_every_value_says_where_it_comes_from(case: Case) -> None:
    case.source("environ.py", "class Envs:\n    X_FAST = EnvBool(True)\n")
    config = case.file("config.json", {"n_routed_experts": 256, "rope": {"factor": 40.0}})
    case.described["model"] = {"config": config}
    args = ["python", "-m", "pkg.launch", "--moe-runner-backend", "cutlass"]
    case.described["launch"] = {"args": args, "env": {"X_SLOW": "1"}}
    outcome = case.probe("--moe-runner-backend", "X_*", "n_routed_experts", "rope.factor", "tp_size", "NOPE")
    assert outcome.status is Status.OK
    assert rows(outcome) == [
        ("moe_runner_backend", "cutlass", "sleuth.yaml:10: --moe-runner-backend", True),
        ("moe_runner_backend", "auto", "default in server_args.py:5", False),
        ("tp_size", 1, "default in server_args.py:6", True),
        ("X_SLOW", "1", "sleuth.yaml:13", True),
        ("n_routed_experts", 256, "config.json: n_routed_experts", True),
        ("rope.factor", 40.0, "config.json: rope.factor", True),
    ]
    assert outcome.data.values["moe_runner_backend"] == "cutlass"
    assert outcome.data.values["tensor_parallel_size"] == 1
    assert outcome.data.unset == ["NOPE"]


def test_defaults_fill_in_a_glob_of_variables(case: Case) -> None:
    case.source("environ.py", "class Envs:\n    X_FAST = EnvBool(True)\n    X_LOW = EnvInt(N)\n")
    outcome = case.probe("X_FAST", "X_LOW")
    assert outcome.data.values == {"X_FAST": True}
    assert outcome.data.unset == ["X_LOW"]
    assert outcome.data.facts[1].note == "EnvInt registry; computed: N"
    (command,) = outcome.commands
    assert command[0] == "python3"
    assert "defaults" in command


def test_nothing_set_and_nothing_known_is_no_data(case: Case) -> None:
    outcome = case.probe("NOPE_A", "nope_b")
    assert (outcome.status, outcome.data.unset) == (Status.NO_DATA, ["NOPE_A", "nope_b"])
    assert outcome.text == ("neither set nor with a known default: NOPE_A, nope_b (looked at: described, defaults)")


def test_an_abbreviated_option_is_found_by_its_own_name(case: Case) -> None:
    case.described["launch"] = {"args": "serve.py --tp 8 --quiet meta/model --model /m"}
    outcome = case.probe("tp_size", "quiet", "model_path")
    assert outcome.data.values == {
        "model_path": "/m",
        "model": "/m",
        "quiet": True,
        "tp_size": 8,
        "tensor_parallel_size": 8,
        "tp": 8,
    }
    assert outcome.data.unset == []


def test_sources_can_be_chosen_and_must_exist(case: Case) -> None:
    case.described["launch"] = {"env": {"A": "1"}}
    assert case.probe("A", sources=("defaults",)).data.unset == ["A"]
    case.sandbox.requests.clear()
    assert case.probe("A", sources=("described",)).data.values == {"A": "1"}
    assert case.sandbox.requests == []
    with pytest.raises(ToolError, match=r"names no process; add `process: \{pid: NUMBER\}`"):
        case.probe("A", sources=("process",))
    with pytest.raises(ValueError, match=r"'described', 'process', 'container' or 'defaults'"):
        case.probe("A", sources=("elsewhere",))


def test_an_override_option_beats_the_models_config(case: Case) -> None:
    case.described["model"] = {"config": case.file("config.json", {"n": 256, "m": 1})}
    override = '{"n": 128}'
    case.described["launch"] = {"args": ["serve", "--json-model-override-args", override]}
    outcome = case.probe("n", "m")
    assert outcome.data.values == {"n": 128, "m": 1}
    assert [f.effective for f in outcome.data.facts if f.name == "n"] == [True, False]


def test_an_option_given_twice_is_a_conflict_and_the_last_counts(case: Case) -> None:
    case.described["launch"] = {"args": ["serve", "--tp", "4", "--tensor-parallel-size=8"]}
    outcome = case.probe("tp_size")
    assert outcome.data.values["tp_size"] == 8
    (conflict,) = outcome.data.conflicts
    assert [(c.value, c.source) for c in conflict.values] == [
        (4, "sleuth.yaml:6: --tp"),
        (8, "sleuth.yaml:8: --tensor-parallel-size"),
    ]


def test_defaults_that_differ_are_a_conflict_without_a_value(case: Case) -> None:
    case.source("a.py", 'x = os.getenv("X_A", "1")\n')
    case.source("b.py", 'x = os.getenv("X_A", "2")\n')
    outcome = case.probe("X_A")
    assert (outcome.data.values, outcome.data.unset) == ({}, ["X_A"])
    assert [c.value for c in outcome.data.conflicts[0].values] == ["1", "2"]


def test_secrets_are_hidden_everywhere(case: Case) -> None:
    secret = "s3cr3t-value"
    case.described["launch"] = {
        "args": ["serve", "--api-key", secret, f"--hf-overrides={json.dumps({'token': secret})}"],
        "env": {"HF_TOKEN": secret, "PROXY": f"http://me:{secret}@host/", "MAX_TOKENS": "512"},
    }
    case.described["container"] = {
        "inspect": case.file(
            "i.json",
            {"Config": {"Env": [f"HF_TOKEN={secret}9", f"X=--api-key {secret}"], "Cmd": None}},
        )
    }
    outcome = case.probe()
    whole = outcome.text + outcome.data.model_dump_json() + str(outcome.commands)
    assert secret not in whole
    assert outcome.data.values["api_key"] == "<redacted> (12 characters)"
    assert outcome.data.values["HF_TOKEN"] == "<redacted> (13 characters)"
    assert outcome.data.values["MAX_TOKENS"] == "512"
    assert [c.name for c in outcome.data.conflicts] == ["HF_TOKEN"]


INSPECT = {
    "Id": "ab" * 32,
    "Name": "/server",
    "Path": "python3",
    "Args": ["-m", "sglang.launch_server", "--tp", "8"],
    "State": {"Status": "running", "Pid": 4711},
    "Image": "sha256:" + "cd" * 32,
    "HostConfig": {
        "Runtime": "nvidia",
        "DeviceRequests": [{"Driver": "", "Count": -1, "Capabilities": [["gpu"]]}],
    },
    "Config": {
        "Env": ["PATH=/usr/bin", "X_FAST=0"],
        "Cmd": ["--tp", "8"],
        "Entrypoint": ["python3", "-m", "sglang.launch_server"],
        "Image": "lmsysorg/sglang:v0.5.12",
    },
}


def test_docker_inspect(case: Case) -> None:
    case.described["container"] = {"inspect": case.file("inspect.json", [INSPECT])}
    outcome = case.probe("X_FAST", "tp", "container.*")
    assert rows(outcome) == [
        ("tp_size", 8, "inspect.json: Args[2]: --tp", True),
        ("tp_size", 1, "default in server_args.py:6", False),
        ("X_FAST", "0", "inspect.json: Config.Env[1]", True),
        ("container.gpus", "all", "inspect.json: HostConfig.DeviceRequests[0]", True),
        ("container.image", "lmsysorg/sglang:v0.5.12", "inspect.json: Config.Image", True),
        ("container.image_id", "sha256:" + "cd" * 32, "inspect.json: Image", True),
        ("container.name", "/server", "inspect.json: Name", True),
        ("container.pid", 4711, "inspect.json: State.Pid", True),
        ("container.runtime", "nvidia", "inspect.json: HostConfig.Runtime", True),
        ("container.status", "running", "inspect.json: State.Status", True),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "Expecting property name"),
        ("[]", "no object with a `Config`"),
        ('[{"Id": "x"}]', "no object with a `Config`"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_a_container_file_that_is_none(case: Case, text: str, why: str) -> None:
    (case.root / "i.json").write_text(text)
    case.described["container"] = {"inspect": "i.json"}
    outcome = case.probe("X_FAST")
    assert outcome.status is Status.ERROR
    assert why in outcome.data.failed[0]
    with pytest.raises(ToolError, match=r"i\.json"):
        case.probe("X_FAST", sources=("container",))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that looks like a server: its own environment, arguments and folder."""
    script = tmp_path / "launch.py"
    script.write_text("import sys\nprint('up', flush=True)\nsys.stdin.read()\n")
    words = [sys.executable, str(script), "--tp", "8", "--api-key", "s3cr3t-value", "--name", ""]
    child = subprocess.Popen(
        words,
        env={"X_FAST": "0", "ODD": os.fsdecode(b"a\xff\nb"), "HF_TOKEN": "s3cr3t-value"},
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    child.stdout.readline()
    yield child
    child.communicate(b"")


def test_a_running_process_beats_what_is_described(case: Case, server: subprocess.Popen[bytes]) -> None:
    case.described["process"] = {"pid": server.pid}
    case.described["launch"] = {
        "args": ["python", "launch.py", "--tensor-parallel-size", "4", "--quiet"],
        "env": {"X_FAST": "1", "X_SLOW": "1"},
    }
    outcome = case.probe()
    values, home = outcome.data.values, f"/proc/{server.pid}"
    assert (values["tp_size"], values["X_FAST"], values["name"]) == (8, "0", "")
    assert values["ODD"] == "a\\xff\nb"
    assert "quiet" not in values
    assert "X_SLOW" not in values
    assert values["process.cwd"] == str(case.root)
    assert values["process.exe"] == os.path.realpath(sys.executable)
    started = time.mktime(time.strptime(str(values["process.started"])[:19], "%Y-%m-%dT%H:%M:%S"))
    assert abs(started - time.timezone - time.time()) < 60
    whys = {c.name: (c.why, [v.source for v in c.values]) for c in outcome.data.conflicts}
    assert whys == {
        "tp_size": ("sources disagree", [f"{home}/cmdline: --tp", "sleuth.yaml:9: --tensor-parallel-size"]),
        "quiet": ("described, but the running process lacks it", ["sleuth.yaml:11: --quiet"]),
        "X_FAST": ("sources disagree", [f"{home}/environ", "sleuth.yaml:13"]),
        "X_SLOW": ("described, but the running process lacks it", ["sleuth.yaml:14"]),
    }  # fmt: skip
    assert "s3cr3t-value" not in outcome.text + outcome.data.model_dump_json()
    assert "\\nb" in outcome.text


def test_a_process_that_is_gone_leaves_the_description(case: Case) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    case.described["process"] = {"pid": child.pid}
    case.described["launch"] = {"env": {"A": "1"}}
    outcome = case.probe("A", "B")
    assert outcome.data.values == {"A": "1"}
    assert outcome.data.failed == [f"process {child.pid}: no such process (it has ended, or runs in another container)"]
    assert case.probe("B").status is Status.ERROR
