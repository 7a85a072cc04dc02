"""sleuth.yaml: what it may say, and each kind of mistake with its exact line and cure."""

from __future__ import annotations

from pathlib import Path

import pytest

from sleuth.sandbox.base import Limits
from sleuth.sandbox.deployment import Deployment, load_deployment, model_config
from sleuth.sandbox.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a tree, a stock tree, patches and files to name."""
    for name in ("tree", "stock", "patches"):
        (tmp_path / name).mkdir()
    (tmp_path / "one.patch").write_text("x")
    (tmp_path / "config.json").write_text('{"hidden_size": 7168}')
    return tmp_path


def read(folder: Path, text: str) -> Deployment:
    (folder / "sleuth.yaml").write_text(text)
    return load_deployment(folder / "sleuth.yaml")


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as error:
        read(folder, text)
    prefix = f"{folder / 'sleuth.yaml'}:"
    lines = str(error.value).splitlines()
    assert all(line.startswith(prefix) for line in lines)
    return [line.removeprefix(prefix) for line in lines]


def test_everything_it_may_say(folder: Path) -> None:
    text = """\
version: 1
name: ds
engine: sglang
stock: stock
tree: tree
patches:
  - one.patch
  - {path: patches, id: all-8, title: every one}
symptom: loses facts
oracle: ./check.sh --long "a b"
model: {name: v4, config: config.json}
launch:
  args: python -m sglang.launch_server --tp 8
  env: {A: 1, B: "x", C: 0.10, D: 0x1F, E: 1_000, F: 010}
process: {pid: 12}
endpoint: http://127.0.0.1:30000/v1
gpus: [0, 1]
sandbox:
  backend: bubblewrap
  limits: {seconds: 5, memory_mb: 512, processes: 8, output_mb: 1}
