"""Command lines taken apart, and the secrets in them hidden."""

from __future__ import annotations

from typing import Any

import pytest

from sleuth.tools.env_argv import flat, parse_command
from sleuth.tools.env_secrets import hide, in_text, is_secret


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("HF_TOKEN", True),
        ("api_key", True),
        ("OPENAI_API_KEY", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("AWS_ACCESS_KEY_ID", True),
        ("ssl_keyfile_password", True),
        ("auth.credentials", True),
        ("WANDB_KEY", True),
        ("hfToken", True),
        ("tokenizer_path", False),
        ("max_tokens", False),
        ("eos_token_id", False),
        ("eos_token", False),
        ("pad_token", False),
        ("bytes_per_token", False),
        ("num_key_value_heads", False),
        ("API_KEY_FILE", False),
        ("PWD", False),
    ],
)
def test_names_that_say_secret(name: str, secret: bool) -> None:
    assert is_secret(name) == secret


def test_hiding_keeps_what_is_no_secret() -> None:
    assert hide("api_key", None) is None
    assert hide("api_key", "") == ""
    assert hide("use_password", True) is True
    assert hide("password", 1234) == "<redacted> (4 characters)"
    assert hide("api_keys", ["abc", "de"]) == ["<redacted> (3 characters)", "<redacted> (2 characters)"]
    assert in_text("a --max-tokens 5 b") == "a --max-tokens 5 b"
    assert in_text("Authorization: Bearer abc") == "Authorization: Bearer <redacted> (3 characters)"


def options(line: list[str], *flags: str) -> dict[str, Any]:
    return {o.name: o.value for o in parse_command(line, flags).options}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--a b", {"a": "b"}),
        ("--a=b=c", {"a": "b=c"}),
        ("--a", {"a": True}),
        ("--no-a", {"a": False}),
        ("--a -1 --b -0.5", {"a": -1, "b": -0.5}),
        ("--lora-paths a b c --x 1", {"lora_paths": ["a", "b", "c"], "x": 1}),
        ("--a 08 --b 1e-3 --c 1.0 --d true", {"a": "08", "b": 0.001, "c": 1.0, "d": True}),
        ("-tp 8 -q awq", {"tp": 8, "q": "awq"}),
        ("--a.b 3", {"a.b": 3}),
        ("--a -- --b", {"a": True}),
        ("--a=", {"a": ""}),
    ],
)
def test_options(words: str, expected: dict[str, Any]) -> None:
    assert options(["serve", *words.split()]) == expected


def test_a_known_flag_takes_no_value() -> None:
    line = ["vllm", "serve", "--eager", "meta/model"]
    assert options(line) == {"eager": "meta/model"}
    command = parse_command(line, {"eager"})
    assert {o.name: o.value for o in command.options} == {"eager": True}
    assert command.positionals == [("serve", 1), ("meta/model", 3)]
    assert options(["x", "--no-graph"], "no_graph") == {"no_graph": True}


@pytest.mark.parametrize(
    ("words", "module", "program", "entry"),
    [
        (["python3.11", "-u", "-m", "a.b", "--x", "1"], "a.b", "", "a.b"),
        (["/usr/bin/python3", "-X", "dev", "/opt/bin/vllm", "serve"], "", "/opt/bin/vllm", "vllm"),
        (["numactl", "--cpunodebind=0", "python", "-m", "a.b"], "a.b", "", "a.b"),
        (["trtllm-serve", "model", "--x", "1"], "", "trtllm-serve", "trtllm_serve"),
        (["python", "run/launch.py"], "", "run/launch.py", "launch"),
        (["--x", "1"], "", "", ""),
    ],
)
def test_what_is_launched(words: list[str], module: str, program: str, entry: str) -> None:
    command = parse_command(words)
    assert (command.module, command.program, command.entry()) == (module, program, entry)


def test_a_shell_is_opened_one_level() -> None:
    script = (
        "cd /app; export A=1 && # now\n"
        "B='x y' exec python -m a.b --tp 8 \\\n  --name 'p; q' --path $HOME > log 2>&1 | tee out"
    )
    command = parse_command(["/bin/bash", "-lc", script])
    assert command.module == "a.b"
    assert {o.name: o.value for o in command.options} == {
        "tp": 8,
        "name": "p; q",
        "path": "$HOME",
    }
    assert command.env == [("A", "1", 2), ("B", "x y", 2)]
    assert command.notes == ["a value holds a shell variable, which is shown unexpanded"]
    assert {o.index for o in command.options} == {2}


def test_a_broken_shell_text_is_said() -> None:
    command = parse_command(["sh", "-c", "python -m a --x 'open"])
    assert command.notes == ["the shell text can't be split: No closing quotation"]


def test_json_is_flattened_by_key() -> None:
    value = {"a": {"b": [1, 2], "c": [{"d": None}]}, "e": {}}
    assert list(flat(value)) == [("a.b", [1, 2]), ("a.c.0.d", None), ("e", "{}")]
