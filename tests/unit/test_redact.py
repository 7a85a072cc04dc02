"""Secrets taken out, everything else left, in linear time, across any block."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sleuth.tools.redact import redact, redact_file, redact_value

KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEow\n" * 30 + "-----END RSA PRIVATE KEY-----"

SECRETS = {
    "key sk-abcdefghij0123456789 end": "key <redacted> end",
    "hf_" + "A" * 34: "<redacted>",
    "ghp_" + "a1" * 15: "<redacted>",
    "glpat-" + "x" * 20: "<redacted>",
    "xoxb-1234567890-abc": "<redacted>",
    "AKIA" + "A1" * 8 + " x": "<redacted> x",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijklmnop": "<redacted>",
    "Authorization: Bearer abcdefghijklmnop1234": "Authorization: Bearer <redacted>",
    "https://me:hunter2@host/x": "https://me:<redacted>@host/x",
    'api_key = "abcdefgh12"': 'api_key = "<redacted>"',
    "'client_secret': 'abcdefgh12'": "'client_secret': '<redacted>'",
    "AWS_SECRET_ACCESS_KEY=abcdefgh12 x": "AWS_SECRET_ACCESS_KEY=<redacted> x",
    "HF_TOKEN=abcdefgh12": "HF_TOKEN=<redacted>",
    "--api-key s3cr3t --tp 8": "--api-key <redacted> --tp 8",
    "--admin-api-key=s3cr3t": "--admin-api-key=<redacted>",
    f"a\n{KEY}\nb": "a\n-----BEGIN RSA PRIVATE KEY-----<redacted>-----END RSA PRIVATE KEY-----\nb",
}


@pytest.mark.parametrize("text", SECRETS)
def test_secrets_go_and_their_names_stay(text: str) -> None:
    assert redact(text) == SECRETS[text]
    assert redact(SECRETS[text]) == SECRETS[text]


@pytest.mark.parametrize(
    "text",
    [
        "tokenizer = get_tokenizer(max_tokens=4096)",
        "num_tokens = 123456789012",
        'token = self.tokens["password"]',
        "secret = None",
        "PASSWORD=",
        "https://host:8000/path@x",
        "risk-" + "a" * 30,
        "task-abcdefghij0123456789",
        "self.api_key = api_key",
        "hf_hub_download('x')",
        "eyJ.eyJ.x",
        "a line\nof plain text with ünïcode 🦥 and \udcff half characters",
        "",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_values_of_any_shape() -> None:
    given_value = {"a": ["hf_" + "A" * 34, 1, None, True], "b": {"c": ("HF_TOKEN=abcdefgh12",)}}
    assert redact_value(given_value) == {"a": ["<redacted>", 1, None, True], "b": {"c": ["HF_TOKEN=<redacted>"]}}


@settings(database=None)
@given(st.text())
def test_any_text_survives(text: str) -> None:
    assert redact(redact(text)) == redact(text)


HARD = {
    "jwt starts": "eyJ-" * 250_000,
    "jwt parts": "eyJaaaaaaaaaa.eyJaaaaaaaaaa." * 40_000,
    "token names": "TOKEN_" * 170_000,
    "name parts": "A_" * 500_000,
    "capitals": "A" * 1_000_000,
    "dashes": "-" * 1_000_000,
    "options": "--a-" * 250_000,
    "dotted names": "secret." * 140_000,
    "keys": "-----BEGIN " * 90_000,
    "colons": "://a:" * 200_000,
    "bearers": "Bearer " * 140_000 + " " * 10_000,
    "quotes": "api_key='" * 110_000,
    "equals": "password" + "=" * 1_000_000,
    "sk": "sk-" * 330_000,
}


@pytest.mark.parametrize("kind", HARD)
def test_a_hostile_text_takes_no_longer_than_its_length(kind: str) -> None:
    start = time.monotonic()
    redact(HARD[kind])
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("offset", [-3000, -120, -40, -1, 0, 1, 40])
@pytest.mark.parametrize("secret", ["HF_TOKEN=abcdefgh12\n", KEY + "\n"], ids=["line", "key"])
def test_no_block_ends_within_a_secret(tmp_path: Path, offset: int, secret: str) -> None:
    filler = "x = 1\n" * ((1 << 20) // 6 + 10)
    text = filler[: (1 << 20) + offset] + "\n" + secret + filler
    (tmp_path / "in").write_text(text)
    redact_file(tmp_path / "in", tmp_path / "out")
    assert (tmp_path / "out").read_text() == redact(text)
    assert not re.search("abcdefgh12|MIIEow", (tmp_path / "out").read_text())


def test_a_key_that_never_ends_does_not_hold_the_rest(tmp_path: Path) -> None:
    text = "-----BEGIN PRIVATE KEY-----\n" + "ab\n" * 1_500_000
    (tmp_path / "in").write_text(text)
    redact_file(tmp_path / "in", tmp_path / "out")
    assert (tmp_path / "out").read_text().startswith("-----BEGIN PRIVATE KEY-----<redacted>ab\n")


def test_long_and_short_texts_are_redacted_alike() -> None:
    """Long ones are gone through line by line first."""
    filler = "x = compute(1)\n" * 400
    for text, clean in SECRETS.items():
        assert redact(f"{filler}{text}\n{filler}") == f"{filler}{clean}\n{filler}"
    apart = f"{filler}api_key =\n 'abcdefgh12'\n{filler}Bearer\n abcdefghijklmnop1234\r\n{filler}"
    assert redact(apart).replace("<redacted>", "") == apart.replace("abcdefgh12", "").replace(
        "abcdefghijklmnop1234", ""
    )


def test_plain_source_is_quick() -> None:
    text = "        topk_weights = topk_weights * self.routed_scaling_factor  # applied once\n" * 100_000
    start = time.monotonic()
    assert redact(text) == text
    assert time.monotonic() - start < 3


def test_bytes_that_are_no_text_pass(tmp_path: Path) -> None:
    raw = bytes(range(256)) * 9000
    (tmp_path / "in").write_bytes(raw)
    redact_file(tmp_path / "in", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == raw