"""
    found = read(folder, text)
    assert (found.name, found.engine, found.symptom, found.endpoint) == (
        "ds",
        "sglang",
        "loses facts",
        "http://127.0.0.1:30000/v1",
    )
    assert (found.tree, found.stock) == (folder / "tree", str(folder / "stock"))
    assert [(p.path, p.id, p.title) for p in found.patches] == [
        (folder / "one.patch", None, ""),
        (folder / "patches", "all-8", "every one"),
    ]
    assert found.oracle == ["./check.sh", "--long", "a b"]
    assert found.launch.args == ["python", "-m", "sglang.launch_server", "--tp", "8"]
    assert found.launch.env == {"A": "1", "B": "x", "C": "0.10", "D": "0x1F", "E": "1_000", "F": "010"}
    assert found.process is not None
    assert (found.process.pid, found.gpus) == (12, [0, 1])
    assert found.sandbox.limits.limits() == Limits(5.0, 512 << 20, 8, 1 << 20)
    assert model_config(found) == {"hidden_size": 7168}
    assert (found.path, found.where("launch", "env", "B")) == (folder / "sleuth.yaml", "sleuth.yaml:14")


def test_the_least_it_may_say(folder: Path) -> None:
    found = read(folder, "name: x\ntree: tree\n")
    assert (found.sandbox.limits.limits(), found.patches, found.launch.env) == (Limits(), [], {})
    assert model_config(found) == {}
    assert load_deployment(folder).path == folder / "sleuth.yaml"


def test_arguments_in_a_list_stay_as_they_are_written(folder: Path) -> None:
    text = "name: x\ntree: tree\nlaunch:\n  args: [--tp, 8, --mem, 0.80, --seed, 007]\n"
    assert read(folder, text).launch.args == ["--tp", "8", "--mem", "0.80", "--seed", "007"]


MISTAKES: list[tuple[str, str]] = [
    ("+stok: a", "3: stok: unknown key; did you mean 'stock'?"),
    ("+sandbox:\n  limits:\n    second: 3", "5: sandbox.limits.second: unknown key; did you mean 'seconds'?"),
    ("+launch: {envs: {}}", "3: launch.envs: unknown key; did you mean 'env'?"),
    ("+patches:\n  - {path: one.patch, titel: t}", "4: patches.0.titel: unknown key; did you mean 'title'?"),
    ("+model: {zzzz: 1}", "3: model.zzzz: unknown key; known: config, name"),
    ("tree: tree", "1: name: this key is required"),
    ("name: x", "1: name the source: `tree` (as deployed), or `stock` with `patches`"),
    ("+patches: [{id: a}]", "3: patches.0.path: this key is required"),
    ("+version: 2", "3: version: Input should be 1 (got 2)"),
    ("+engine: sglnag", "3: engine: Input should be 'sglang', 'vllm' or 'other' (got 'sglnag')"),
    ("+launch:\n  env:\n    A: on", '5: launch.env.A: an environment variable is text: write "1" or "true" in quotes'),
    ("+launch:\n  env:\n    A:", "5: launch.env.A: Input should be a valid string (got None)"),
    ("+launch:\n  args: a 'b", '4: launch.args: not a command line: No closing quotation (got "a \'b")'),
    ("+launch:\n  args: [a, true]", "4: launch.args.1: Input should be a valid string (got True)"),
    ("+process: {pid: 0}", "3: process.pid: Input should be greater than 0 (got 0)"),
    ("+process: {pid: yes}", "3: process.pid: Input should be a valid integer (got True)"),
    ("+endpoint: host:1", "3: endpoint: String should match pattern '^https?://[^/\\s]+' (got 'host:1')"),
    ("+sandbox: {limits: {seconds: .inf}}", "3: sandbox.limits.seconds: Input should be less than or equal to 86400"),
    ("+sandbox: {limits: {memory_mb: 1.5}}", "3: sandbox.limits.memory_mb: Input should be a valid integer (got 1.5)"),
    ("+sandbox: {limits: {processes: 0}}", "3: sandbox.limits.processes: Input should be greater than 0 (got 0)"),
    (
        f"+sandbox: {{limits: {{output_mb: 0x{'f' * 5000}}}}}",
        "3: sandbox.limits.output_mb: Input should be less than or equal to 1048576",
    ),
    (
        "+patches: [{path: one.patch, id: ..}]",
        "3: patches.0.id: String should match pattern '^[A-Za-z0-9][A-Za-z0-9._+-]*$'",
    ),
    ("+launch: [a]", "3: launch: Input should be a valid dictionary or instance of Launch"),
    ("name: x\ntree: tre", "2: tree: {folder}/tre doesn't exist; did you mean 'tree'?"),
    ("name: x\ntree: one.patch", "2: tree: {folder}/one.patch is not a folder"),
    ("name: x\nstock: no/such", "2: stock: {folder}/no/such doesn't exist"),
    (
        "+patches:\n  - one.patch\n  - o.patch",
        "5: patches.1: {folder}/o.patch doesn't exist; did you mean 'one.patch'?",
    ),
    ("+model:\n  config: tree", "4: model.config: {folder}/tree is not a file"),
    ("+container: {inspect: qqqqqqqqqq}", "3: container.inspect: {folder}/qqqqqqqqqq doesn't exist"),
    (f"name: x\ntree: {'x' * 300}", f"2: tree: {'x' * 300}: File name too long"),
    ("name: x\ntree: ~no-such-user/x", "2: tree: ~no-such-user/x: Could not determine home directory."),
    ("", "1: the file is empty; it must be a mapping with name"),
    ("- name: x", "1: the file is a list; it must be a mapping with name"),
    ("just words", "1: the file is a str; it must be a mapping with name"),
]
"""What a file says (`+`: after a name and a tree), and how the message about it begins."""


@pytest.mark.parametrize(("text", "said"), MISTAKES)
def test_each_mistake_has_its_line_and_its_cure(folder: Path, text: str, said: str) -> None:
    found = problems(folder, text.replace("+", "name: x\ntree: tree\n") + "\n")
    expected = said.replace("{folder}", str(folder))
    assert found in ([expected], [f"{expected} (got {found[0].rpartition(' (got ')[2]}"])


def test_all_mistakes_are_told_at_once_in_file_order(folder: Path) -> None:
    text = "nam: x\nengine: q\nprocess:\n  pid: -1\nsandbox: {backend: podman}\n"
    assert problems(folder, text) == [
        "1: name: this key is required",
        "1: nam: unknown key; did you mean 'name'?",
        "2: engine: Input should be 'sglang', 'vllm' or 'other' (got 'q')",
        "4: process.pid: Input should be greater than 0 (got -1)",
        "5: sandbox.backend: Input should be 'auto', 'bubblewrap' or 'docker' (got 'podman')",
    ]
    missing = "name: x\ntree: a\nstock: b\npatches: [c]\n"
    assert [line.partition(" ")[0] for line in problems(folder, missing)] == ["2:", "3:", "4:"]


def test_command_line_values_count_from_the_working_directory(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sleuth.yaml").write_text("name: x\nstock: missing\n")
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "mine").mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    assert load_deployment(folder, stock="mine").stock == str(elsewhere / "mine")
    assert load_deployment(folder, stock="pypi:sglang==0.5.12").stock == "pypi:sglang==0.5.12"
    with pytest.raises(ConfigError, match=r"stock: .*/elsewhere/no doesn't exist"):
        load_deployment(folder, stock="no")


def test_paths_of_a_copied_description_count_from_where_it_was(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.yaml"
    copy.write_text("name: x\ntree: tree\n")
    (tmp_path / "far").mkdir()
    copy = copy.rename(tmp_path / "far" / "copy.yaml")
    assert load_deployment(copy, base=folder).tree == folder / "tree"
    with pytest.raises(ConfigError, match="far/tree doesn't exist"):
        load_deployment(copy)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "can't be read as JSON: Expecting property name"),
        ("[1]", "holds a list, not an object"),
        (b"\xff", "can't be read as JSON: 'utf-8' codec"),
    ],
)
def test_a_model_config_that_is_no_object(folder: Path, content: str | bytes, said: str) -> None:
    (folder / "config.json").write_bytes(content.encode() if isinstance(content, str) else content)
    found = read(folder, "name: x\ntree: tree\nmodel:\n  config: config.json\n")
    with pytest.raises(ConfigError) as error:
        model_config(found)
    assert f"sleuth.yaml:4: model.config: {folder}/config.json {said}" in str(error.value)


def test_a_config_nested_too_deep_is_no_crash(folder: Path) -> None:
    (folder / "config.json").write_text("[" * 100_000)
    with pytest.raises(ConfigError, match="can't be read as JSON"):
        model_config(read(folder, "name: x\ntree: tree\nmodel: {config: config.json}\n"))
